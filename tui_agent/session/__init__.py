"""Sessions: immutable entries, the tree they form, and the SQLite store that has them all."""
