"""Remembers which messages were shown, so that callers don't show a message twice."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


class SayOnce:
    """The set of messages that were already shown, each by its text or by a key for its subject."""

    def __init__(self) -> None:
        self._said: set[Hashable] = set()

    def remember(self, what: Hashable) -> bool:
        """Remember the message ``what`` as said; return True if it had not been said before."""
        if what in self._said:
            return False
        self._said.add(what)
        return True

    def remember_all(self, candidates: Iterable[T]) -> list[T]:
        """Remember all messages in ``candidates``; return the new ones, in the order given."""
        return [what for what in candidates if self.remember(what)]

    def forget(self) -> None:
        """Forget all messages, so that each may be shown again."""
        self._said.clear()
