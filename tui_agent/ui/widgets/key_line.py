"""`KeyLine`, the line of key hints at the bottom of a screen or dialog; and the parsing of hints.

The status line uses the same functions to choose and draw its hints.
"""

import re
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.ui.widgets.clickable import clickable

Hint = tuple[str, str, str]
"""A key, its label, and the action that a click runs ("" for none)."""

_GAP: Final = 2
_NAMES: Final = {
    "esc": "escape",
    "/": "slash",
    "?": "question_mark",
    "ctrl+]": "ctrl+right_square_bracket",
    "↑": "up",
    "↓": "down",
}
"""Textual's names of the keys that hints show under another name."""
_PRESSABLE: Final = re.compile(
    r"[a-zA-Z]|(?:ctrl|shift|alt)\+\w+|f\d+|tab|space|enter|escape|up|down|slash|question_mark"
)
_ACTIONS: Final = {"←→ fold": "focused.toggle_branch"}
"""The actions to run when the user clicks a hint that names two keys."""
_OBVIOUS: Final = "↑↓"
"""Keys whose hint is left out first if room is short, because users try these keys anyway."""


def read_hints(text: str) -> tuple[Hint, ...]:
    """Parse hints such as ``enter open  esc back``.

    Two spaces separate hints, and one space separates a key from its label. A click on a hint
    presses its key if `_PRESSABLE` matches the key's name; otherwise the click runs the hint's
    action in `_ACTIONS`, if any.
    """
    hints: list[Hint] = []
    for part in re.split(r" {2,}", text.strip()):
        key, _, label = part.partition(" ")
        name = _NAMES.get(key, key)
        action = _ACTIONS.get(part, "")
        if _PRESSABLE.fullmatch(name):
            action = f"app.simulate_key('{name}')"
        if key:
            hints.append((key, label, action))
    return tuple(hints)


def fit_hints(hints: Sequence[Hint], room: int, keep: int = 1) -> list[Hint]:
    """Return the hints that fit in ``room`` cells.

    The last ``keep`` hints always stay. If the others don't fit, ``↑↓`` is left out first, then as
    many as necessary from the end.
    """
    shown = list(hints)
    while len(shown) > keep and _width(shown) > room:
        droppable = shown[: len(shown) - keep]
        keys = [hint[0] for hint in droppable]
        if _OBVIOUS in keys:
            del shown[keys.index(_OBVIOUS)]
        else:
            del shown[len(droppable) - 1]
    return shown


def render_hints(hints: Sequence[Hint], style: str) -> Content:
    """Return hints as one line. The classes ``STYLE--key`` and ``STYLE--label`` set its styles."""
    parts = []
    for key, label, action in hints:
        part = clickable(key, f".{style}--key", action)
        if label:
            part += clickable(f" {label}", f".{style}--label", action)
        parts.append(part)
    return Content(" " * _GAP).join(parts)


def _width(hints: Sequence[Hint]) -> int:
    width = -_GAP
    for key, label, _action in hints:
        width += cell_len(f"{key} {label}".rstrip()) + _GAP
    return width


class KeyLine(Widget):
    """Shows the key hints that fit in its line. Most hints can be clicked; see `read_hints`."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"key-line--key", "key-line--label"}

    hints: reactive[tuple[Hint, ...]] = reactive((), layout=True)
    """The hints, most important first; the hints that are always shown come last."""

    def __init__(
        self,
        text: str = "",
        *,
        keep: int = 1,
        id: str | None = None,  # noqa: A002 - as Textual calls it
        classes: str | None = None,
    ) -> None:
        """``text`` is parsed by `read_hints`; the last ``keep`` hints are always shown."""
        super().__init__(id=id, classes=classes)
        self._keep = keep
        self.set_reactive(KeyLine.hints, read_hints(text))

    def show(self, text: str) -> None:
        self.hints = read_hints(text)

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002 - as inherited
        return max(1, _width(self.hints))

    def render(self) -> Content:
        return render_hints(fit_hints(self.hints, self.size.width, self._keep), "key-line")
