"""Collects a command's output in limited memory, counts its lines, and turns it into plain text."""

import re
from collections import deque

from tui_agent.lazy import LazyPattern

HEAD_BYTES = 8 * 1024 * 1024
HEAD_LINES = 200_000
"""Maximum number of bytes, and of lines, that are kept from the start of an output."""

TAIL_BYTES = 1024 * 1024
TAIL_LINES = 50_000
"""Maximum number of bytes, and of lines, that are kept from the end of an output."""

ERROR_LINES = 20
"""Maximum number of lines between the start and the end of an output that are kept because they
look like errors."""

_ERROR_LINE_BYTES = 400
_ERROR_MARKS = (b"rror", b"RROR", b"ailed", b"FAIL", b"xception", b"raceback", b"anic", b"atal")
"""Parts of words that mark an error line. Searching for fixed bytes is fast enough for hundreds of
megabytes a second."""

_ESCAPES = LazyPattern(
    r"""
    \x1b\[[0-?]*[ -/]*[@-~]            # control sequences: colours, cursor
    # Strings: titles, links, clipboard; an unfinished one ends with its line.
    | \x1b[\]PX^_].*?(?:\x07|\x1b\\|(?=\n)|\Z)
    | \x1b[ -/]*[0-~]                  # two-character escapes
    | \x9b[0-?]*[ -/]*[@-~]
    | \x1b
    """,
    re.VERBOSE,
)
_CONTROLS = LazyPattern(r"[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
_BACKSPACES = LazyPattern(r"[^\n\x08]\x08")
_REWRITTEN = LazyPattern(r"[^\n]*\r(?=[^\n\r])")

_NOT_TEXT = bytes(set(range(32)) - set(b"\a\b\t\n\v\f\r\x1b")) + b"\x7f"
_CONTROL_BYTE = LazyPattern(rb"[" + re.escape(_NOT_TEXT) + rb"]")
_FEW_CONTROLS = 8
_CONTROL_SHARE = 0.02

_NUL_SHARE = 0.3
"""Share of NUL bytes above which output counts as binary. Lists of names may contain a NUL after
each name."""

_LINES_BETWEEN = 20
"""Two binary parts are treated as one if there are at most this many lines between them."""


class Capture:
    """Keeps the start and end of an output, and the lines between them that look like errors."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self._newlines = 0
        self._last = b"\n"
        self._head = bytearray()
        self._tail: deque[tuple[bytes, int]] = deque()
        self._tail_bytes = 0
        self._tail_lines = 0
        self._dropped_bytes = 0
        self._dropped_lines = 0
        self._errors: dict[int, bytes] = {}

    @property
    def total_lines(self) -> int:
        """Number of lines so far, including dropped lines and an unterminated last line."""
        return self._newlines + (self._last != b"\n")

    def feed(self, chunk: bytes) -> None:
        if not chunk:
            return
        self.total_bytes += len(chunk)
        self._last = chunk[-1:]
        room = HEAD_BYTES - len(self._head)
        if room > 0 and self._newlines < HEAD_LINES and not self._tail:
            self._head += chunk[:room]
            self._newlines += chunk.count(b"\n", 0, room)
            chunk = chunk[room:]
        if not chunk:
            return
        self._note_errors(chunk)
        lines = chunk.count(b"\n")
        self._newlines += lines
        self._tail.append((chunk, lines))
        self._tail_bytes += len(chunk)
        self._tail_lines += lines
        while len(self._tail) > 1:
            oldest, lines = self._tail[0]
            if (
                self._tail_bytes - len(oldest) < TAIL_BYTES
                and self._tail_lines - lines < TAIL_LINES
            ):
                return
            self._tail.popleft()
            self._tail_bytes -= len(oldest)
            self._tail_lines -= lines
            self._dropped_bytes += len(oldest)
            self._dropped_lines += lines

    def raw(self) -> bytes:
        """Return the kept bytes; a note and the error lines replace the part that was dropped."""
        kept = [bytes(self._head)]
        if self._dropped_bytes:
            dropped = f"{self._dropped_lines:,} lines, {self._dropped_bytes:,} bytes"
            kept.append(f"\n[{dropped} were not kept]\n".encode())
            last = self._newlines - self._tail_lines
            for number, line in sorted(self._errors.items()):
                if number <= last:
                    kept.append(f"{number}: ".encode() + line + b"\n")
        for chunk, _lines in self._tail:
            kept.append(chunk)
        return b"".join(kept)

    def _note_errors(self, chunk: bytes) -> None:
        """Keep those lines of the chunk that look like errors, with their line numbers.

        If a line continues in another chunk, only its part in this chunk is kept.
        """
        for mark in _ERROR_MARKS:
            position = chunk.find(mark)
            while position >= 0 and len(self._errors) < ERROR_LINES:
                start = chunk.rfind(b"\n", 0, position) + 1
                end = chunk.find(b"\n", position)
                if end < 0:
                    end = len(chunk)
                number = self._newlines + chunk.count(b"\n", 0, start) + 1
                self._errors.setdefault(number, chunk[start:end][:_ERROR_LINE_BYTES])
                position = chunk.find(mark, end)


def plain_text(raw: bytes) -> str:
    """Return output in the form in which the model sees it, as plain text.

    Escape sequences are removed, and control characters except tab and line feed. Binary parts
    become a note with their size; other invalid UTF-8 becomes U+FFFD, and NUL a line feed. If
    carriage returns rewrote a line (a progress bar), only the last version of the line is kept.
    """
    # In text, NUL characters separate names.
    text = (
        _binary_described(raw).decode("utf-8", "replace").replace("\0", "\n").replace("\r\n", "\n")
    )
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = _REWRITTEN.sub("", text).replace("\r", "")
    while "\x08" in text:
        shorter = _BACKSPACES.sub("", text)
        if shorter != text:
            text = shorter
        else:
            text = text.replace("\x08", "")
    return _CONTROLS.sub("", text)


def _binary_described(raw: bytes) -> bytes:
    """Return output with a note in place of each binary part."""
    pieces: list[bytes] = []
    shown = 0
    for start, end in _suspicious(raw):
        part = raw[start:end]
        nuls = part.count(0)
        controls = len(part) - len(part.translate(None, _NOT_TEXT)) - nuls
        many = max(_FEW_CONTROLS, len(part) * _CONTROL_SHARE)
        if controls > many or nuls > max(_FEW_CONTROLS, len(part) * _NUL_SHARE):
            pieces += [
                raw[shown:start],
                f"[{len(part):,} bytes of binary output are not shown.]".encode(),
            ]
            shown = end
    if pieces:
        return b"".join([*pieces, raw[shown:]])
    return raw


def _suspicious(raw: bytes) -> list[tuple[int, int]]:
    """Return the byte ranges of lines with control characters; ranges close together are merged."""
    spans: list[tuple[int, int]] = []
    end = 0
    while (found := _CONTROL_BYTE.search(raw, end)) is not None:
        start = raw.rfind(b"\n", 0, found.start()) + 1
        end = raw.find(b"\n", found.end())
        if end < 0:
            end = len(raw)
        if spans and raw.count(b"\n", spans[-1][1], start) <= _LINES_BETWEEN:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans
