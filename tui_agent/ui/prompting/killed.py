"""The text that the prompt's keys for words and lines deleted last, to be inserted again. Pure."""

from collections.abc import Callable
from typing import TypeAlias

Spot: TypeAlias = "tuple[str, tuple[int, int]]"
"""A prompt's text and the location of its cursor, row and column."""


class Killed:
    """Keeps the deleted text, as a shell does for Ctrl+Y.

    Deletions that follow each other without an edit or a move between them are joined.
    """

    def __init__(self) -> None:
        self.text = ""
        self._left: Spot | None = None
        """What the last deletion left."""

    def add(self, text: str, *, forward: bool, before: Spot, after: Spot) -> None:
        """Keep a deleted text; ``forward``: it was after the cursor.

        ``before`` and ``after`` are the prompt's text and cursor at the two ends of the deletion.
        """
        if not text:
            return
        if before != self._left:
            self.text = text
        elif forward:
            self.text = self.text + text
        else:
            self.text = text + self.text
        self._left = after

    def rewrite(self, clean: Callable[[str], str]) -> None:
        """Apply ``clean`` to the kept text."""
        self.text = clean(self.text)
