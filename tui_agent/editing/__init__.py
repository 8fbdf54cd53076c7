"""Edits of texts: finding the text to replace in spite of a model's copying errors, and diffs."""
