"""The words for an entry's context status, which the margin, tree, map and gauge share."""

from collections.abc import Iterable
from enum import StrEnum


class Standing(StrEnum):
    """How much of an entry the model sees, from least to most; the values are shown to people."""

    UNSENT = "not sent"
    """Nothing of it is sent: it is the program's own record, or was excluded from the start."""
    HIDDEN = "hidden"
    """Nothing of it is sent: the user hid it."""
    CLEARED = "cleared"
    """A placeholder is sent in its place, or what a prune left of it."""
    SUMMARISED = "summarised"
    """A summary is sent in its place; also the summary itself."""
    PINNED = "pinned"
    """Sent unchanged, and carried verbatim through a compaction."""
    SENT = "in context"
    """Sent unchanged."""


def together(found: Iterable[Standing]) -> Standing:
    """Return the status of entries that are shown as one: that of the entry the model sees least of."""
    ranks = list(Standing)
    return min(found, key=ranks.index, default=Standing.UNSENT)
