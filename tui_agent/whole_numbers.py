"""Parses whole numbers that a user, a model, a server or a file wrote, and writes counts."""

_MAX_DIGITS = 18
"""Maximum number of digits in a whole number. With 18 digits, it fits in 64 bits, as SQLite
requires. (Python itself refuses to convert more than 4,300 digits, see
``sys.set_int_max_str_digits``.)"""


def whole_number(text: str) -> int | None:
    """Return the number that a text of 1 to 18 ASCII digits stands for; None for any other text.

    Signs, spaces, digits of other scripts and ``²``, which ``str.isdigit`` accepts, are not
    allowed.
    """
    if len(text) > _MAX_DIGITS or not text.isascii() or not text.isdecimal():
        return None
    return int(text)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 match``, ``12 matches``, ``3 entries``, ``2 days``."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeou":
        noun = f"{noun[:-1]}ie"
    elif noun.endswith(("ch", "s", "x")):
        noun = f"{noun}e"
    return f"{count:,} {noun}s"
