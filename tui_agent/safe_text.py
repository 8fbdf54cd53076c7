"""Text that came from outside made safe for a terminal: nothing in it can act, hide, or change the order of a line.

What is stored stays as it was; this is for the way to the screen, of the full-screen program and of the command line.
"""

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_JOINERS = re.compile("[\u200d\ufe00-\ufe0f]")

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What a terminal acts on or reorders a line by."""


def visible(text: str) -> str:
    """Make control characters and characters without a shape visible, so that they can neither act nor hide.

    Line feeds and tabs stay. ESC becomes ``␛``, what has no picture becomes ``⟨U+202E⟩``.
    """
    return _HIDDEN.sub(_picture, text.replace("\r\n", "\n"))


def readable(text: str) -> str:
    """Make visible only what a terminal would act on; emoji stay joined. For whole answers and outputs."""
    return ACTING.sub(_picture, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = 200) -> str:
    """Return the beginning of a text as one visible line of at most ``limit`` characters.

    What joins emoji is left out, so that the line is as wide as its characters.
    """
    line = " ".join(visible(_JOINERS.sub("", text[: limit * 4])).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
