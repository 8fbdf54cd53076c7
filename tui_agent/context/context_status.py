"""How the model has an entry: the words that margin, tree, map and gauge share."""

from collections.abc import Iterable
from enum import StrEnum


class Standing(StrEnum):
    """How much of an entry the model sees, from least to most; the values are shown to people."""

    UNSENT = "not sent"
    """Not at all: kept from it, or nothing for a model."""
    HIDDEN = "hidden"
    """Not at all: you hid it."""
    CLEARED = "cleared"
    """A placeholder stands in its place, or the rest a prune left of it."""
    SUMMARISED = "summarised"
    """A summary stands for it; also the summary itself."""
    PINNED = "pinned"
    """As it is, and a compaction carries it verbatim."""
    SENT = "in context"
    """As it is."""


def together(found: Iterable[Standing]) -> Standing:
    """Return the standing of several entries that are shown as one: that of which the model has least."""
    ranks = list(Standing)
    return min(found, key=ranks.index, default=Standing.UNSENT)
