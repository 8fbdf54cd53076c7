"""Runs hooks: the user's commands at fixed points of the agent's work, which they may change."""
