"""The command line: parses the arguments, and runs the screen, one prompt or a subcommand."""
