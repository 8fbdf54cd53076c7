"""Regular expressions that are compiled when they are first used.

What failures mean takes a hundred of them, and most runs of the program see none.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property


class LazyPattern:
    """An expression with the methods of a compiled one that are used here."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first place where it fits."""
        return self._compiled.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """Return whether it fits at the beginning."""
        return self._compiled.match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Return whether it fits the whole text."""
        return self._compiled.fullmatch(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield every place where it fits."""
        return self._compiled.finditer(text)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
        """Return the text with something else where it fits."""
        return self._compiled.sub(replacement, text)
