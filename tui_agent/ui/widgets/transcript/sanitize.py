"""Text from models, tools and users made harmless for a terminal: the only way text gets into the transcript.

After it, a text holds no control characters except newline and tab, no lone surrogates, nothing
that reorders a line, and no character of zero width except combining marks. Widths of its parts
therefore add up, whatever the terminal thinks of joined emoji.
"""

import re
from typing import Final

from tui_agent.safe_text import CONTROLS, INVISIBLE, REORDERING, SEPARATORS, SMUGGLING, codes_of

TAB_SIZE: Final = 4
"""Cells between tab stops in code."""

_REPLACEMENT: Final = "\ufffd"

_TABLE: Final[dict[int, str | None]] = {
    **dict.fromkeys(codes_of(CONTROLS + REORDERING + SMUGGLING), _REPLACEMENT),
    **{code: chr(0x2400 + code) for code in codes_of(CONTROLS) if code < 0x20},
    0x7F: "\u2421",
    **dict.fromkeys(codes_of(INVISIBLE)),
    **dict.fromkeys(codes_of(SEPARATORS), " "),
}

_UNSAFE: Final = frozenset(map(chr, _TABLE))
"""As a set, because it is looked for in every text: 10 MB take 0.05 s, with an expression of so
many characters 4 s."""

_ESCAPE_SEQUENCE: Final = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, modes
    r"|\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: titles, clipboard, hyperlinks
    r"|[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|[ -/]+[0-~]"  # character sets
    r"|[0-OQ-WYZ\\`-~]"  # single escapes
    r")"
)
_BACKSPACED: Final = re.compile(r"[^\n\x08]\x08")


def text(value: str) -> str:
    """Return ``value`` with everything harmful made visible or taken out; newlines become line feeds, tabs stay."""
    if "\r" in value:
        value = value.replace("\r\n", "\n").replace("\r", "\n")
    if _UNSAFE.isdisjoint(value):
        return value
    return value.translate(_TABLE)


def output(value: str) -> str:
    """Return a command's output as it would have looked: without colours, with overwritten lines overwritten."""
    if "\x1b" in value:
        value = _ESCAPE_SEQUENCE.sub("", value)
    if "\x08" in value:
        value = _BACKSPACED.sub("", value)
    if "\r" in value:
        # Of the texts between the carriage returns of a line the last one is seen.
        rows = (row.split("\r") for row in value.replace("\r\n", "\n").split("\n"))
        value = "\n".join(next(filter(None, reversed(parts)), "") for parts in rows)
    return text(value)


def line(value: str) -> str:
    """Return ``value`` harmless and in one line: newlines and tabs are spaces."""
    return text(value).replace("\n", " ").replace("\t", " ")
