"""What was said, so that nobody reads it twice."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


class SayOnce:
    """Remembers what was said in one session, by the sentence or by what it is about."""

    def __init__(self) -> None:
        self._said: set[Hashable] = set()

    def is_new(self, what: Hashable) -> bool:
        """Whether this was not said yet; from now on it was."""
        if what in self._said:
            return False
        self._said.add(what)
        return True

    def news(self, all_there_is: Iterable[T]) -> list[T]:
        """Return what was not said yet, in the order given; from now on it was."""
        return [what for what in all_there_is if self.is_new(what)]

    def forget(self) -> None:
        self._said.clear()
