"""litellm in a process of its own, for providers without a wire in this program."""
