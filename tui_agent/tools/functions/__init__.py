"""Tools made of typed Python functions: of add-ons, tool files, and programs using the library."""
