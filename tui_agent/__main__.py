"""Starts the program: ``python -m tui_agent`` and the ``tui-agent`` command."""

import sys

from tui_agent.isolation import isolate_program


def main() -> None:
    """Run the program with the process's arguments, and exit with its exit code. Never returns."""
    isolate_program()
    from tui_agent.cli.interrupts import end_at_once

    end_at_once()
    from tui_agent.cli.main import run

    leave(run(sys.argv[1:]))


def leave(code: int) -> None:
    """Exit the process with ``code`` at once, without waiting for its threads.

    Exit handlers run and output is flushed; if it can't be flushed, a code of 0 becomes 1. Skips
    Python's own teardown, which takes 15 to 25 ms.
    """
    import atexit
    import os

    atexit._run_exitfuncs()  # noqa: SLF001 - the exit handlers, which do not wait for threads
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # the reader has closed the pipe, or the disk is full
            code = code or 1
    os._exit(code)


if __name__ == "__main__":
    main()
