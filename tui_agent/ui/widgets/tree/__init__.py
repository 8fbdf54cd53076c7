"""The session tree: a model of its rows, without side effects, and a widget that draws them."""
