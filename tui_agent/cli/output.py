"""Prints text and JSON that can't control the terminal, and defines the exit codes."""

import io
import json
import os
import sys
import time
from enum import IntEnum
from typing import Any, Self, TextIO

from tui_agent.safe_text import UNSEEN, escaped_json, visible


class ExitCode(IntEnum):
    """The program's exit codes.

    ``word`` is used in ``--help``, ``meaning`` in the documentation.
    """

    word: str
    meaning: str

    def __new__(cls, code: int, word: str, meaning: str) -> Self:
        made = int.__new__(cls, code)
        made._value_ = code
        made.word = word
        made.meaning = meaning
        return made

    DONE = 0, "done", "done"
    FAILED = (
        1,
        "failed",
        "failed: for example, there is no model or API key, or the provider refused; standard error says what to do",
    )
    USAGE = 2, "usage", "wrong arguments or settings"
    STOPPED = (
        3,
        "stopped",
        (
            "stopped: a tool call was refused and nothing else was done, a question could not be asked, a goal was not "
            "reached, the model was in a doom loop, no steps were left, or the answer was cut off, was empty or had "
            "unreadable tool calls"
        ),
    )
    BUDGET = (
        4,
        "over budget",
        "a budget is used up (`--max-cost`, `--max-tokens`, `budget.session`, `budget.day`)",
    )
    TIMEOUT = 5, "out of time", "the time is up (`--timeout`)"
    INTERRUPTED = (
        130,
        "interrupted",
        "interrupted (Ctrl+C, a signal); the answer so far is kept",
    )


def exit_codes_line() -> str:
    """Return one line with the exit codes and their words."""
    return ", ".join(f"{code.value} {code.word}" for code in ExitCode)


def provide_streams() -> None:
    """Make printing work if standard output or error is closed or can't represent a character.

    A closed stream is replaced by the null device, and characters that the locale's encoding lacks
    are replaced by ``?``.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives as long as the program
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives as long as the program
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def discard_output() -> None:
    """Flush standard output; if that fails, drop its buffer.

    Otherwise, Python would exit with code 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def say(text: str, *, file: TextIO | None = None, end: str = "\n") -> None:
    """Print and flush text; on a terminal, show control and invisible characters as symbols."""
    stream = file or sys.stdout
    print(visible(text, UNSEEN) if stream.isatty() else text, file=stream, end=end, flush=True)


def say_bytes(data: bytes, *, file: TextIO | None = None) -> None:
    """Write bytes unchanged to a pipe or file; on a terminal, print them as `say` prints text."""
    stream = file or sys.stdout
    if stream.isatty():
        say(data.decode(errors="replace"), file=stream, end="")
        return
    stream.flush()
    stream.buffer.write(data)
    stream.flush()


def say_json(value: Any, *, file: TextIO | None = None) -> None:
    """Print and flush a value as one line of JSON; on a terminal, escape invisible characters."""
    stream = file or sys.stdout
    text = json.dumps(value, ensure_ascii=False)
    print(escaped_json(text) if stream.isatty() else text, file=stream, flush=True)


def when(milliseconds: int) -> str:
    """Format a moment, in milliseconds since the epoch, as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(milliseconds / 1000))
