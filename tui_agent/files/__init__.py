"""Safe access to a project's files: opening, writing, listing, git, secrets, memory and notes."""
