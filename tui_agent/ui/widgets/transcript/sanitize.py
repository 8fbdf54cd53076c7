"""Text from models, tools and users made harmless for a terminal: the only way text gets into the transcript.

After it, a text holds no control characters except newline and tab, no lone surrogates, nothing that reorders a
line, and no character of zero width except combining marks. Widths of its parts therefore add up, whatever the
terminal thinks of joined emoji.
"""

import re
from typing import Final

TAB_SIZE: Final = 4
"""Cells between tab stops in code."""

_REPLACEMENT: Final = "\ufffd"

_REORDERING = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_INVISIBLE = [
    0x00AD,
    0x034F,
    0x115F,
    0x1160,
    0x17B4,
    0x17B5,
    *range(0x180B, 0x1810),
    *range(0x200B, 0x200E),
    *range(0x2060, 0x2066),
    *range(0x206A, 0x2070),
    0x3164,
    *range(0xFE00, 0xFE10),
    0xFEFF,
    0xFFA0,
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0100, 0xE01F0),
]
_HIDDEN_ASCII = range(0xE0000, 0xE0080)
"""Tag characters: an alphabet nobody sees, used to smuggle instructions. They are shown as replacements."""

_TABLE: Final[dict[int, str | None]] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in {0x09, 0x0A}},
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), _REPLACEMENT),
    **dict.fromkeys(range(0xD800, 0xE000), _REPLACEMENT),
    **dict.fromkeys(_REORDERING, _REPLACEMENT),
    **dict.fromkeys(_HIDDEN_ASCII, _REPLACEMENT),
    **dict.fromkeys(_INVISIBLE),
    **dict.fromkeys(range(0xFFF9, 0xFFFC), _REPLACEMENT),
    0x2028: " ",
    0x2029: " ",
}

_UNSAFE: Final = frozenset(map(chr, _TABLE))
"""As a set, because it is looked for in every text: 10 MB take 0.05 s, with an expression of so many characters 4 s."""

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
    """Return what a command printed as it would have looked: without colours, with overwritten lines overwritten."""
    if "\x1b" in value:
        value = _ESCAPE_SEQUENCE.sub("", value)
    if "\x08" in value:
        value = _BACKSPACED.sub("", value)
    if "\r" in value:
        value = "\n".join(_overwritten(line) for line in value.replace("\r\n", "\n").split("\n"))
    return text(value)


def line(value: str) -> str:
    """Return ``value`` harmless and in one line: newlines and tabs are spaces."""
    return text(value).replace("\n", " ").replace("\t", " ")


def code_line(value: str) -> str:
    """Return one already harmless line of code with its tabs expanded."""
    return value.expandtabs(TAB_SIZE) if "\t" in value else value


def _overwritten(value: str) -> str:
    """Return what is left of a line after its carriage returns; the last text written wins."""
    if "\r" not in value:
        return value
    return next((part for part in reversed(value.split("\r")) if part), "")
