"""Hooks: the user's commands that are run at fixed points of the agent's work, and may change it."""
