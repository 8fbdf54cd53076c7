"""Sessions: immutable entries, the tree they form, and the store that keeps them."""
