"""The one door for text files: encodings, lines, names, validity, and reading and replacing files."""
