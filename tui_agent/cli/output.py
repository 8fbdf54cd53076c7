"""Prints texts that may come from models, tools and files: on a terminal nothing in them acts."""

import sys
from typing import TextIO

from tui_agent.safe_text import readable


def say(text: str, *, file: TextIO | None = None, end: str = "\n") -> None:
    """Print a text at once. A terminal gets it harmless, a pipe or file gets it as it is."""
    stream = file or sys.stdout
    print(readable(text) if stream.isatty() else text, file=stream, end=end, flush=True)
