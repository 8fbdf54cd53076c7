"""Whether the terminal's background is light: asked of the terminal itself (OSC 11), answered among the keys."""

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Final

from textual import events
from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.keys import _character_to_key
from textual.message import Message

from tui_agent.files.atomic import write_atomically
from tui_agent.lazy import LazyPattern, dataclass

log = logging.getLogger(__name__)

QUESTION: Final = "\x1b]11;?\x1b\\"
"""The sequence that asks for the background's colour."""

ANSWER_TIMEOUT_SECONDS: Final = 5.0
"""Seconds in which an answer may come in pieces. A complete one is taken out of the input at any time."""

_PIECE_WAITS: Final = 0.25
"""Seconds a piece of an answer waits for the rest, before it counts as typed."""

MUTE: Final = frozenset({"", "dumb", "linux"})
"""Terminals that know no such question."""

_ANSWER: Final = LazyPattern(
    r"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})[^\x07\x1b]{0,8}(?:\x07|\x1b\\)"
)
_OTHER: Final = LazyPattern(r"\x1b\]1[01];[^\x07\x1b]{0,80}(?:\x07|\x1b\\)")
"""An answer that says nothing here, or the question as some terminals echo it; nobody types that."""
_MARKED: Final = LazyPattern(
    r"(?P<escapes>\x1b*)\x1b(?:\[20(?P<end>[01])~|(?P<letter>[^\x1b\[\]OPNX^_\\\x00-\x1f\x7f-\x9f]))"
)
"""Where a paste begins (0) or ends (1), and Escape before a character that begins no sequence."""
_PIECE: Final = LazyPattern(r"\x1b\](?:1(?:1(?:;[^\x07\x1b]{0,40}\x1b?)?)?)?\Z")


@dataclass
class BackgroundKnown(Message):
    """The terminal said what colour its background has: one on which dark text is readable is ``light``."""

    light: bool


class AnswerParser(XTermParser):
    """Textual's parser of input, which would take the answer for keys, and Escape and a letter for other keys.

    A terminal sends the same for Escape and a letter as for Alt with it: here it is Alt, and the application decides.
    """

    def __init__(self, debug: bool = False, clock: Callable[[], float] = monotonic) -> None:  # noqa: FBT001, FBT002 - as inherited
        super().__init__(debug)
        self._clock = clock
        self._until = clock() + ANSWER_TIMEOUT_SECONDS
        self._piece = ""
        self._piece_since = 0.0
        self._in_paste = False

    def feed(self, data: str) -> Iterable[Message]:
        """Yield the messages of some input, with an answer as one message of its own."""
        if not data:
            yield from super().feed(data)
            return
        data, self._piece = self._piece + data, ""
        if "\x1b]" in data:
            answers = _ANSWER.findall(data)
            data = _OTHER.sub("", data)
            if answers:
                # Red, green and blue as hexadecimal numbers of one to four digits.
                red, green, blue = (int(part, 16) / int("f" * len(part), 16) for part in answers[-1])
                yield BackgroundKnown(0.299 * red + 0.587 * green + 0.114 * blue > 0.5)
            if self._clock() < self._until and (piece := _PIECE.search(data)):
                data = self._keep(data, piece.start())
        if data.endswith("\x1b"):
            data = self._keep(data, -1)
        for part, letter in self._parts(data):
            if part:
                yield from super().feed(part)
            if letter == "\x1b":
                yield events.Key("escape", letter)
            elif letter:
                name = letter if letter.isalnum() else _character_to_key(letter)
                yield events.Key(f"alt+shift+{name.lower()}" if letter.isupper() else f"alt+{name}", letter)

    def _keep(self, data: str, start: int) -> str:
        """Keep the end of some input until the rest comes; return the input before it."""
        self._piece, self._piece_since = data[start:], self._clock()
        return data[:start]

    def _parts(self, data: str) -> Iterator[tuple[str, str]]:
        """Yield input in parts, each with the letter that comes behind it after Escape; a paste is one part."""
        start = 0
        for found in _MARKED.finditer(data):
            if found["end"]:
                self._in_paste = found["end"] == "0"
            elif not self._in_paste:
                yield data[start : found.start()], ""
                yield from (("", "\x1b") for _ in found["escapes"])
                yield "", found["letter"]
                start = found.end()
        # The last Escape is kept for what may follow it; those before it are keys.
        rest = data[start:] if self._in_paste else data[start:].rstrip("\x1b")
        yield rest, ""
        yield from (("", "\x1b") for _ in data[start + len(rest) :])

    def tick(self) -> Iterable[Message]:
        """Let go of a piece that was no answer, then do the parser's work."""
        waits = ESCAPE_DELAY if self._piece == "\x1b" else _PIECE_WAITS
        if self._piece and self._clock() >= self._piece_since + waits:
            piece, self._piece = self._piece, ""
            yield from [events.Key("escape", "\x1b")] if piece == "\x1b" else super().feed(piece)
        yield from super().tick()


class BackgroundMemory:
    """The last answer of a terminal of this kind, in a file of its own, so that the first frame is in its colours."""

    def __init__(self, folder: Path, environment: Mapping[str, str] = os.environ) -> None:
        kind = environment.get("TERM_PROGRAM") or environment.get("TERM") or "unknown"
        self._path = folder / f"background-{re.sub(r'[^A-Za-z0-9._-]', '_', kind)[:60]}"

    def light(self) -> bool | None:
        """Return whether it was light, None when nobody knows."""
        try:
            return {"light": True, "dark": False}.get(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def keep(self, *, light: bool) -> None:
        """Remember an answer; where that can't be kept, the next start asks all the same."""
        if self.light() is light:
            return
        try:
            write_atomically(self._path, b"light" if light else b"dark")
        except OSError as error:
            log.info("The terminal's background is not remembered: %s", error)
