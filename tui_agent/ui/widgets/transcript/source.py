"""The source of a transcript's entries, and height estimates of entries that are not loaded."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from tui_agent.lazy import dataclass
from tui_agent.session.entries import Entry, kinds
from tui_agent.session.records import Outlines

SizeOf = Callable[[Entry], int]

stored_size: Final[SizeOf] = attrgetter("tokens")
"""Returns the tokens that an entry was stored with."""

LIVE: Final = "live"
"""Kind of items that are not entries, such as the streamed answer."""

LIVE_ID: Final = 1 << 62
"""Id of the streamed answer, greater than every entry's."""

ACTIVITY_ID: Final = LIVE_ID + 1
"""Id of the activity line, the greatest one."""

HIDDEN: Final = frozenset(kinds(lambda kind: not kind.is_shown))

_MARKERS: Final = frozenset(kinds(lambda kind: kind.is_marker))


@dataclass
class EntrySource:
    """The entries of a path, root first: headers of all, and ``load`` for the entries."""

    headers: Outlines
    load: Callable[[Sequence[int]], Sequence[Entry]]
    """Returns the entries with the given ids; called on the event loop, so it must be quick."""


def estimate(kind: str, size: int, width: int) -> int:
    """Estimate the lines of an entry, with the gap before it, from its kind and stored size."""
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
