"""`CursorWidget`, the base class of widgets that draw their own lines and have a cursor.

It moves the cursor, posts messages about it, and caches the styles of component classes.
"""

from typing import ClassVar

from rich.style import Style as RichStyle
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from tui_agent.lazy import dataclass


class CursorWidget(Widget):
    """A widget with a cursor on one of ``count`` positions, which are numbered from 0.

    A subclass binds keys to the actions, and draws the cursor.
    """

    ALLOW_SELECT = False
    STYLE_PREFIX: ClassVar[str]
    """Prefix of the names of the widget's component classes, without the ``--`` after the
    prefix."""

    cursor: var[int] = var(0, init=False)

    @dataclass
    class Highlighted(Message):
        """Posted when the cursor has moved, or the position under it has new content."""

        index: int

    @dataclass
    class Chosen(Message):
        """Posted when the user chooses a position with Enter or a double click."""

        index: int

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.count = 0
        self._styles: dict[str, RichStyle] = {}

    @property
    def page_step(self) -> int:
        """Number of positions by which keys such as Page Down move the cursor."""
        raise NotImplementedError

    def validate_cursor(self, cursor: int) -> int:
        return min(max(0, cursor), max(0, self.count - 1))

    def watch_cursor(self, before: int, cursor: int) -> None:
        self.draw_cursor(before)
        self.post_message(self.Highlighted(cursor))

    def draw_cursor(self, before: int) -> None:
        """Redraw after the cursor has left the position ``before``.

        By default, redraws the whole widget.
        """
        del before
        self.refresh()

    def put_cursor(self, place: int) -> None:
        """Move the cursor to a position; post `Highlighted` even if it was already there."""
        if self.validate_cursor(place) == self.cursor:
            self.post_message(self.Highlighted(self.cursor))
        self.cursor = place

    def action_move(self, places: int, pages: int = 0) -> None:
        self.cursor += places + pages * self.page_step

    def action_go(self, place: int) -> None:
        """Move the cursor to a position; -1 is the last one."""
        if place < 0:
            place += self.count
        self.cursor = place

    def action_choose(self) -> None:
        if self.count:
            self.post_message(self.Chosen(self.cursor))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def style_of(self, names: str) -> RichStyle:
        """Return the combined style of component classes.

        ``names`` are the classes' names without `STYLE_PREFIX`, separated by spaces, such as ``bar
        cursor``.
        """
        if names not in self._styles:
            classes = [f"{self.STYLE_PREFIX}--{name}" for name in names.split()]
            self._styles[names] = self.get_visual_style(*classes).rich_style
        return self._styles[names]
