"""Records the changes that a session makes to the project's files, and restores the files."""
