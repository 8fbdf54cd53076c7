"""Text in a theme's colours that can be read: the contrast of WCAG 2, and themes of our own that have enough of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

MIN_CONTRAST: Final = 5.8
"""Contrast of coloured text with the background: 4.5 is asked for, and text also stands on tinted rows."""

_COLOURED: Final = ("primary", "secondary", "accent", "success", "warning", "error")
_STEPS: Final = 20


def contrast(text: Color, background: Color) -> float:
    """Return the contrast ratio of two colours, 1 to 21."""
    lighter, darker = sorted((_luminance(text), _luminance(background)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: Color) -> float:
    shares = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized]
    return 0.2126 * shares[0] + 0.7152 * shares[1] + 0.0722 * shares[2]


def readable(text: Color, background: Color) -> Color:
    """Return the colour nearest to ``text``, on the way to black or white, that can be read on a background."""
    end = Color(0, 0, 0) if _luminance(background) > 0.18 else Color(255, 255, 255)
    steps = (text.blend(end, step / _STEPS) for step in range(_STEPS + 1))
    return next((color for color in steps if contrast(color, background) >= MIN_CONTRAST), end)


def readable_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return a theme's variables with colours of text that can be read on its background; others stay."""
    try:
        background = Color.parse(variables["background"])
        found = {name: Color.parse(variables[name]) for name in (f"text-{colour}" for colour in _COLOURED)}
    except (KeyError, ColorParseError):
        return dict(variables)
    if background.ansi is not None or any(color.ansi is not None for color in found.values()):
        return dict(variables)
    return {**variables, **{name: readable(color, background).hex for name, color in found.items()}}


def _exact(theme: Theme, muted: str) -> Theme:
    """Return a theme whose coloured text has the very colours of its name, and whose faint text is ``muted``."""
    variables = {f"text-{name}": str(getattr(theme, name)) for name in _COLOURED}
    faint = dict.fromkeys(("text-muted", "text-disabled", "foreground-muted", "foreground-disabled"), muted)
    return replace(theme, variables={**variables, **faint, "text": str(theme.foreground)})


HIGH_CONTRAST: Final = _exact(
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

HIGH_CONTRAST_LIGHT: Final = _exact(
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
