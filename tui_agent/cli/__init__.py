"""The command line: parses the arguments; runs the full screen, a single prompt or a subcommand."""
