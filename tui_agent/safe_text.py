"""Makes text from outside the program safe for a terminal.

Replaces control characters, invisible characters, and characters that change the direction of text.
Some characters can't be stored or sent. Callers replace these with `valid` when a text enters a
session. All other characters are stored unchanged, and replaced only when the text is shown on the
screen or the command line.
"""

import re
from collections.abc import Iterator
from typing import Any

from tui_agent.lazy import LazyPattern

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Control characters except tab and line feed. This constant and the following ones are meant for
the brackets of a regular expression's character class."""

REORDERING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Invisible marks that change the direction of text within a line."""

SEPARATORS = "\u2028\u2029"
"""Unicode's line and paragraph separators, which some programs treat as line breaks, but terminals don't."""

JOINERS = "\u200d\ufe00-\ufe0f"
"""The zero-width joiner and the variation selectors, which are parts of many emoji."""

INVISIBLE = (
    JOINERS
    + "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0100-\U000e01ef"
)
"""Characters that are invisible, because they have no glyph or no width."""

SMUGGLING = "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
"""Characters that have no use in any text: lone surrogates, annotation marks, and tag characters.
The last are an invisible alphabet that can hide instructions."""

_HIDDEN = LazyPattern(f"[{CONTROLS}{REORDERING}{SEPARATORS}{INVISIBLE}{SMUGGLING}]")
_JOINERS = LazyPattern(f"[{JOINERS}]")
UNSEEN = LazyPattern(f"(?![{JOINERS}])[{CONTROLS}{REORDERING}{SEPARATORS}{INVISIBLE}{SMUGGLING}]")
"""Matches harmful or invisible characters, except the joiners that are parts of emoji."""

ACTING = LazyPattern(f"[{CONTROLS}{REORDERING}{SEPARATORS}]")
"""Matches characters that a terminal acts on, or that reorder or break a line."""

_BREAKING = LazyPattern(f"[{CONTROLS}\t\n{REORDERING}{SEPARATORS}]")
"""Matches the characters of `ACTING`, and also tab and line feed, which break the columns and lines
of a list."""

_INVALID = LazyPattern("[\0\ud800-\udfff]")


def valid(text: str) -> str:
    """Return a text in a form that can be stored in files and in the database.

    Joins surrogate pairs, and replaces lone surrogates and NUL with U+FFFD.
    """
    if not _INVALID.search(text):
        return text
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\0", "\ufffd")


def valid_texts(value: Any) -> Any:
    """Return a JSON value in which `valid` has been applied to every string, including keys."""
    match value:
        case str():
            return valid(value)
        case dict():
            return {valid_texts(key): valid_texts(item) for key, item in value.items()}
        case list() | tuple():
            return type(value)(map(valid_texts, value))
        case _:
            return value


def codes_of(characters: str) -> Iterator[int]:
    """Yield the code points of the characters in a character class of a regular expression.

    ``characters`` is the body of the class, such as `CONTROLS`.
    """
    for first, last in re.findall("(.)(?:-(.))?", characters, re.DOTALL):
        yield from range(ord(first), ord(last or first) + 1)


def visible(text: str, characters: re.Pattern[str] = _HIDDEN) -> str:
    """Return the text with harmful and invisible characters replaced by visible symbols.

    Line feeds and tabs stay, and CRLF becomes a line feed. ESC becomes ``␛``; a character without a
    symbol becomes its code, as in ``⟨U+202E⟩``. With ``characters=UNSEEN`` the joiners of emoji stay.
    """
    return characters.sub(_picture, text.replace("\r\n", "\n"))


def readable(text: str) -> str:
    """Return the text with only the characters of `ACTING` replaced by visible symbols.

    Use this for whole answers and outputs. Invisible characters stay, so that emoji are drawn
    correctly.
    """
    return ACTING.sub(_picture, text.replace("\r\n", "\n"))


def listed_name(name: str) -> str:
    """Return a file name or path as a single line for a list, with line feeds replaced by ``␊``.

    ``text_files.names`` finds the file again by the name that this returns.
    """
    return _BREAKING.sub(_picture, name)


def escaped_json(text: str) -> str:
    """Return a JSON text in which harmful and invisible characters are replaced by JSON escapes."""
    return _HIDDEN.sub(_escape, text)


def one_line(text: str, limit: int = 200) -> str:
    """Return the beginning of a text as one line that is safe to show.

    The line has at most ``limit`` characters, and ends with ``…`` if the text is longer. White
    space becomes single spaces. The joiners in emoji are removed, so that the width of the line is
    the sum of its characters' widths.
    """
    text = text.strip(" \t\n")
    beginning = text[: limit * 4]
    line = " ".join(visible(_JOINERS.sub("", beginning)).split())
    if len(line) <= limit and beginning == text:
        return line
    return line[: limit - 1] + "…"


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"⟨U+{code:04X}⟩"
