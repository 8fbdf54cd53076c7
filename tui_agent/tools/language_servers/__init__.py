"""Finds and runs a project's language servers, and converts their answers to places in files."""
