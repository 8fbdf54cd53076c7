"""Lower case in which every character keeps its offset, for searches that mark what they found. Pure."""

_DOTTED_I = "İ"
"""The only character whose lower case is longer than itself (two characters)."""


def lower_case(text: str) -> str:
    """Return a text in lower case, of the same length: ``İ`` becomes ``i``."""
    return text.replace(_DOTTED_I, "i").lower()
