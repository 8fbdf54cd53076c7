"""`KeyLine`, the line of key hints at the bottom of a screen or dialog, and functions for hints.

The status line uses these functions, too, to choose and draw its hints.
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
"""A key hint: the name of the key, a label, and the action that a click runs ("" for no action)."""

_GAP: Final = 2
_NAMES: Final = {
    "esc": "escape",
    "/": "slash",
    "?": "question_mark",
    "ctrl+]": "ctrl+right_square_bracket",
    "↑": "up",
    "↓": "down",
}
"""Textual's names of the keys in hints, for keys that hints name differently."""
_PRESSABLE: Final = re.compile(
    r"[a-zA-Z]|(?:ctrl|shift|alt)\+\w+|f\d+|tab|space|enter|escape|up|down|slash|question_mark"
)
_ACTIONS: Final = {"←→ fold": "focused.toggle_branch"}
"""The action that a click on a hint runs, for hints that name two keys, by the text of the hint."""
_OBVIOUS: Final = "↑↓"
"""The keys whose hint is the first to be left out of a narrow line, because users try these keys
anyway."""


def read_hints(text: str) -> tuple[Hint, ...]:
    """Parse key hints in the form ``enter open  esc back``.

    Hints are separated by two spaces, and a key is separated from its label by one space. A click
    on a hint presses the key if `_PRESSABLE` matches the key's name. Otherwise, the click runs the
    action that `_ACTIONS` contains for the hint, if there is one.
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
    """Return the key hints that fit in a line of ``room`` cells.

    The last ``keep`` hints are always returned. If the line is too narrow for all hints, the hint
    for ``↑↓`` is left out first, and then further hints, beginning with the last that may be left
    out.
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
    """Return key hints as one line, in which keys and labels have different styles.

    Their classes are ``STYLE--key`` and ``STYLE--label``.
    """
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
    """Shows as many key hints as fit in one line. A click on most hints runs the key's action."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"key-line--key", "key-line--label"}

    hints: reactive[tuple[Hint, ...]] = reactive((), layout=True)
    """The key hints, most important first, except that hints that must always be shown are at the
    end."""

    def __init__(
        self,
        text: str = "",
        *,
        keep: int = 1,
        id: str | None = None,  # noqa: A002 - as Textual calls it
        classes: str | None = None,
    ) -> None:
        """Create the line with the hints in ``text``, which `read_hints` parses.

        The last ``keep`` hints are always shown.
        """
        super().__init__(id=id, classes=classes)
        self._keep = keep
        self.set_reactive(KeyLine.hints, read_hints(text))

    def show(self, text: str) -> None:
        self.hints = read_hints(text)

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002 - as inherited
        return max(1, _width(self.hints))

    def render(self) -> Content:
        return render_hints(fit_hints(self.hints, self.size.width, self._keep), "key-line")
