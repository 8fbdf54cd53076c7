"""The command line: parses the arguments, and runs the full screen, a single prompt or a subcommand."""
