"""Draws a prompt while the program starts, and collects keys until the interface is ready.

The terminal's modes stay unchanged, so its line editing echoes and buffers the typed keys, and the
interface reads them later. Therefore, if the program is killed, stopped or interrupted, only the
alternate screen has to be left. The prompt drawn here is the prompt line that an earlier start has
painted in its first frame: the driver passes that frame to `EarlyPrompt.keep`, which saves the line
in a file. This module imports neither Textual nor any other slow module.
"""

import json
import os
import re
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ALTERNATE_SCREEN = "\x1b[?1049h"
NORMAL_SCREEN = "\x1b[0m\x1b[?1049l"
MAX_TYPED_BYTES = 65_536
"""Maximum size of early input, in bytes. A terminal buffers at most 4,095 bytes of a line."""

LONE_ESCAPE = re.compile(rb"\x1b(?!\[|O[A-DFHP-S])")
"""Matches an Escape byte that begins no key sequence. In buffered input, a typed Escape can't be
recognised by the pause after it."""
ESCAPE_KEY = b"\x1b[27u"
"""Escape sequence that unambiguously encodes the Escape key."""

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STYLE_OR_CELL = re.compile(r"\x1b\[[0-9;]*m|\x1b\[[0-9;?]*[A-Za-z]|.")


class EarlyPrompt:
    """The prompt line that is shown and accepts input before the interface is ready.

    There is one per process, because a process has one terminal.
    """

    def __init__(self) -> None:
        self.is_shown = False
        self._file: Path | None = None
        self._size = (0, 0)

    @contextmanager
    def shown(self, file: Path) -> Iterator[None]:
        """Show the prompt line saved in ``file`` until `take` is called or the block ends.

        The block is that of the ``with`` statement. Shows nothing if ``file`` has no line for a
        terminal of this size, or the program is not in the terminal's foreground.
        """
        self._file = file
        with suppress(OSError, ValueError):
            self._size = tuple(os.get_terminal_size(1))  # type: ignore[assignment]  # two numbers
        if (picture := self._picture()) is None:
            yield
            return
        # Ctrl+Z is blocked until the interface can handle it. Before that, it would leave the shell
        # on the alternate screen.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
        before = {number: signal.signal(number, self._end) for number in _ENDING_SIGNALS}
        try:
            self.is_shown = (
                True  # set first, so that a Ctrl+C during the write leaves the alternate screen
            )
            self._write(ALTERNATE_SCREEN + picture)
            yield
        finally:
            if self.is_shown:
                self._leave()
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})

    def take(self) -> bytes:
        """Let the interface take over the terminal; return the input typed so far, b"" if none.

        If the only newline is at the end, it is returned as a carriage return: the Enter key, which
        sends the prompt. All other newlines are returned unchanged, as they may come from a paste.
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
                typed = os.read(0, MAX_TYPED_BYTES).replace(b"\0", b"")
            finally:
                termios.tcsetattr(0, termios.TCSANOW, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        if typed.find(b"\n") == len(typed) - 1 >= 0:
            return typed[:-1] + b"\r"
        return typed

    def keep(self, frame: str, row: int, column: int) -> None:
        """Save the prompt line for the next start; errors are ignored.

        ``frame`` is the output of the interface's first frame; the prompt's first letter is at
        ``row`` and ``column``, from 0.
        """
        picture = _line_of(frame, row, column)
        if picture is None or self._file is None or picture == self._picture():
            return
        with suppress(OSError):  # without the file, the next start has no early prompt
            self._file.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            fresh.write_text(json.dumps({"size": self._size, "picture": picture}), encoding="utf-8")
            fresh.replace(self._file)

    def _picture(self) -> str | None:
        """Return the saved terminal output that draws the prompt line of the early prompt.

        Returns None if no output is saved for the terminal's size, or the program is not in the
        terminal's foreground.
        """
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

    def _leave(self) -> None:
        """Leave the alternate screen, and discard input that was typed but not read yet."""
        self.is_shown = False
        self._write(NORMAL_SCREEN)
        with suppress(termios.error):
            termios.tcflush(0, termios.TCIFLUSH)

    def _end(self, number: int, _frame: object) -> None:
        """Handle signal ``number``: end the process at once, with exit code 128 + ``number``.

        Raising an exception is not enough, because in some callbacks, such as in Python's import
        system, it would only be printed.
        """
        if self.is_shown:
            self._leave()
        os._exit(128 + number)

    def _write(self, sequence: str) -> None:
        with suppress(OSError):
            os.write(1, sequence.encode())


def _line_of(frame: str, row: int, column: int) -> str | None:
    """Return output that clears the screen, then draws only line ``row`` of a frame and a cursor.

    The line is drawn up to ``column``. Both numbers count from 0. Returns None if the frame does
    not contain this line or the line is shorter.
    """
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
    # The last part is the cursor, which is drawn as a reversed cell in the text's style.
    written[-1:] = [f"{style}\x1b[7m" if "48;" in style else "\x1b[0m"]
    if cells == column:
        return f"{ground[0] if ground else ''}\x1b[2J\x1b[{row + 1};1H{''.join(written)}"
    return None


early_prompt = EarlyPrompt()
"""The early prompt of this process (see `EarlyPrompt`)."""
