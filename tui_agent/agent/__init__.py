"""The agent: its loop, events, permissions and system prompt."""
