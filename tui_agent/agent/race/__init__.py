"""Races: one prompt, several runners on branches of a session at the same time, each in a copy of the project."""
