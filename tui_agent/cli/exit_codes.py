"""The exit codes of the program."""

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_STOPPED = 3
"""Nothing could be done because it was not allowed, or a doom loop was ended."""
EXIT_INTERRUPTED = 130
