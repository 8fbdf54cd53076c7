"""Starts the program: ``python -m tui_agent`` and the ``tui-agent`` command."""

import sys

from tui_agent.isolation import isolate_program


def main() -> None:
    """Run the command line and exit with its code."""
    isolate_program()
    import gc
    import threading

    from tui_agent.cli.main import run

    code = run(sys.argv[1:])
    # Python looks through everything for garbage on its way out, which takes 10 ms; all of it ends
    # with the process.
    gc.freeze()
    if threading.active_count() > 1:
        from tui_agent.cli.ending import leave

        leave(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
