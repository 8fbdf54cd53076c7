"""What the program says to the terminal beside drawing, and what it knows about it."""

import os
import re
from collections.abc import Mapping
from enum import Enum

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS

from tui_agent.app.format import one_line

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f]")


class EnterKeys(Enum):
    """Enter with modifiers, which Textual knows from the kitty protocol only."""

    ALT = "alt+enter"


ENTER_SEQUENCES: Mapping[str, EnterKeys] = {
    "\x1b\r": EnterKeys.ALT,
    "\x1b\n": EnterKeys.ALT,
}
"""What terminals without the kitty protocol send: ESC before the character."""


def know_enter_keys() -> None:
    """Teach Textual's parser those sequences; it drops Alt otherwise (Textual issue 6378)."""
    for sequence, key in ENTER_SEQUENCES.items():
        ANSI_SEQUENCES_KEYS.setdefault(sequence, (key,))  # type: ignore[attr-defined]  # declared as a mapping, made as a dict


def title_sequence(title: str) -> str:
    """Return the sequence that sets the terminal's title; nothing in ``title`` can end or extend it."""
    return f"\x1b]2;{_UNSAFE.sub('', one_line(title, 80))}\x07"


PUSH_TITLE, POP_TITLE = "\x1b[22;2t", "\x1b[23;2t"
"""Keep the terminal's title aside, and put it back."""


def background_is_light(environment: Mapping[str, str] = os.environ) -> bool | None:
    """Return whether the terminal's background is light as far as its environment says, None when it does not.

    Reads ``COLORFGBG`` (rxvt, Konsole, iTerm2 and others): foreground and background as ANSI colour numbers, of
    which 7 and 9 to 15 are light.
    """
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    if not background.isdecimal():
        return None
    return int(background) in {7, *range(9, 16)}


def default_theme(environment: Mapping[str, str] = os.environ, *, last: bool | None = None) -> str:
    """Return the theme to use when the user chose none, as long as the terminal itself has not answered.

    ``last`` is whether its background was light the last time, None when nobody knows.
    """
    told = background_is_light(environment)
    return theme_for(light=bool(last if told is None else told))


def theme_for(*, light: bool) -> str:
    """Return the theme for a terminal's background."""
    return "textual-light" if light else "textual-dark"
