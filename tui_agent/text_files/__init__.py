"""Reads and replaces text files, with their encodings and formats, and converts documents."""
