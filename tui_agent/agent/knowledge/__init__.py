"""Reads the files with which a project and its user guide the agent: instructions, skills, commands."""
