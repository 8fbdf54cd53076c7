"""Runs a tool call through its stages, gives it a context, and makes its one result."""
