"""Starts child processes, reads their output, and ends them with all that they left running."""
