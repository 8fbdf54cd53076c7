"""`EntrySource`, from which a transcript gets its entries.

This module also estimates the heights of entries that aren't loaded, and defines the ids and kinds
of items that have no entry.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from tui_agent.lazy import dataclass
from tui_agent.session.entries import Entry, kinds
from tui_agent.session.records import Outlines

SizeOf = Callable[[Entry], int]
"""A function that returns the size of an entry, in tokens."""

stored_size: Final[SizeOf] = attrgetter("tokens")
"""Return the size stored with an entry, in tokens."""

LIVE: Final = "live"
"""The kind of items that aren't entries, such as the answer that is being streamed."""

LIVE_ID: Final = 1 << 62
"""The id of the item that shows the answer being streamed.

The id is greater than the ids of all entries.
"""

ACTIVITY_ID: Final = LIVE_ID + (1 << 32)
"""The id of the item with the activity line.

This item is the last one, so its id is the greatest.
"""

HIDDEN: Final = frozenset(kinds(lambda kind: not kind.is_shown))
"""Kinds of entries that the conversation never shows."""

_MARKERS: Final = frozenset(kinds(lambda kind: kind.is_marker))


@dataclass
class EntrySource:
    """The entries that a transcript shows, oldest first."""

    headers: Outlines
    """The ids, kinds and sizes of all entries."""
    load: Callable[[Sequence[int]], Sequence[Entry]]
    """Returns the entries with the given ids, except for entries that can't be read.

    It must not block for long.
    """


def estimate(kind: str, size: int, width: int) -> int:
    """Return the estimated height of an entry, in lines, including the gap before it.

    ``size`` is the size in the entry's outline (see ``EntryOutline``), and ``width`` is the width
    of the conversation in cells.
    """
    is_empty = kind == "assistant" and not size
    if kind in HIDDEN or is_empty:
        return 0
    if kind == "tool_result":
        return 1
    if kind in _MARKERS:
        return 2
    if kind == "assistant":
        return 1 + size * 5 // (width * 4) + size // 200
    if kind == "shell":
        return 2 + min(size // width, 12)
    return 3 + min(size // width, 30)
