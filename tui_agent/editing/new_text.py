"""Creates the text that replaces a match, with the file's line endings and unchanged lines.

Pure.
"""

import bisect
import re

from tui_agent.editing.diffs import Opcode, opcodes_between
from tui_agent.lazy import cached_property
from tui_agent.text_files.lines import newline_of, with_newlines

_FEED = re.compile("\n")


class NewText:
    """Creates the new text for each match of one replacement.

    ``text`` is the file's text; the methods take the positions at which a match starts and ends in
    it.
    """

    def __init__(self, text: str, old: str, new: str) -> None:
        self._text = text
        self._new = new
        self._feeds = [match.start() for match in _FEED.finditer(text)]
        self._newline = newline_of(text)
        self._by_newline: dict[str, str] = {}
        self._old_lines = _plain_lines(old)
        self._new_lines = _plain_lines(new)

    def plain(self, start: int, end: int) -> str:
        """Return the new text for a match, with the file's line endings near the match."""
        newline = self._newline_near(start, end)
        if newline not in self._by_newline:
            self._by_newline[newline] = with_newlines(self._new, newline)
        return self._by_newline[newline]

    def keeping_unchanged(self, start: int, end: int) -> str:
        """Return the new text for an inexact match, keeping the file's unchanged lines.

        Lines that the edit doesn't change stay as they are in the file. If the match doesn't have
        as many lines as the old text, the result is the same as from `plain`.
        """
        found = _plain_lines(self._text[start:end])
        if len(found) != len(self._old_lines):
            return self.plain(start, end)
        out: list[str] = []
        for tag, old_start, old_end, new_start, new_end in self._changes:
            if tag == "equal":
                out += found[old_start:old_end]
            else:
                out += self._new_lines[new_start:new_end]
        return self._newline_near(start, end).join(out)

    @cached_property
    def _changes(self) -> list[Opcode]:
        return opcodes_between(self._old_lines, self._new_lines)

    def _newline_near(self, start: int, end: int) -> str:
        """Return the most frequent line ending in a span, or in the text if the span has none."""
        first = bisect.bisect_left(self._feeds, start)
        last = bisect.bisect_left(self._feeds, max(start, end - 1))
        feeds = self._feeds[first : last + 1]
        if not feeds:
            return self._newline
        pairs = sum(feed > start and self._text[feed - 1] == "\r" for feed in feeds)
        return "\r\n" if pairs * 2 > len(feeds) else "\n"


def _plain_lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.split("\n")]
