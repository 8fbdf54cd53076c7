"""Where a transcript gets its entries from: `EntrySource`.

This module also estimates the heights of entries that aren't loaded, and defines ids and kinds for
items without an entry.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from tui_agent.lazy import dataclass
from tui_agent.session.entries import Entry, kinds
from tui_agent.session.records import Outlines

SizeOf = Callable[[Entry], int]
"""Returns the size of an entry in tokens."""

stored_size: Final[SizeOf] = attrgetter("tokens")
"""Returns the number of tokens stored with an entry."""

LIVE: Final = "live"
"""Kind of items that are not entries, such as the answer being streamed."""

LIVE_ID: Final = 1 << 62
"""Id of the item with the answer being streamed. It is greater than the ids of all entries."""

ACTIVITY_ID: Final = LIVE_ID + (1 << 32)
"""Id of the item with the activity line. It is the last item, so its id is the greatest."""

HIDDEN: Final = frozenset(kinds(lambda kind: not kind.is_shown))
"""Kinds of entries that the conversation never shows."""

_MARKERS: Final = frozenset(kinds(lambda kind: kind.is_marker))


@dataclass
class EntrySource:
    """The entries of a path, oldest first."""

    headers: Outlines
    """Ids, kinds and sizes of all entries."""
    load: Callable[[Sequence[int]], Sequence[Entry]]
    """Returns the entries with the given ids, except unreadable ones. Must not block for long."""


def estimate(kind: str, size: int, width: int) -> int:
    """Return the estimated height of an entry, in lines, including the gap before it.

    ``size`` is the size from the entry's outline (see ``EntryOutline``). ``width`` is in cells.
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
