"""Keeps the text that was deleted last with the prompt's keys for deleting words and lines.

Ctrl+Y inserts this text again.
"""

from collections.abc import Callable
from typing import TypeAlias

Spot: TypeAlias = "tuple[str, tuple[int, int]]"
"""A prompt's text, and the row and column of its cursor."""


class KilledText:
    """Keeps the text that was deleted last, as a shell does for Ctrl+Y.

    Consecutive deletions, without an edit or a move of the cursor in between, are joined.
    """

    def __init__(self) -> None:
        self.text = ""
        self._after_last: Spot | None = None
        """The prompt's text and cursor after the last deletion, to find out whether a deletion
        follows directly."""

    def add(self, text: str, *, forward: bool, before: Spot, after: Spot) -> None:
        """Add a deleted text to the text that can be inserted again.

        ``forward`` says that the text was deleted after the cursor. ``before`` and ``after`` are
        the prompt's text and cursor before and after the deletion. If neither has changed since the
        last deletion, the texts are joined; otherwise, the new text replaces the old one.
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
        """Replace the kept text by the result of ``clean``, for example to remove secrets."""
        self.text = clean(self.text)
