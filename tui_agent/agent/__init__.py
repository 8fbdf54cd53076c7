"""The agent: the loop, its events, permissions and the system prompt."""
