"""Makes the text colours of each theme readable (contrast by WCAG 2); defines the program's themes.

The background colours on which text is drawn are called grounds. :func:`readable_variables` adjusts
a theme's text colours until they are readable on every ground.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

MIN_CONTRAST: Final = 4.5
"""Minimum contrast ratio between text and every background that it is drawn on (WCAG 2, AA)."""

MIN_SIGN_CONTRAST: Final = 3.0
"""Minimum contrast ratio between the background and bars, guides and the margin."""

_COLOURED: Final = ("primary", "secondary", "accent", "success", "warning", "error")

TINTS: Final = {
    "ground-raised": ("foreground", 0.06),
    "ground-you": ("foreground", 0.09),
    "ground-cursor": ("primary", 0.22),
    "ground-focused": ("primary", 0.15),
    "ground-hover": ("foreground", 0.10),
    "ground-added": ("success", 0.12),
    "ground-removed": ("error", 0.12),
    "ground-added-part": ("success", 0.25),
    "ground-removed-part": ("error", 0.25),
    "ground-match": ("warning", 0.35),
}
"""Tinted backgrounds of text (grounds). Each is the background mixed with a theme colour; the
number is the share of that colour (0 to 1)."""

GROUNDS: Final = (
    "background",
    "ground-raised",
    "ground-you",
    "ground-cursor",
    "ground-focused",
    "ground-hover",
    "ground-added",
    "ground-removed",
)
"""The backgrounds on which the text of every role has to be readable."""

COLOURED_ROLES: Final = {
    "role-link": "primary",
    "role-you": "accent",
    "role-tool": "secondary",
    "role-heading": "secondary",
}
"""Roles of coloured text (links, the user's messages, tool calls, headings), each with the theme
colour on which the role's colour is based."""

SHADES: Final = {
    "text-muted": 0.62,
    "text-disabled": 0.62,
    "foreground-muted": 0.62,
    "role-output": 0.85,
    "role-waiting": 0.5,
}
"""Roles whose text is paler than normal text. The number is the share of the foreground colour (0
to 1) when it is mixed with the background."""

TEXT_ROLES: Final = (*(f"text-{colour}" for colour in _COLOURED), *COLOURED_ROLES, *SHADES)

SIGNS: Final = {
    "sign": ("primary", 1.0),
    "sign-secondary": ("secondary", 1.0),
    "sign-warning": ("warning", 1.0),
    "sign-muted": ("foreground", 0.3),
}
"""Colours of bars, guides and the margin. Each is the background mixed with a theme colour; the
number is the share of that colour (0 to 1)."""

_OTHER_HUES: Final = (180, 275, 320, 230, 150)
"""Other hues, in degrees. If a role's hue is too close to another role's, they are tried in this
order."""

_MIN_HUE_DISTANCE: Final = 25
"""Minimum distance between the hues of two roles, in degrees on the colour wheel."""

_MIN_SATURATION: Final = 0.45
_BLEND_STEPS: Final = 40

WHITE_LIGHT: Final = replace(
    BUILTIN_THEMES["textual-light"], background="#ffffff", surface="#f5f5f5", panel="#ececec"
)
"""A light theme. It replaces Textual's, whose grey background stands out on a white terminal."""


def contrast(text: Color, background: Color) -> float:
    """Return the contrast ratio of two colours, from 1 (equal) to 21 (black and white)."""
    lighter, darker = sorted((_luminance(text), _luminance(background)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = map(_linear, color.normalized)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(share: float) -> float:
    if share <= 0.04045:
        return share / 12.92
    return float(((share + 0.055) / 1.055) ** 2.4)


def with_contrast(color: Color, grounds: Sequence[Color], least: float = MIN_CONTRAST) -> Color:
    """Blend ``color`` with black or white until it has enough contrast with every ground.

    Grounds are background colours. Enough means a ratio of at least ``least``. Uses black if the
    first ground is light, else white. Returns pure black or white if no blend has enough contrast.
    """
    if _luminance(grounds[0]) > 0.18:
        end = Color(0, 0, 0)
    else:
        end = Color(255, 255, 255)
    steps = (color.blend(end, step / _BLEND_STEPS) for step in range(_BLEND_STEPS + 1))
    for one in steps:
        if all(contrast(one, ground) >= least for ground in grounds):
            return one
    return end


def readable_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return a theme's variables, with readable colours added for texts, backgrounds and symbols.

    A colour that the theme defines for a role is adjusted only as far as needed. If the theme uses
    the terminal's own colours, which are unknown, each role is set to a theme colour's name
    instead.
    """
    try:
        colours: dict[str, Color] = {}
        for name in ("background", "foreground", *_COLOURED):
            colours[name] = Color.parse(variables[name])
    except (KeyError, ColorParseError):
        return {**variables, **_colour_names(variables)}
    background = colours["background"]
    foreground = colours["foreground"]
    if background.ansi is not None:
        return {**variables, **_colour_names(variables)}
    tinted: dict[str, Color] = {}
    for name, (colour, share) in TINTS.items():
        tinted[name] = background.blend(colours[colour], share)
    found = {name: color.hex for name, color in tinted.items()}
    grounds = [background, *(tinted[name] for name in GROUNDS if name in tinted)]
    foreground = with_contrast(foreground, [*grounds, *tinted.values()])
    texts = {f"text-{name}": Color.parse(variables[f"text-{name}"]) for name in _COLOURED}
    texts |= _distinct_colours(colours)
    texts |= {name: background.blend(foreground, share) for name, share in SHADES.items()}
    for name in (*COLOURED_ROLES, *SHADES):
        if _is_color(variables, name):
            texts[name] = Color.parse(variables[name])
    found |= {name: with_contrast(color, grounds).hex for name, color in texts.items()}
    for name, (colour, share) in SIGNS.items():
        found[name] = with_contrast(
            background.blend(colours[colour], share), [background], MIN_SIGN_CONTRAST
        ).hex
    return {**variables, **found, "foreground": foreground.hex}


def _is_color(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").startswith("#") and len(variables[name]) == 7


def _distinct_colours(colours: Mapping[str, Color]) -> dict[str, Color]:
    """Return a colour for each role in `COLOURED_ROLES`, so that the roles' hues can be told apart.

    A role has the theme's colour unless its hue is within `_MIN_HUE_DISTANCE` of the hue of an
    earlier role or of the error colour; then its hue is one of `_OTHER_HUES`. The role of the
    user's messages is not compared with the error colour.
    """
    found: dict[str, Color] = {}
    for role, name in COLOURED_ROLES.items():
        taken = [_degrees(color) for color in (*found.values(), colours["error"])]
        if role == "role-you":
            taken = taken[:-1]
        color = colours[name]
        if any(_distance(_degrees(color), hue) < _MIN_HUE_DISTANCE for hue in taken):
            _, saturation, lightness = color.hsl
            hue = _other_hue(taken)
            color = Color.from_hsl(hue / 360, max(saturation, _MIN_SATURATION), lightness)
        found[role] = color
    return found


def _other_hue(taken: Sequence[float]) -> float:
    """Return the first of `_OTHER_HUES` that is far enough from all hues in ``taken``.

    Far enough means at least `_MIN_HUE_DISTANCE`. If there is no such hue, returns the hue with the
    largest distance.
    """
    distances: dict[float, float] = {}
    for hue in _OTHER_HUES:
        distances[hue] = min(_distance(hue, other) for other in taken)
        if distances[hue] >= _MIN_HUE_DISTANCE:
            return hue
    return max(distances, key=distances.__getitem__)


def _degrees(color: Color) -> float:
    return color.hsl.h * 360


def _distance(one: float, other: float) -> float:
    """Return the distance between two hues on the colour wheel, 0 to 180 degrees."""
    return abs((one - other + 180) % 360 - 180)


def _colour_names(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the terminal's colour names for the colours of a theme that has no RGB values.

    The result covers the colours of roles, grounds (backgrounds of text) and signs.
    """
    default = variables.get("foreground", "ansi_default")
    names = {
        role: variables.get(f"text-{colour}", default) for role, colour in COLOURED_ROLES.items()
    }
    names |= {name: default for name in SHADES if name.startswith("role-")}
    names |= {name: variables.get(colour, default) for name, (colour, _share) in SIGNS.items()}
    return {**names, **dict.fromkeys(TINTS, variables.get("background", "ansi_default"))}


def _with_exact_roles(theme: Theme, muted: str) -> Theme:
    """Return the theme with its own colours for text, and with ``muted`` for paler text."""
    variables = {f"text-{name}": str(getattr(theme, name)) for name in _COLOURED}
    roles = {role: str(getattr(theme, name)) for role, name in COLOURED_ROLES.items()}
    roles["role-heading"] = str(theme.success)
    faint = dict.fromkeys((*SHADES, "foreground-disabled"), muted)
    return replace(theme, variables={**variables, **roles, **faint, "text": str(theme.foreground)})


HIGH_CONTRAST: Final = _with_exact_roles(
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

HIGH_CONTRAST_LIGHT: Final = _with_exact_roles(
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
