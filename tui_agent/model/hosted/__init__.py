"""litellm in a process of its own, for providers whose formats the program doesn't speak."""
