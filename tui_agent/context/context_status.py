"""The context status of an entry, as the margin, tree, map and gauge show it."""

from collections.abc import Iterable
from enum import StrEnum


class Standing(StrEnum):
    """How much of an entry is sent to the model, from least to most; users see the values."""

    UNSENT = "not sent"
    """The entry is a record of the program, or was never meant for the model."""
    HIDDEN = "hidden"
    """The user hid the entry, so that nothing of it is sent."""
    CLEARED = "cleared"
    """A placeholder is sent instead, or the part that a prune left."""
    SUMMARISED = "summarised"
    """A summary is sent instead; this is also the status of the summary itself."""
    PINNED = "pinned"
    """The entry is sent unchanged, and carried verbatim through a compaction."""
    SENT = "in context"
    """The entry is sent unchanged."""


def together(found: Iterable[Standing]) -> Standing:
    """Return the status to show for several entries together: the lowest of their statuses.

    UNSENT if there are no entries.
    """
    ranks = list(Standing)
    return min(found, key=ranks.index, default=Standing.UNSENT)
