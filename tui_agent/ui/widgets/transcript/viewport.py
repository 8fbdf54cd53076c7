"""Draws the visible lines of a transcript, and keeps the scroll position when heights change.

The viewport owns the model, the scroll position and the focused block. pane.py handles keys and the
mouse, and transcript.py handles events. The viewport replaces Textual's own scrolling and
repainting, so that a change redraws only the lines that look different.
"""

import re
import sys
from collections.abc import Collection
from functools import partial
from math import ceil
from typing import Final, NamedTuple

from textual.cache import LRUCache
from textual.geometry import Offset, Region, Size
from textual.reactive import reactive, var
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui_agent.context.context_status import Standing
from tui_agent.ui.later import Later
from tui_agent.ui.widgets.fast_paint import bar_lines, plain_lines
from tui_agent.ui.widgets.transcript.blocks import Block
from tui_agent.ui.widgets.transcript.lines import Line
from tui_agent.ui.widgets.transcript.model import Position, Row, TranscriptModel
from tui_agent.ui.widgets.transcript.paint import (
    COMPONENT_CLASSES,
    Highlight,
    Palette,
    find_all,
    offset_strip,
    paint,
    selected_part,
    text_width,
)
from tui_agent.ui.widgets.transcript.source import LIVE_ID

_KEPT_STRIPS: Final = 1_500


MAX_COLUMN: Final = 126
"""Maximum width of the conversation, in cells.

It is wide enough to show diffs side by side.
"""

ROW_SPAN: Final = 1_000_000
"""Maximum number of lines of an item.

In a selection, the number of an item's first line is the item's index multiplied by this number.
"""

_MAX_ROWS: Final = 50_000
_NO_REGION: Final = Region(0, 0, 0, 0)
"""An empty region, used to request a repaint before it is known which lines to paint.

The lines to paint are chosen when the repaint happens.
"""
WORD: Final = re.compile(r"[\w./~@#%:+-]+|\S")
"""Matches the word that a double click selects. A path or an address is a single word."""


def row_id(index: int, line: int) -> int:
    """Return the number that identifies a line in a selection.

    ``line`` is the line's number in the item at ``index``.
    """
    return index * ROW_SPAN + min(line, ROW_SPAN - 1)


def selected_text(model: TranscriptModel, selection: Selection, bounds: tuple[int, int]) -> str:
    """Return the selected text without decoration, and with wrapped lines joined.

    ``bounds`` are two line numbers (see `row_id`). If the selection has no start, it begins at the
    first of these lines. If it has no end, it ends at the second.
    """
    start = Offset(0, bounds[0]) if selection.start is None else selection.start
    end = Offset(sys.maxsize, bounds[1]) if selection.end is None else selection.end
    parts: list[str] = []
    for row in model.rows(Position(*divmod(start.y, ROW_SPAN)), _MAX_ROWS):
        number = row_id(row.index, row.item_line)
        if number > end.y:
            break
        first = start.x if number == start.y else 0
        last = end.x if number == end.y else sys.maxsize
        if parts:
            parts.append(row.line.join if row.block_line else "\n")
        if not first and (not parts or parts[-1].endswith("\n")) and row.line.join == "\n":
            parts.append(row.line.lead)
        parts.append(row.line.text[first:last])
    return "".join(parts).rstrip("\n")


def _thumb(page: float, extent: float, position: float) -> tuple[float, int, int]:
    """Return ``page``, and the start and the length of the scroll bar's thumb.

    The arguments are in lines, and the start and the length are in eighths of a cell. Both are 0 if
    there is nothing to scroll. Textual's own scroll bar uses the same computation.
    """
    if extent <= page:
        return page, 0, 0
    length = max(1, page * page / extent)
    begin = (page - length) * position / (extent - page)
    return page, int(begin * 8), ceil(length * 8)


