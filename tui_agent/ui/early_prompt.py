"""The prompt before the interface: its line is painted at once, and typed into until Textual has the terminal.

The terminal's modes stay as they are: its own line editing shows and keeps the keys typed
meanwhile, and the interface is given them as if they were typed then. So there is nothing to put
back when the program is killed, stopped or interrupted, but the alternate screen. Nothing here
imports Textual, or anything else that takes time.
"""

import json
import os
import re
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ALTERNATE_SCREEN = "\x1b[?1049h"
NORMAL_SCREEN = "\x1b[0m\x1b[?1049l"
MOST_TYPED = 65_536
"""Bytes that are taken over; a terminal keeps 4,095 of a line."""

LONE_ESCAPE = re.compile(rb"\x1b(?!\[|O[A-DFHP-S])")
"""An Escape that begins no key of the keyboard's: input that was read late has no pauses."""
ESCAPE_KEY = b"\x1b[27u"
"""Escape as terminals write it that tell it from the begin of a sequence."""

_STYLE_OR_CELL = re.compile(r"\x1b\[[0-9;]*m|\x1b\[[0-9;?]*[A-Za-z]|.")


class EarlyPrompt:
    """The prompt shown before the interface. A process has one terminal, and so one of these."""

    def __init__(self) -> None:
        self.is_shown = False
        self._file: Path | None = None
        self._size = (0, 0)

    @contextmanager
    def shown(self, file: Path) -> Iterator[None]:
        """Show the prompt's line as ``file`` has it for a terminal of this size, until ``take`` or the block's end."""
        self._file = file
        with suppress(OSError, ValueError):
            self._size = tuple(os.get_terminal_size(1))  # type: ignore[assignment]  # two numbers
        if (picture := self._picture()) is None:
            yield
            return
        # Stopped in between, the shell would be on the alternate screen: it waits until the
        # interface can do it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
        ended = signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
        try:
            self.is_shown = True  # before it is: a Ctrl+C in between would leave the shell on the alternate screen
            self._write(ALTERNATE_SCREEN + picture)
            yield
        finally:
            if self.is_shown:
                self.is_shown = False
                self._write(NORMAL_SCREEN)
                with suppress(termios.error):  # input meant for a prompt is not for the shell
                    termios.tcflush(0, termios.TCIFLUSH)
            signal.signal(signal.SIGTERM, ended)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})

    def take(self) -> bytes:
        """Return the input so far as keys; from now on the interface reads and draws.

        One Enter at the very end sends, as it would later. Several may be of a paste, and make new
        lines.
        """
        if not self.is_shown:
            return b""
        self.is_shown = False
        typed = b""
        with suppress(termios.error, OSError):
            before = termios.tcgetattr(0)
            by_byte: list[Any] = [*before[:6], list(before[6])]
            by_byte[3] &= ~(termios.ICANON | termios.ECHO)
            by_byte[6][termios.VMIN] = by_byte[6][termios.VTIME] = 0
            termios.tcsetattr(0, termios.TCSANOW, by_byte)
            try:
                typed = os.read(0, MOST_TYPED).replace(b"\0", b"")
            finally:
                termios.tcsetattr(0, termios.TCSANOW, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        if typed.find(b"\n") == len(typed) - 1 >= 0:
            return typed[:-1] + b"\r"
        return typed

    def keep(self, frame: str, row: int, column: int) -> None:
        """Keep the prompt's line of the interface's first frame for the next start.

        ``frame`` is the output written for it, ``row`` and ``column`` count from 0: where the first
        letter goes.
        """
        picture = _line_of(frame, row, column)
        if picture is None or self._file is None or picture == self._picture():
            return
        with suppress(OSError):  # the next start begins without one
            self._file.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            fresh.write_text(json.dumps({"size": self._size, "picture": picture}), encoding="utf-8")
            fresh.replace(self._file)

    def _picture(self) -> str | None:
        """Return the text to write, None where the terminal has another size or owner, or nothing is kept."""
        try:
            kept = {}
            if self._file:
                kept = json.loads(self._file.read_text(encoding="utf-8"))
            size = tuple(kept["size"])
            picture = kept["picture"]
            is_ours = os.tcgetpgrp(0) == os.getpgrp()
        except (OSError, ValueError, TypeError, KeyError):
            return None
        if is_ours and size == self._size and isinstance(picture, str):
            return picture
        return None

    def _write(self, sequence: str) -> None:
        with suppress(OSError):
            os.write(1, sequence.encode())


def _line_of(frame: str, row: int, column: int) -> str | None:
    """Return how to clear a screen and write a line up to a column, in the colours of its rest; None without it."""
    line = re.search(rf"\x1b\[{row + 1};1H(.*?)(?:\r|\n|\Z)", frame)
    ground = re.search(r"\x1b\[[0-9;]*48;[0-9;]*m", frame)
    if line is None:
        return None
    cells = 0
    written = []
    style = ""
    for part in _STYLE_OR_CELL.findall(line[1]):
        if not part.startswith("\x1b"):
            if cells == column:
                break
            cells += 1
        style = part
        written.append(part)
    # The cursor stands there: the text's style reversed.
    written[-1:] = [f"{style}\x1b[7m" if "48;" in style else "\x1b[0m"]
    if cells == column:
        return f"{ground[0] if ground else ''}\x1b[2J\x1b[{row + 1};1H{''.join(written)}"
    return None


early_prompt = EarlyPrompt()
"""That of this process."""
