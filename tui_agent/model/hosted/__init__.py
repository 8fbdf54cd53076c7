"""litellm, in a process of its own: the providers whose formats the program does not speak itself."""
