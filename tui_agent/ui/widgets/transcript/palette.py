"""Style keys to Rich styles: every colour of the transcript is a component class that a theme's CSS fills in."""

from collections.abc import Callable
from typing import Final

from rich.style import Style as RichStyle
from textual.style import Style

from tui_agent.app.status_marks import STYLES as STANDING_STYLES

PREFIX: Final = "transcript--"

STYLES: Final = frozenset(
    {
        # text
        "text", "muted", "strong", "em", "strike", "link", "url", "code-inline", "bullet", "rule", "quote-bar",
        "heading1", "heading2", "heading3", "heading4", "reasoning",
        # code
        "code", "syntax-comment", "syntax-keyword", "syntax-string", "syntax-constant", "syntax-definition",
        "syntax-name",
        # diffs and tool output
        "output", "added", "removed", "added-sign", "removed-sign", "added-part",
        "removed-part", "line-number", "path",
        # blocks
        "user", "user-bar", "tool", "title", "marker", "action", "focus", "focused",
        "status-running", "status-ok", "status-error", "status-warning", "status-idle",
        # states of a line
        "match", "match-current",
        "standing-told", *STANDING_STYLES,
    }
)  # fmt: skip
"""Names a style key may hold."""

COMPONENT_CLASSES: Final = frozenset(f"{PREFIX}{name}" for name in STYLES)

ACTION: Final = "act:"
"""What a style key's part that names an action begins with."""

LINK: Final = "url:"
"""What a style key's part that names a link's address begins with."""


class Palette:
    """Resolves style keys with a widget's ``get_visual_style``; forget everything when styles change."""

    def __init__(self, get_visual_style: Callable[..., Style]) -> None:
        self._get_visual_style = get_visual_style
        self._cache: dict[str, RichStyle] = {}

    def clear(self) -> None:
        self._cache.clear()

    def __getitem__(self, key: str) -> RichStyle:
        style = self._cache.get(key)
        if style is None:
            if len(self._cache) > 2_000:
                self._cache.clear()
            style = self._cache[key] = self._resolve(key)
        return style

    def _resolve(self, key: str) -> RichStyle:
        names = key.split()
        classes = [f"{PREFIX}{name}" for name in names if name in STYLES]
        style: RichStyle = self._get_visual_style(*classes).rich_style
        if key == "focused":
            return RichStyle(bgcolor=style.bgcolor, bold=style.bold, reverse=style.reverse)
        address = next((name.removeprefix(LINK) for name in names if name.startswith(LINK)), None)
        return style + RichStyle(link=address) if address else style


def action_of(key: str) -> str | None:
    return next((part.removeprefix(ACTION) for part in key.split() if part.startswith(ACTION)), None)


def link_of(key: str) -> str | None:
    """Return the address a style key holds, if any."""
    return next((part.removeprefix(LINK) for part in key.split() if part.startswith(LINK)), None)
