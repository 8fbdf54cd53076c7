"""Analyses shell commands before they run.

Import ``needs`` where it is used, because it loads the parser.
"""
