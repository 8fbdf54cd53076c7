"""Prints texts that may come from models, tools and files: on a terminal nothing in them acts."""

import io
import json
import os
import sys
from typing import Any, TextIO

from tui_agent.safe_text import escaped_json, unhidden


def provide_streams() -> None:
    """See to it that printing never fails for where it goes: a stream that was closed, letters a locale has not."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives as long as the program
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives as long as the program
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def discard_output() -> None:
    """Write what standard output still holds; where that fails, drop it: Python would exit with code 120."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def say(text: str, *, file: TextIO | None = None, end: str = "\n") -> None:
    """Print a text at once. A terminal gets it harmless, a pipe or file gets it as it is."""
    stream = file or sys.stdout
    print(unhidden(text) if stream.isatty() else text, file=stream, end=end, flush=True)


def say_json(value: Any, *, file: TextIO | None = None) -> None:
    """Print a value as one line of JSON at once. For a terminal all that acts or can't be seen is escaped in it."""
    stream = file or sys.stdout
    text = json.dumps(value, ensure_ascii=False)
    print(escaped_json(text) if stream.isatty() else text, file=stream, flush=True)
