"""Races: several agents work on one prompt at the same time, each in a copy of the project."""
