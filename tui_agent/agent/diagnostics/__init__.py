"""Findings of programs that check a project, in files the agent changed."""
