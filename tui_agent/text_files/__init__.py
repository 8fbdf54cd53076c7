"""Reads and replaces text files: encodings, lines, look-alike names, validity, documents as text."""
