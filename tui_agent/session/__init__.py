"""Sessions: immutable entries, the tree that they form, and the SQLite store that holds them."""
