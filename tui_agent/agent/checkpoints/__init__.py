"""Checkpoints: what a session changed in the project's files, and how it is taken back."""
