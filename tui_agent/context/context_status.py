"""Defines the context status of an entry, which says on several screens how the entry is sent."""

from collections.abc import Iterable
from enum import StrEnum


class Standing(StrEnum):
    """How much of an entry is sent to the model, from least to most; users see the values."""

    UNSENT = "not sent"
    """The entry is never sent, because it is a record of the program or not meant for the model."""
    HIDDEN = "hidden"
    """The user hid the entry, so that nothing of it is sent."""
    CLEARED = "cleared"
    """Instead of the entry, only a placeholder is sent, or the part of the entry that a prune
    left."""
    SUMMARISED = "summarised"
    """A summary is sent instead of the entry. This is also the status of the summary itself."""
    PINNED = "pinned"
    """The entry is sent unchanged, and compactions copy it verbatim because the user pinned it."""
    SENT = "in context"
    """The entry is sent unchanged."""


def together(found: Iterable[Standing]) -> Standing:
    """Return the status to show for several entries together, which is the lowest of theirs.

    For no entries, UNSENT is returned.
    """
    ranks = list(Standing)
    return min(found, key=ranks.index, default=Standing.UNSENT)
