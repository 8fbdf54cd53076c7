"""Starts the program: ``python -m tui_agent`` and the ``tui-agent`` command."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from tui_agent.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
