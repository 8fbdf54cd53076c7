"""Text files and edits of them: encodings, matching a model's copies, differences."""
