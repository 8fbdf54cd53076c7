"""Text files and what an edit does to them: encodings, matching what a model copied, differences."""
