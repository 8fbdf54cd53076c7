"""A terminal's screen that keeps every text drawn on it; imports pyte."""

from unicodedata import combining, normalize

import pyte
from wcwidth import wcwidth


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

    def _join(self, character: str) -> None:
        """Add a character without a cell of its own to the one before it; control characters are left out."""
        at = self.cursor.x - 1
        if wcwidth(character) < 0 or at < 0:
            return
        row = self.buffer[self.cursor.y]
        if not row[at].data and at > 0:
            at -= 1  # The second cell of a wide character.
        cell = row[at]
        row[at] = cell._replace(data=normalize("NFC", cell.data + character))
