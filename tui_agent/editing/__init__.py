"""Edits texts: finds the text to replace despite a model's copying errors, and creates diffs."""
