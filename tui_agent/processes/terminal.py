"""A pseudo-terminal for a command: takes its input, and draws its output on a screen."""

import contextlib
import fcntl
import logging
import os
import re
import struct
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.errors import ToolError
from tui_agent.lazy import LazyPattern
from tui_agent.processes.own_programs import find_program

if TYPE_CHECKING:
    import pyte

    from tui_agent.processes.terminal_screen import Part, TerminalScreen

log = logging.getLogger(__name__)

COLUMNS = 80
ROWS = 24
"""Size of the terminal. Most users' terminals are at least as large, so that a user can take it
over."""
KIND = "linux"
"""The value of ``TERM``: a kind of terminal whose sequences `TerminalScreen` understands."""

MAX_TYPED_BYTES = 4_000
"""Maximum bytes typed at once. The kernel drops any more if the program doesn't read in time."""

MAX_PENDING_BYTES = 16 * 1024
"""Maximum bytes of output waiting to be drawn; older output is dropped. Drawing this amount takes
up to 0.1 s."""

MAX_HIGHLIGHTED = 5
"""If more parts than this are highlighted, they count as decoration and aren't listed."""

KEYS: Mapping[str, str] = {
    "enter": "\r", "tab": "\t", "esc": "\x1b", "escape": "\x1b", "backspace": "\x7f", "space": " ",
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
    "home": "\x1b[1~", "end": "\x1b[4~", "insert": "\x1b[2~", "delete": "\x1b[3~",
    "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "shift-tab": "\x1b[Z",
    "f1": "\x1b[[A", "f2": "\x1b[[B", "f3": "\x1b[[C", "f4": "\x1b[[D", "f5": "\x1b[[E",
    "f6": "\x1b[17~", "f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~",
}  # fmt: skip
"""Names of keys, as written in ``<…>``, and the characters that a terminal receives for each."""

_NO_TEXT = LazyPattern(r"\x1b\[{1,2}[0-9;]*[A-Za-z~]|[\x00-\x08\x0b-\x1f\x7f]")
_KEY = LazyPattern(r"<(?:(?:c|ctrl)-([a-z@\[\\\]^_])|([a-z0-9-]{2,9}))>", re.IGNORECASE)


def typed_text(text: str) -> str:
    """Return the characters that a keyboard sends for a text.

    Names such as ``<Enter>``, ``<C-c>`` or ``<Up>`` in it are keys, and a line break is Enter.
    Other text in ``<…>`` is typed as written.
    """

    def key(found: "re.Match[str]") -> str:
        if found[1]:
            return chr(ord(found[1].upper()) & 0x1F)
        return KEYS.get(found[2].lower(), found[0])

    plain = text.replace("\r\n", "\r").replace("\n", "\r")
    return _KEY.sub(key, plain)


def typed_lines(text: str) -> str:
    """Return the characters that typing a text produces, without control keys.

    This is used to check typed text as shell commands.
    """
    return _NO_TEXT.sub("", typed_text(text).replace("\r", "\n")).strip()


def in_terminal(words: Sequence[str], project: Path) -> tuple[str, ...]:
    """Return the argument list that runs a command with its terminal as ``/dev/tty``.

    The list is unchanged if there is no ``setsid`` outside the project.
    """
    setsid = find_program("setsid", outside=project)
    if setsid is None:
        return tuple(words)
    return (setsid, "--ctty", "--wait", *words)


def open_terminal() -> tuple[int, int]:
    """Open a pseudo-terminal, and return the descriptors of this program's and the command's end.

    Raises OSError if no pseudo-terminal is free.
    """
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return ours, theirs


class Terminal:
    """The screen and the keyboard of a command in a pseudo-terminal."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._drawn: tuple[TerminalScreen, pyte.ByteStream] | None = None
        self._keyboard: int | None = None

    def connect(self, descriptor: int) -> None:
        """Use ``descriptor``, this program's end of the pseudo-terminal, for typing.

        A duplicate is kept, because the reader of the output may close ``descriptor`` first.
        """
        self._keyboard = os.dup(descriptor)

    def disconnect(self) -> None:
        if self._keyboard is not None:
            os.close(self._keyboard)
            self._keyboard = None

    def feed(self, chunk: bytes) -> None:
        self._pending += chunk
        del self._pending[:-MAX_PENDING_BYTES]

    @property
    def is_flooded(self) -> bool:
        """Whether output arrives so fast that some of it is dropped before it is drawn."""
        return len(self._pending) >= MAX_PENDING_BYTES

    def type(self, text: str) -> None:
        """Type a text, with keys as in `typed_text`.

        Raises ToolError if it is too long, or the terminal doesn't take all of it.
        """
        data = typed_text(text).encode("utf-8", "replace")
        if len(data) > MAX_TYPED_BYTES:
            raise ToolError(f"At most {MAX_TYPED_BYTES} bytes can be typed at once.")
        self._write(data)

    def _write(self, data: bytes) -> None:
        if self._keyboard is None:
            raise ToolError("The job's terminal is closed; it takes no more input.")
        try:
            written = os.write(self._keyboard, data)
        except OSError as error:
            raise ToolError(f"The terminal accepts no input now: {error.strerror}.") from None
        if written < len(data):
            raise ToolError(f"The terminal took only {written} of {len(data)} bytes of the input.")

    def text(self) -> str:
        """Return the screen's text, without blank lines at the end, and its highlighted parts."""
        screen = self._draw()
        lines = [line.rstrip() for line in screen.texts()]
        text = "\n".join(lines).rstrip()
        marked = _highlighted(screen)
        if marked:
            text += "\n[Highlighted: " + ", ".join(repr(part) for part in marked) + "]"
        return text

    def rows(self) -> list[list["Part"]]:
        """Return the rows with highlighted parts and cursor, without blank rows at the end."""
        screen = self._draw()
        rows = screen.parts(cursor=True)
        while rows and not any(part.stands_out or not part.is_blank for part in rows[-1]):
            rows.pop()
        return rows

    def _draw(self) -> "TerminalScreen":
        import pyte

        from tui_agent.processes.terminal_screen import TerminalScreen

        if self._drawn is None:
            made = TerminalScreen(COLUMNS, ROWS)
            made.write_process_input = self._answer  # type: ignore[method-assign]
            self._drawn = (made, pyte.ByteStream(made))
        screen, stream = self._drawn
        data = bytes(self._pending)
        self._pending.clear()
        try:
            stream.feed(data)
        except Exception:
            log.warning("a part of a terminal's output could not be drawn", exc_info=True)
            self._drawn = (screen, pyte.ByteStream(screen))
        return screen

    def _answer(self, data: str) -> None:
        """Send the screen's answer to a program's request, for example for the cursor position."""
        with contextlib.suppress(ToolError):  # the program in the terminal is ending
            self._write(data.encode())


def _highlighted(screen: "TerminalScreen") -> list[str]:
    """Return the texts of a screen's highlighted parts; [] for more than `MAX_HIGHLIGHTED`."""
    found: list[str] = []
    for row in screen.parts():
        for part in row:
            if part.stands_out and not part.is_blank:
                found.append(part.text.strip())
    if len(found) > MAX_HIGHLIGHTED:
        return []
    return found
