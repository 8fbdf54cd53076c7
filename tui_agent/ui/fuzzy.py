"""Scores how well the letters of a query fit a text, in bounded time."""

from collections.abc import Sequence
from math import prod

from textual.fuzzy import FuzzySearch

_MAX_MATCHINGS = 2_000
"""Ways to match that are tried; Textual's search tries them all, and their number grows exponentially."""


def fuzzy_match(search: FuzzySearch, query: str, text: str) -> tuple[float, Sequence[int]]:
    """Return a score and the offsets that matched; 0 where the letters don't stand in the text in this order.

    The best way to match counts, the first one where trying all would take long.
    """
    wanted, lower = query.lower(), text.lower()
    if wanted in lower or prod(lower.count(letter) for letter in wanted) <= _MAX_MATCHINGS:
        return search.match(wanted, text)
    offsets: list[int] = []
    for letter in wanted:
        at = lower.find(letter, offsets[-1] + 1 if offsets else 0)
        if at < 0:
            return 0.0, ()
        offsets.append(at)
    return 1.0, offsets
