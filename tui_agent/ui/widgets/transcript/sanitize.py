"""Makes text from models, tools and users safe to show on a terminal.

Sanitized text contains no control characters except line feed and tab, no lone surrogates, no
characters that reorder a line, and no zero-width characters except combining marks. Therefore, the
width of sanitized text is the sum of its characters' widths, even on terminals that join emoji.
"""

import re
from typing import Final

from tui_agent.safe_text import CONTROLS, INVISIBLE, REORDERING, SEPARATORS, SMUGGLING, codes_of

TAB_SIZE: Final = 4
"""Distance between tab stops, in cells."""

_REPLACEMENT: Final = "\ufffd"

_TABLE: Final[dict[int, str | None]] = {
    **dict.fromkeys(codes_of(CONTROLS + REORDERING + SMUGGLING), _REPLACEMENT),
    **{code: chr(0x2400 + code) for code in codes_of(CONTROLS) if code < 0x20},
    0x7F: "\u2421",
    **dict.fromkeys(codes_of(INVISIBLE)),
    **dict.fromkeys(codes_of(SEPARATORS), " "),
}

_UNSAFE: Final = frozenset(map(chr, _TABLE))
"""The characters that `text` replaces, as a set, because a set is faster to check.

Checking 10 MB with the set takes 0.05 s. With a regular expression, it would take 4 s.
"""

_ESCAPE_SEQUENCE: Final = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colors, cursor, modes
    r"|\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: titles, clipboard, hyperlinks
    r"|[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|[ -/]+[0-~]"  # character sets
    r"|[0-OQ-WYZ\\`-~]"  # single escapes
    r")"
)
_BACKSPACED: Final = re.compile(r"[^\n\x08]\x08")


def text(value: str) -> str:
    """Return a text in which unsafe characters are made visible or removed.

    Every line end in the result is a line feed.
    """
    if "\r" in value:
        value = value.replace("\r\n", "\n").replace("\r", "\n")
    if _UNSAFE.isdisjoint(value):
        return value
    return value.translate(_TABLE)


def output(value: str) -> str:
    """Return a command's output as a terminal would show it, but sanitized and without colors.

    If the output overwrites its own text after a carriage return or a backspace, that text is
    removed.
    """
    if "\x1b" in value:
        value = _ESCAPE_SEQUENCE.sub("", value)
    if "\x08" in value:
        value = _BACKSPACED.sub("", value)
    if "\r" in value:
        # Carriage returns make the terminal overwrite a line, so only the last part that isn't
        # empty stays visible.
        rows = (row.split("\r") for row in value.replace("\r\n", "\n").split("\n"))
        value = "\n".join(next(filter(None, reversed(parts)), "") for parts in rows)
    return text(value)


def line(value: str) -> str:
    """Return a text as one line. It is sanitized, and line feeds and tabs become spaces."""
    return text(value).replace("\n", " ").replace("\t", " ")
