"""Serves editors by the Agent Client Protocol, over standard input and output."""
