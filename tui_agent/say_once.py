"""Keeps a message from being shown twice."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


class SayOnce:
    """Remembers which messages were shown, each by its text or by a key for its subject."""

    def __init__(self) -> None:
        self._said: set[Hashable] = set()

    def remember(self, what: Hashable) -> bool:
        """Remember ``what``; return True if it was not remembered before."""
        if what in self._said:
            return False
        self._said.add(what)
        return True

    def remember_all(self, candidates: Iterable[T]) -> list[T]:
        """Remember the candidates; return those that were not remembered before, in the order given."""
        return [what for what in candidates if self.remember(what)]

    def forget(self) -> None:
        self._said.clear()
