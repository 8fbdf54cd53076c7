"""The context status of an entry, which several screens show."""

from collections.abc import Iterable
from enum import StrEnum


class Standing(StrEnum):
    """How much of an entry is sent to the model, from least to most; users see the values."""

    UNSENT = "not sent"
    """The entry is a record of the program, or was never meant for the model."""
    HIDDEN = "hidden"
    """The user hid the entry, so that nothing of it is sent."""
    CLEARED = "cleared"
    """A placeholder is sent instead of the entry, or only the part of it that a prune left."""
    SUMMARISED = "summarised"
    """A summary is sent instead of the entry. This is also the status of the summary itself."""
    PINNED = "pinned"
    """The entry is sent unchanged, and a compaction copies it verbatim."""
    SENT = "in context"
    """The entry is sent unchanged."""


def together(found: Iterable[Standing]) -> Standing:
    """Return the status to show for several entries together, the lowest of their statuses.

    For no entries, UNSENT is returned.
    """
    ranks = list(Standing)
    return min(found, key=ranks.index, default=Standing.UNSENT)
