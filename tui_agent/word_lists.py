"""Splits lists of words that source code writes as one text, separated by spaces and line breaks."""


def listed(text: str) -> frozenset[str]:
    """Return the words of a text as a set, for membership tests."""
    return frozenset(text.split())


def in_order(text: str) -> tuple[str, ...]:
    """Return the words of a text as a tuple, in the order of the text."""
    return tuple(text.split())
