"""Hooks: programs and functions of the user's that are asked, or notified, at fixed points of the agent's work."""
