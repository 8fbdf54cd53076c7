"""Text that came from outside made safe for a terminal: nothing in it can act, hide, or change the order of a line.

Text that can't be stored or sent becomes valid on its way into a session (`valid`); everything else
is stored as it was, and made harmless on its way to the screen and to the command line. Which
characters are harmful is decided here.
"""

import re
from collections.abc import Iterator
from typing import Any

from tui_agent.lazy import LazyPattern

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Control characters except tab and line feed. Bodies of character classes: ``a-c`` is a range."""

REORDERING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Marks that change the order of a line."""

SEPARATORS = "\u2028\u2029"
"""Line ends that are none for a terminal."""

JOINERS = "\u200d\ufe00-\ufe0f"
"""Joiners and variation selectors."""

INVISIBLE = (
    JOINERS
    + "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0100-\U000e01ef"
)
"""Characters without a shape or a width."""

SMUGGLING = "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
"""Useless in any text: lone surrogates, annotations, and tags, an alphabet nobody sees that carries
instructions."""

_HIDDEN = LazyPattern(f"[{CONTROLS}{REORDERING}{SEPARATORS}{INVISIBLE}{SMUGGLING}]")
_JOINERS = LazyPattern(f"[{JOINERS}]")
UNSEEN = LazyPattern(f"(?![{JOINERS}])[{CONTROLS}{REORDERING}{SEPARATORS}{INVISIBLE}{SMUGGLING}]")
"""Characters a terminal acts on or nobody sees."""

ACTING = LazyPattern(f"[{CONTROLS}{REORDERING}{SEPARATORS}]")
"""Characters a terminal acts on or reorders a line by."""


_INVALID = LazyPattern("[\0\ud800-\udfff]")


def valid(text: str) -> str:
    """Return storable text: surrogate pairs are joined; lone surrogates and NUL become U+FFFD."""
    if not _INVALID.search(text):
        return text
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\0", "\ufffd")


def valid_texts(value: Any) -> Any:
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
    """Yield the code points of the body of a character class."""
    for first, last in re.findall("(.)(?:-(.))?", characters, re.DOTALL):
        yield from range(ord(first), ord(last or first) + 1)


def visible(text: str, characters: re.Pattern[str] = _HIDDEN) -> str:
    """Make control characters and characters without a shape visible, so that they can neither act nor hide.

    Line feeds and tabs stay. ESC becomes ``␛``, one without a picture becomes ``⟨U+202E⟩``. With
    ``UNSEEN`` emoji stay joined.
    """
    return characters.sub(_picture, text.replace("\r\n", "\n"))


def readable(text: str) -> str:
    """Make visible only characters a terminal acts on; emoji stay joined.

    For whole answers and outputs.
    """
    return ACTING.sub(_picture, text.replace("\r\n", "\n"))


def escaped_json(text: str) -> str:
    """Return the same JSON with every character escaped that acts or can't be seen."""
    return _HIDDEN.sub(_escape, text)


def one_line(text: str, limit: int = 200) -> str:
    """Return the beginning of a text as one visible line of at most ``limit`` characters.

    Joiners of emoji are left out, so that the line is as wide as its characters.
    """
    line = " ".join(visible(_JOINERS.sub("", text[: limit * 4])).split())
    if len(line) <= limit:
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
