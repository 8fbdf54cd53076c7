"""A terminal's screen that keeps every text drawn on it; imports pyte."""

from collections import Counter
from itertools import groupby
from operator import attrgetter, itemgetter
from unicodedata import combining, normalize

import pyte
from wcwidth import wcwidth

from tui_agent.lazy import frozen


@frozen
class Part:
    """Cells of a row that look alike."""

    text: str
    stands_out: bool


MAX_JOINED = 32
"""Characters in one cell; no letter has more."""


class TerminalScreen(pyte.Screen):
    """pyte's screen, which drops the rest of a text behind a character that takes no cell.

    Vowel signs, joiners, variation selectors and zero-width spaces are among those.
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
        """Return the text of each row, with the spaces at its end."""
        columns = range(self.columns)
        return ["".join(self.buffer[row][at].data for at in columns) for row in range(self.lines)]

    def parts(self, *, cursor: bool = False) -> list[list[Part]]:
        """Return the rows in parts: what is reversed, or alone in front of its colour, stands out.

        So does the cursor if wanted.
        """
        cells = [[self.buffer[row][at] for at in range(self.columns)] for row in range(self.lines)]
        texts = Counter(
            colour
            for row in cells
            for colour, run in groupby(row, attrgetter("bg"))
            if any(cell.data.strip() for cell in run)
        )
        rare = {colour for colour, number in texts.items() if number == 1} - {"default", "black"}
        marked = [[cell.reverse or cell.bg in rare for cell in row] for row in cells]
        if cursor and not self.cursor.hidden:
            marked[self.cursor.y][min(self.cursor.x, self.columns - 1)] = True
        return [
            [
                Part("".join(cell.data for cell, _ in run), stands_out)
                for stands_out, run in groupby(zip(row, marks, strict=True), itemgetter(1))
            ]
            for row, marks in zip(cells, marked, strict=True)
        ]

    def _join(self, character: str) -> None:
        """Add a character without a cell of its own to the one before it; control characters are left out."""
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