class Appearance(NamedTuple):
    """Everything that determines how a visible line looks, except highlights.

    If the line belongs to the focused block, ``focused`` is the text to show at the right edge. It
    is "" for all lines of the block but the first. If the line belongs to another block,
    ``focused`` is None.
    """

    line: Line
    focused: str | None = None
    standing: Standing | None = None


class Viewport(ScrollView):
    """Draws the visible lines of a transcript, and stores the scroll position.

    The scroll position is ``top``, a line of an item. Textual's scroll offset is computed from this
    position. Therefore, the visible lines never move when an estimated height is corrected.
    """

    ALLOW_SELECT = True
    COMPONENT_CLASSES = set(COMPONENT_CLASSES)

    following: var[bool] = var(True, init=False)  # noqa: FBT003 - how Textual spells it
    """Whether the view stays at the end of the conversation when new text arrives."""
    query_text: reactive[str] = reactive("")
    """The text to highlight in all visible lines. Empty if there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.model = TranscriptModel()
        self.top = Position(0)
        """The position of the line at the top of the view."""
        self.focused_block: tuple[int, str] | None = None
        """The focused block: the index of its item, and the block's key. None if there is none."""
        self._palette = Palette(self)
        self._strips: LRUCache[Appearance, Strip] = LRUCache(_KEPT_STRIPS)
        self._rows: list[Row] | None = None
        self._compared: dict[int, Appearance] = {}
        """How each visible line looked when the lines were last checked for changes."""
        self._painted: dict[int, Appearance | None] = {}
        """How each visible line looked when it was last painted. None if the line had highlights.

        A line that looks different now is painted again.
        """
        self._updating_view = False
        self._has_to_compare = False
        """Whether `update_view` was called after the lines were last compared."""
        self._painting = self._has_highlights = False
        self._prefetching = Later(self, self._prefetch)

    # -- size and scroll position

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        bar = super().vertical_scrollbar
        if "render_lines" not in vars(bar):
            bar.render_lines = partial(bar_lines, bar)  # type: ignore[method-assign]
        return bar

    @property
    def page_height(self) -> int:
        """Number of lines that the widget shows at once, according to its last layout.

        ``scrollable_content_region`` can't be used here. It would start another layout in the
        middle of Textual's own layout, and Textual would then miss that the size has changed.
        """
        unused = self.styles.gutter.height + self.scrollbar_gutter.height
        return max(0, self.outer_size.height - unused)

    def on_resize(self) -> None:
        aside = max(0, self.outer_size.width - MAX_COLUMN) // 2
        if self.styles.padding.left != aside:
            # Center the text on a wide screen. Then go on, because a change of the padding doesn't
            # always cause another resize event.
            self.styles.padding = (0, aside)
        width = text_width(self.scrollable_content_region.width)
        if not self.page_height:
            return
        place = self.top.index
        before = 0
        if place < len(self.model):
            before = self.model.heights[place]
        self.model.resize(width)
        if before and not self.following:
            self.top = Position(place, round(self.top.line * self.model.measure(place) / before))
        self.update_view()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if not self._updating_view and round(old_value) != round(new_value):
            self.following = round(new_value) >= self.max_scroll_y
            self.top = Position(*self.model.heights.find(round(new_value)))
            self.update_view()

    def update_view(self) -> None:
        """Measure the visible items, scroll to ``top`` or to the end, and redraw.

        If ``following`` is True, the view scrolls to the end. If there is no line at the position
        ``top``, the nearest line is used. Does nothing until the widget has a size.
        """
        if not self.page_height or self._updating_view:
            return
        if self.following:
            self.top = self._end_position()
        else:
            self.top = self._clamp(self.top)
        self._apply()
        self._rows = None
        self._has_to_compare = True
        self.refresh(_NO_REGION)
        self._prefetching.after_refresh()

    def _exchange_repaint_regions(self) -> Collection[Region]:
        """Return the regions that Textual must draw. Textual calls this just before it draws.

        After a call of `update_view`, the regions include the lines that no longer look as on the
        screen.
        """
        if self._has_to_compare:
            self._has_to_compare = False
            changed = self._changed_lines()
            if changed:
                self._set_dirty(*changed)
        return super()._exchange_repaint_regions()

    def _changed_lines(self) -> list[Region]:
        before = self._compared
        self._compared = {y: self._appearance(row) for y, row in enumerate(self.visible_rows())}
        changed: list[Region] = []
        for y in range(self.page_height):
            appearance = self._compared.get(y)
            if appearance != before.get(y) or appearance != self._painted.get(y):
                changed.append(Region(0, y, self.outer_size.width, 1))
        return changed

    def _apply(self) -> None:
        """Set the scroll height and the scroll offset from ``top``, and update the scroll bar.

        The conversation is neither laid out nor painted again.
        """
        extent = Size(self.scrollable_content_region.width, self.model.heights.total)
        offset = self.model.heights.offset(self.top.index) + self.top.line
        self._updating_view = True
        try:
            self.set_reactive(Widget.virtual_size, extent)
            self.set_reactive(Widget.scroll_y, offset)
            self.set_reactive(Widget.scroll_target_y, offset)
            self._update_scrollbar()
        finally:
            self._updating_view = False

    def _update_scrollbar(self) -> None:
        """Pass the scroll height and offset to the scroll bar. If it has changed, redraw it."""
        page = self.page_height
        extent = self.virtual_size.height
        is_needed = extent > page
        if not is_needed and not self.show_vertical_scrollbar:
            return
        bar = self.vertical_scrollbar
        shown = _thumb(bar.window_size, bar.window_virtual_size, bar.position)
        if (
            is_needed
            and self.show_vertical_scrollbar
            and shown == _thumb(page, extent, self.scroll_y)
        ):
            # Set the values without a redraw. A later layout updates the bar's sizes, but not its
            # position.
            bar.set_reactive(ScrollBar.window_virtual_size, extent)
            bar.set_reactive(ScrollBar.position, self.scroll_y)
            return
        self._scroll_update(self.virtual_size)
        bar.position = self.scroll_y

    def _end_position(self) -> Position:
        return self._position_above(Position(len(self.model)), self.page_height)

    def _position_above(self, position: Position, lines: int) -> Position:
        """Return the position ``lines`` lines above a position, or the start of the conversation.

        The items in between are measured.
        """
        index = position.index
        line = position.line
        while lines > line:
            if not index:
                return Position(0)
            lines -= line
            index -= 1
            line = self.model.measured_height(index)
        return Position(index, line - lines)

    def _clamp(self, position: Position) -> Position:
        """Return the position nearest to the given one that leaves no empty space below the end."""
        if not len(self.model):
            return Position(0)
        index = min(position.index, len(self.model) - 1)
        height = self.model.measured_height(index)
        if index == position.index:
            line = min(position.line, max(height - 1, 0))
        else:
            line = 0
        below = height - line
        place = index + 1
        while below < self.page_height and place < len(self.model):
            below += self.model.measured_height(place)
            place += 1
        found = Position(index, line)
        if below >= self.page_height:
            return found
        return self._end_position()

    def _prefetch(self) -> None:
        """Measure the items within a page of the visible ones.

        Scrolling by a page then finds no estimates to correct.
        """
        before = self.model.heights.total
        missing = self.page_height
        index = self.top.index - 1
        while missing > 0 and index >= 0:
            missing -= self.model.measured_height(index)
            index -= 1
        missing = self.page_height * 2
        index = self.top.index
        while missing > 0 and index < len(self.model):
            missing -= self.model.measured_height(index)
            index += 1
        if self.model.heights.total != before:
            self._apply()

    def scroll_to_position(self, position: Position, *, follow: bool = False) -> None:
        """Scroll a position to the top of the view, or as close to the top as possible.

        If ``follow`` is True, or if the end is visible after scrolling, the view then stays at the
        end when text is added.
        """
        self.following = follow
        self.top = position
        self.update_view()
        self.following = follow or self.scroll_offset.y >= self.max_scroll_y

    def action_move(self, lines: int, pages: int = 0) -> None:
        lines += pages * max(self.page_height - 1, 1)
        if lines < 0:
            self.scroll_to_position(self._position_above(self.top, -lines))
            return
        index = self.top.index
        line = self.top.line + lines
        while index < len(self.model) and line >= (height := self.model.measured_height(index)):
            line -= height
            index += 1
        self.scroll_to_position(
            Position(index, line) if index < len(self.model) else self._end_position()
        )

    # -- painting

    def visible_rows(self) -> list[Row]:
        if self._rows is None:
            if self.page_height:
                self._rows = list(self.model.rows(self.top, self.page_height))
            else:
                self._rows = []
        return self._rows

    def row_at(self, y: int) -> Row | None:
        rows = self.visible_rows()
        if 0 <= y < len(rows):
            return rows[y]
        return None

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._palette.clear()
        self._strips.clear()
        self._compared.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint the lines of the widget in the region ``crop``.

        A flag is set while painting, because Textual also calls ``render_line`` to find the text
        under the mouse.
        """
        self._painting = True
        self._has_highlights = bool(self.query_text or self.text_selection)
        try:
            return plain_lines(self, crop, self.render_line) or super().render_lines(crop)
        finally:
            self._painting = False

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = self.row_at(y)
        if row is None:
            self._painted.pop(y, None)
            return Strip.blank(width, self._palette["text"])
        if not self._painting:
            return offset_strip(row.line, width, row_id(row.index, row.item_line))
        appearance = self._appearance(row)
        self._painted[y] = appearance
        highlights: list[Highlight] = []
        if self._has_highlights:
            for start, end in find_all(row.line.text, self.query_text):
                highlights.append(Highlight(start, end, self._palette["match"]))
            highlights += selected_part(
                row.line, row_id(row.index, row.item_line), self.text_selection, self.screen
            )
        if highlights:
            self._painted[y] = None
            return paint(
                appearance.line,
                width,
                self._palette,
                standing=appearance.standing,
                focused=appearance.focused,
                highlights=highlights,
            )
        strip = self._strips.get(appearance)
        if strip is None or strip.cell_length != width:
            strip = self._strips[appearance] = paint(
                appearance.line,
                width,
                self._palette,
                standing=appearance.standing,
                focused=appearance.focused,
            )
        return strip

    def _appearance(self, row: Row) -> Appearance:
        block = row.block
        if block is None:
            return Appearance(row.line)
        focused = None
        if self.has_focus and self.focused_block == (row.index, block.key):
            # The block's first line also shows the id of the entry, in the form that commands
            # accept.
            entry_id = self.model.entry_of(row.index, block)
            focused = ""
            if row.block_line == 0 and entry_id < LIVE_ID:
                focused = f"#{entry_id}"
        return Appearance(row.line, focused, block.standing)

    # -- selection

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text, and the line feed that separates it from other widgets' text.

        A selection without a start begins at the first visible line, and a selection without an end
        stops at the last visible line. Returns None if no line is visible.
        """
        rows = self.visible_rows()
        if not rows:
            return None
        first = row_id(rows[0].index, rows[0].item_line)
        last = row_id(rows[-1].index, rows[-1].item_line)
        return selected_text(self.model, selection, (first, last)), "\n"

    # -- blocks

    def focused_target(self) -> tuple[int, Block] | None:
        """Return the index of the focused block's item, and the block.

        Returns None if no block has the focus, or if the focused block no longer exists.
        """
        if self.focused_block is None or self.focused_block[0] >= len(self.model):
            return None
        index, key = self.focused_block
        block = self.model.item(index).block(key)
        if block is None:
            return None
        return (index, block)
