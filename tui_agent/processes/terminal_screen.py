"""A terminal's screen, based on pyte, that handles characters of zero width correctly."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from unicodedata import combining, normalize

import pyte
from pyte.screens import Char
from wcwidth import wcwidth

from tui_agent.lazy import frozen

MAX_JOINED = 32
"""Maximum characters combined in one cell; no letter needs more."""


@frozen
class Part:
    """Adjacent cells of a row. Either all of them are highlighted, or none is."""

    text: str
    stands_out: bool

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()


class TerminalScreen(pyte.Screen):
    """A pyte screen that keeps the text after a character of zero width, which pyte would drop.

    Such characters are vowel signs, joiners, variation selectors and zero-width spaces.
    """

    def draw(self, data: str) -> None:
        if data.isascii():
            super().draw(data)
            return
        start = 0
        for at, character in enumerate(data):
            if wcwidth(character) > 0 or combining(character):
                continue
            super().draw(data[start:at])
            self._join(character)
            start = at + 1
        super().draw(data[start:])

    def texts(self) -> list[str]:
        """Return the text of each row, including spaces at its end."""
        return [_text(self._cells(row)) for row in range(self.lines)]

    def parts(self, *, cursor: bool = False) -> list[list[Part]]:
        """Return each row as a list of parts, which are highlighted or not.

        Cells with reversed colours count as highlighted, and so does text whose background colour
        no other text has. With ``cursor``, the cursor's cell also counts as highlighted.
        """
        rare = self._rare_colours()
        found = []
        for row in range(self.lines):
            cells = self._cells(row)
            marks = [cell.reverse or cell.bg in rare for cell in cells]
            if cursor and row == self.cursor.y and not self.cursor.hidden:
                marks[min(self.cursor.x, self.columns - 1)] = True
            found.append(_parts_of(cells, marks))
        return found

    def _cells(self, row: int) -> list[Char]:
        return [self.buffer[row][at] for at in range(self.columns)]

    def _rare_colours(self) -> set[str]:
        """Return the background colours, except the usual ones, that only one run of text has."""
        texts = Counter[str]()
        for row in range(self.lines):
            for colour, run in groupby(self._cells(row), attrgetter("bg")):
                texts[colour] += bool(_text(run).strip())
        found = {colour for colour, number in texts.items() if number == 1}
        return found - {"default", "black"}

    def _join(self, character: str) -> None:
        """Add a character of zero width to the cell before the cursor; drop control characters."""
        at = self.cursor.x - 1
        if wcwidth(character) < 0 or at < 0:
            return
        row = self.buffer[self.cursor.y]
        if not row[at].data and at > 0:
            at -= 1  # The second cell of a wide character.
        cell = row[at]
        if len(cell.data) >= MAX_JOINED:
            return
        row[at] = cell._replace(data=normalize("NFC", cell.data + character))


def _text(cells: Iterable[Char]) -> str:
    return "".join(cell.data for cell in cells)


def _parts_of(cells: list[Char], marks: list[bool]) -> list[Part]:
    parts: list[Part] = []
    start = 0
    for stands_out, run in groupby(marks):
        end = start + len(list(run))
        parts.append(Part(_text(cells[start:end]), stands_out))
        start = end
    return parts
