"""Tools made from typed Python functions: from add-ons, tool files, and users of the library."""
