"""The agent for editors: the Agent Client Protocol, spoken over standard input and output."""
