"""Where entries come from: the port of the transcript, and estimates of entries not loaded."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from tui_agent.lazy import dataclass
from tui_agent.session.entries import Entry, kinds
from tui_agent.session.records import Outlines

SizeOf = Callable[[Entry], int]

stored_size: Final[SizeOf] = attrgetter("tokens")
"""Returns the tokens an entry was stored with, where no model is asked."""

LIVE: Final = "live"
"""The kind of the answer that is being streamed and of other items that are no entries."""

LIVE_ID: Final = 1 << 62
"""The id of the answer being streamed: behind every entry."""

ACTIVITY_ID: Final = LIVE_ID + 1
"""The id of the activity line: behind everything."""

HIDDEN: Final = frozenset(kinds(lambda kind: not kind.is_shown))

_MARKERS: Final = frozenset(kinds(lambda kind: kind.is_marker))


@dataclass
class EntrySource:
    """The entries of a path, root first: all in outline, and bodies on demand."""

    headers: Outlines
    load: Callable[[Sequence[int]], Sequence[Entry]]
    """Returns some entries in the order of their ids; called from the event loop, so it must be
    quick."""


def estimate(kind: str, size: int, width: int) -> int:
    """Return how many lines an entry of this kind and size probably takes, its gap included."""
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
