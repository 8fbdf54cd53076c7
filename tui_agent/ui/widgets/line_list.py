"""`LineList`, the base class of list widgets, and `spread`, which lays out a row.

A list builds only its visible rows, so even a very long list is drawn quickly.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import ClassVar, Literal, TypeVar

from rich.segment import Segment
from textual import events, on
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui_agent.app.status_marks import STYLES as STANDING_STYLES
from tui_agent.ui.bindings import hidden
from tui_agent.ui.widgets.cursor import CursorWidget
from tui_agent.ui.widgets.transcript.lines import StyledSpan, crop_spans, spans_width

STYLES = (
    "text",
    "strong",
    "faint",
    "accent",
    "good",
    "warning",
    "error",
    "bar",
    "match",
    "cursor",
    "heading",
    *STANDING_STYLES,
)
"""Names of the styles that a row can use.

Each name belongs to a component class ``line-list--NAME``.
"""
E = TypeVar("E", bound=Enum)


def next_member(choices: type[E], current: E) -> E:
    """Return the enum member after ``current``, or the first member if ``current`` is the last."""
    rows = list(choices)
    return rows[(rows.index(current) + 1) % len(rows)]


class LineList(CursorWidget, ScrollView, can_focus=True):
    """A scrolling list of rows with a cursor.

    A subclass calls `set_count` to set the number of rows, and defines `row` to return the content
    of a row.
    """

    STYLE_PREFIX = "line-list"
    HEADED = False
    """Whether the top line shows the `heading`, which doesn't scroll with the rows."""
    CURSOR: ClassVar[Literal["always", "focused", "never"]] = "always"
    """When the row under the cursor is highlighted: always, only while focused, or never.

    If the value is ``focused``, it is highlighted while the list has the focus. If it is ``never``,
    the list doesn't scroll to the cursor either.
    """

    COMPONENT_CLASSES = {f"line-list--{name}" for name in STYLES}
    BINDINGS = [
        hidden("up,k", "move(-1)", "up"),
        hidden("down", "move(1)", "down"),
        hidden("pageup", "move(0, -1)", "page up"),
        hidden("pagedown,space", "move(0, 1)", "page down"),
        hidden("home", "go(0)", "first"),
        hidden("end", "go(-1)", "last"),
        hidden("enter", "choose", "choose"),
    ]

    class Highlighted(CursorWidget.Highlighted):
        """Posted when the cursor moves to another row, or when the content of its row changes."""

    class Chosen(CursorWidget.Chosen):
        """Posted when the user chooses a row with Enter or a double click."""

    # -- for subclasses

    row: Callable[[int, int], Sequence[StyledSpan]]
    """A method that takes the index of a row and the width in cells, and returns the row's spans.

    Text beyond the width is cut off.
    """
    heading: Callable[[int], Sequence[StyledSpan]]
    """A method that takes the width in cells and returns the spans of the heading.

    Required if `HEADED`.
    """

    # -- rows

    @property
    def page_height(self) -> int:
        """Number of rows that are visible at once, at least 1."""
        return max(1, self.scrollable_content_region.height - self.HEADED)

    @property
    def page_step(self) -> int:
        return max(1, self.page_height - 1)

    def set_count(self, count: int, *, cursor: int | None = None) -> None:
        """Set the number of rows, and move the cursor to the row ``cursor``.

        If ``cursor`` is None, the cursor stays where it is unless its row no longer exists.
        """
        self.count = count
        self.virtual_size = Size(self.scrollable_content_region.width, count + self.HEADED)
        self.put_cursor(self.cursor if cursor is None else cursor)
        self._show_cursor()
        self.refresh()

    def draw_cursor(self, before: int) -> None:
        self._show_cursor()
        self._refresh_row(before)
        self._refresh_row(self.cursor)

    def _refresh_row(self, index: int) -> None:
        y = index - self.scroll_offset.y + self.HEADED
        if 0 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def _show_cursor(self) -> None:
        top = self.scroll_offset.y
        page = self.page_height
        if self.CURSOR == "never":
            return
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, immediate=True, force=True)
        elif self.cursor >= top + page:
            self.scroll_to(y=self.cursor - page + 1, animate=False, immediate=True, force=True)

    @on(events.Focus)
    @on(events.Blur)
    def _focus_changed(self) -> None:
        self._refresh_row(self.cursor)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, self.count + self.HEADED)
        self._show_cursor()

    # -- keys and mouse

    def on_click(self, event: events.Click) -> None:
        index = self.index_at(event.y)
        if index is None:
            return
        if index == self.cursor and event.chain > 1:
            self.action_choose()
        self.cursor = index

    def index_at(self, y: int) -> int | None:
        """Return the index of the row at line ``y`` of the widget, or None if no row is there."""
        index = y - self.HEADED + self.scroll_offset.y
        if y >= self.HEADED and 0 <= index < self.count:
            return index
        return None

    # -- painting

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if self.HEADED and y == 0:
            return self._strip(self.heading(width), width)
        index = self.index_at(y)
        if index is None:
            return Strip.blank(width, self.style_of("text"))
        has_cursor = self.CURSOR == "always" or (self.CURSOR == "focused" and self.has_focus)
        return self._strip(
            self.row(index, width), width, cursor=index == self.cursor and has_cursor
        )

    def _strip(self, spans: Sequence[StyledSpan], width: int, *, cursor: bool = False) -> Strip:
        shown = crop_spans(list(spans), width)
        used = spans_width(shown)
        ground = " cursor" if cursor else ""
        segments = []
        for text, style in [*shown, (" " * max(0, width - used), "text")]:
            segments.append(Segment(text, self.style_of(style + ground)))
        return Strip(segments, max(used, width)).adjust_cell_length(width)


def spread(left: Sequence[StyledSpan], right: Sequence[StyledSpan], width: int) -> list[StyledSpan]:
    """Return the spans of a line with ``left`` at its start and ``right`` at its end.

    The line is ``width`` cells wide, and ``left`` is cut off where it would overlap ``right``. If
    ``right`` is empty, the line may be shorter.
    """
    wanted = spans_width(right)
    if not wanted:
        return list(crop_spans(list(left), width))
    room = max(0, width - wanted - 1)
    kept = crop_spans(list(left), room)
    gap = width - wanted - spans_width(kept)
    return [*kept, (" " * max(1, gap), "text"), *right]
