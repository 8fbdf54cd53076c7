"""Tracks the modes that a program sets on its terminal, to set them on other terminals as well.

The module also makes the escape sequences for a terminal that attaches and for a terminal that
detaches.
"""

import re

from tui_agent.text_files.encodings import user_text

_TAIL = 256
"""Number of bytes at the end of an output chunk in which an incomplete escape is searched for.

A longer incomplete escape is not recognised.
"""
_ALTERNATE_SCREEN = 1049
_CURSOR = 25
_PASSING = frozenset({2026})
"""Modes that are not tracked, because a program sets them only while it writes one frame."""

_SEQUENCE = re.compile(
    rb"\x1b\[\?(?P<modes>[0-9;]+)(?P<switch>[hl])"
    rb"|\x1b\[>(?P<pushed>[0-9]+)u"
    rb"|(?P<popped>\x1b\[<[0-9]*u)"
    rb"|\x1b\][02];(?P<title>[^\x07\x1b]*)(?:\x07|\x1b\\)"
)
_BEGUN = re.compile(rb"\x1b(?:\[[?><0-9;]*|\][^\x07\x1b]*\x1b?)?\Z")


class TerminalModes:
    """The modes, keyboard protocol and title that a program has set, as found in its output."""

    def __init__(self) -> None:
        self.title = ""
        self._modes: dict[int, bool] = {}
        self._keyboards: list[bytes] = []
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Update the modes from a part of the program's output."""
        data = self._rest + data
        for found in _SEQUENCE.finditer(data):
            self._take(found)
        self._rest = b""
        if begun := _BEGUN.search(data[-_TAIL:]):
            self._rest = begun[0]

    def _take(self, found: re.Match[bytes]) -> None:
        if found["modes"] is not None:
            is_on = found["switch"] == b"h"
            for mode in found["modes"].split(b";"):
                if mode and int(mode) not in _PASSING:
                    self._modes[int(mode)] = is_on
        elif found["pushed"] is not None:
            self._keyboards.append(found["pushed"])
        elif found["popped"] is not None:
            del self._keyboards[-1:]
        else:
            self.title = user_text(found["title"])

    def entering(self) -> bytes:
        """Return the escape sequences that give another terminal the modes that the program set."""
        parts: list[bytes] = []
        if self._modes.get(_ALTERNATE_SCREEN):
            parts.append(b"\x1b[?1049h\x1b[2J")
        for mode, is_on in self._modes.items():
            if mode != _ALTERNATE_SCREEN:
                switch = b"h" if is_on else b"l"
                parts.append(b"\x1b[?%d%s" % (mode, switch))
        for flags in self._keyboards:
            parts.append(b"\x1b[>%su" % flags)
        if self.title:
            parts.append(b"\x1b]2;%s\x07" % self.title.encode())
        return b"".join(parts)

    def leaving(self) -> bytes:
        """Return the escape sequences that reset everything the program has set on a terminal."""
        parts = [b"\x1b[<u"] * len(self._keyboards)
        for mode, is_on in self._modes.items():
            if is_on and mode not in {_ALTERNATE_SCREEN, _CURSOR}:
                parts.append(b"\x1b[?%dl" % mode)
        if self._modes.get(_ALTERNATE_SCREEN):
            parts.append(b"\x1b[?1049l")
        return b"".join([*parts, b"\x1b[?25h"])
