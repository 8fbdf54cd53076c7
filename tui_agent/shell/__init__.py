"""Analyses shell commands before they run, to find the permissions that they need.

Import the module ``needs`` only inside the functions that use it, because it loads the parser.
"""
