"""The session tree: a pure model of its rows, and the widget that draws them."""
