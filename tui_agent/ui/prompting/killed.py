"""Keeps the text that the prompt's word and line keys deleted last, so Ctrl+Y can insert it."""

from collections.abc import Callable
from typing import TypeAlias

Spot: TypeAlias = "tuple[str, tuple[int, int]]"
"""A prompt's text, and the row and column of its cursor."""


class KilledText:
    """Keeps the last deleted text, as a shell does for Ctrl+Y.

    Consecutive deletions, without an edit or a move of the cursor in between, are joined.
    """

    def __init__(self) -> None:
        self.text = ""
        self._after_last: Spot | None = None
        """The prompt's text and cursor after the last deletion."""

    def add(self, text: str, *, forward: bool, before: Spot, after: Spot) -> None:
        """Keep a deleted text. ``forward`` says that it was after the cursor.

        ``before`` and ``after`` are the prompt's text and cursor before and after the deletion.
        """
        if not text:
            return
        if before != self._after_last:
            self.text = text
        elif forward:
            self.text = self.text + text
        else:
            self.text = text + self.text
        self._after_last = after

    def rewrite(self, clean: Callable[[str], str]) -> None:
        """Apply ``clean`` to the kept text."""
        self.text = clean(self.text)
