"""The session tree: a model of its rows, without side effects, and the widget that draws them."""
