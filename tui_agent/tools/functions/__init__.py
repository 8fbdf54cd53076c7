"""Tools made from typed Python functions of add-ons, tool files, and users of the library."""
