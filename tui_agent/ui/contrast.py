"""Text in a theme's colours that can be read: the contrast of WCAG 2, and colours that have enough of it."""

from collections.abc import Mapping
from typing import Final

from textual.color import Color, ColorParseError

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
