"""Shell commands understood before they run.

``needs`` is imported where it is used: it loads the parser.
"""
