"""Starts child processes, reads their output, and ends them along with everything they left running."""
