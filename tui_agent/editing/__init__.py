"""Text files and edits of them: encodings, matching what a model copied, differences."""
