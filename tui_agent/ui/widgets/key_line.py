"""The line of keys at the bottom of a screen or a dialog: as many as fit whole, each to be clicked too."""

import re
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.ui.widgets.clickable import clickable
from tui_agent.ui.widgets.status import Hint

_GAP: Final = 2
_NAMES: Final = {
    "esc": "escape",
    "/": "slash",
    "?": "question_mark",
    "ctrl+]": "ctrl+right_square_bracket",
    "↑": "up",
    "↓": "down",
}
"""Keys as Textual calls them, where they are shown in another way."""
_PRESSABLE: Final = re.compile(
    r"[a-zA-Z]|(?:ctrl|shift|alt)\+\w+|f\d+|tab|space|enter|escape|up|down|slash|question_mark"
)
_ACTIONS: Final = {"←→ fold": "focused.toggle_branch"}
"""The effect of a click on hints of two keys."""
_OBVIOUS: Final = "↑↓"
"""Left out first: whoever sees a list tries them."""


def read_hints(text: str) -> tuple[Hint, ...]:
    """Return the hints of a text like ``enter open  dd delete  esc back``: two spaces between them, one after a key."""
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


def fitting(hints: Sequence[Hint], room: int, keep: int = 1) -> list[Hint]:
    shown = list(hints)
    while len(shown) > keep and _width(shown) > room:
        droppable = shown[: len(shown) - keep]
        obvious = next((at for at, hint in enumerate(droppable) if hint[0] == _OBVIOUS), None)
        del shown[len(droppable) - 1 if obvious is None else obvious]
    return shown


def _width(hints: Sequence[Hint]) -> int:
    return (
        sum(cell_len(key) + bool(label) + cell_len(label) + _GAP for key, label, _ in hints) - _GAP
    )


class KeyLine(Widget):
    """Shows hints; ``show`` changes them."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"key-line--key", "key-line--label"}

    hints: reactive[tuple[Hint, ...]] = reactive((), layout=True)
    """The hints shown where there is room, most important first, the way back last."""

    def __init__(
        self,
        text: str = "",
        *,
        keep: int = 1,
        id: str | None = None,  # noqa: A002 - as Textual calls it
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._keep = keep
        self.set_reactive(KeyLine.hints, read_hints(text))

    def show(self, text: str) -> None:
        self.hints = read_hints(text)

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002 - as inherited
        return max(1, _width(self.hints))

    def render(self) -> Content:
        parts = []
        for key, label, action in fitting(self.hints, self.size.width, self._keep):
            part = clickable(key, ".key-line--key", action)
            if label:
                part += clickable(f" {label}", ".key-line--label", action)
            parts.append(part)
        return Content(" " * _GAP).join(parts)
