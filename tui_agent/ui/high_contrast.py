"""Themes of the program's own: two with the most contrast (7 to 1 and more), and Textual's light one on white."""

from dataclasses import replace
from typing import Final

from textual.theme import BUILTIN_THEMES, Theme


def _told(theme: Theme, muted: str) -> Theme:
    """Return a theme whose coloured text has the very colours of its name, and whose faint text is ``muted``."""
    names = ("primary", "secondary", "accent", "success", "warning", "error")
    variables = {f"text-{name}": str(getattr(theme, name)) for name in names}
    faint = dict.fromkeys(("text-muted", "text-disabled", "foreground-muted", "foreground-disabled"), muted)
    return replace(theme, variables={**variables, **faint, "text": str(theme.foreground)})


HIGH_CONTRAST: Final = _told(
    Theme(
        name="high-contrast",
        background="#000000",
        surface="#141414",
        panel="#1f1f1f",
        foreground="#ffffff",
        primary="#6cb6ff",
        secondary="#9ecbff",
        accent="#ffd700",
        success="#7ee787",
        warning="#ffc04d",
        error="#ffa3a3",
    ),
    muted="#d6d6d6",
)

HIGH_CONTRAST_LIGHT: Final = _told(
    Theme(
        name="high-contrast-light",
        dark=False,
        background="#ffffff",
        surface="#f2f2f2",
        panel="#e9e9e9",
        foreground="#000000",
        primary="#00357a",
        secondary="#003a63",
        accent="#5a006b",
        success="#003d16",
        warning="#553300",
        error="#7a0000",
    ),
    muted="#2b2b2b",
)

WHITE_LIGHT: Final = replace(BUILTIN_THEMES["textual-light"], background="#ffffff", surface="#f5f5f5", panel="#ececec")
"""Takes the place of Textual's light theme, whose grey stands out on a white terminal."""
