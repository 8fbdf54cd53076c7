"""Makes tools from typed functions, which come from add-ons, tool files or users of the library."""
