"""Plain typed Python functions as tools: in this process for who uses the library, in one of their own for files."""
