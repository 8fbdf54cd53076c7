"""Checkpoints: the changes a session made to the project's files, and how they are undone."""
