"""Splits lists of words that are written as one text, separated by spaces and line breaks."""


def listed(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def in_order(text: str) -> tuple[str, ...]:
    """Return the words of a text in the order given."""
    return tuple(text.split())
