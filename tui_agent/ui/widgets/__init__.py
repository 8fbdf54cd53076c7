"""Widgets of the main screen and of the pages over it."""
