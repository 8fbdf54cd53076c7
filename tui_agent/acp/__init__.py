"""Serves editors: the Agent Client Protocol over standard input and output."""
