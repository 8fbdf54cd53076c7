"""Keeps a message from being shown twice."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


class SayOnce:
    """Remembers which messages were shown, each by its text or by a key for its subject."""

    def __init__(self) -> None:
        self._said: set[Hashable] = set()

    def is_new(self, what: Hashable) -> bool:
        """Return True if ``what`` was not passed before, and remember it."""
        if what in self._said:
            return False
        self._said.add(what)
        return True

    def news(self, candidates: Iterable[T]) -> list[T]:
        """Return the candidates that were not passed before, in the order given, and remember them."""
        return [what for what in candidates if self.is_new(what)]

    def forget(self) -> None:
        self._said.clear()
