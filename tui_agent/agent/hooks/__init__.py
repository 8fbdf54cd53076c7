"""Runs hooks: the user's commands that run at fixed points of the work and may change it."""
