"""Reads files of the user and the project that guide the agent: instructions, skills, commands."""
