"""The `Plot` widget, a bar chart with a cursor. The screen with a session's timeline uses it."""

from itertools import accumulate

from rich.segment import Segment
from textual import events, on
from textual.geometry import Size
from textual.strip import Strip

from tui_agent.app.format import tokens
from tui_agent.plot import FREE, Cell, Column, Series, columns, stacked
from tui_agent.ui.bindings import hidden
from tui_agent.ui.widgets.cursor import CursorWidget

_GUTTER = 7
"""Width, in cells, of the axis labels on the left of the plot."""
_ROOMY = 60
"""Minimum width of the widget, in cells, at which the axis has labels."""
_EMPTY = Series(((),), 1.0)


class Plot(CursorWidget, can_focus=True):
    """Draws a series of values as bars across the full width of the widget.

    The cursor is on one step of the series. The column that contains this step is highlighted, and
    so is the mark below that column.
    """

    STYLE_PREFIX = "plot"
    COMPONENT_CLASSES = {
        "plot--base",
        "plot--bar",
        "plot--free",
        "plot--mark",
        "plot--axis",
        "plot--cursor",
        "plot--pointer",
    }
    BINDINGS = [
        hidden("left", "move(-1)", "previous step"),
        hidden("right", "move(1)", "next step"),
        hidden("shift+left", "mark(-1)", "previous mark"),
        hidden("shift+right", "mark(1)", "next mark"),
        hidden("pageup,ctrl+left", "move(0, -1)", "back by a tenth"),
        hidden("pagedown,ctrl+right", "move(0, 1)", "forward by a tenth"),
        hidden("home", "go(0)", "first"),
        hidden("end", "go(-1)", "last"),
        hidden("enter", "choose", "choose"),
    ]

    class Highlighted(CursorWidget.Highlighted):
        """Posted when the cursor moves to another step of the series."""

    class Chosen(CursorWidget.Chosen):
        """Posted when the user chooses a step of the series with Enter or a double click."""

    def __init__(self) -> None:
        super().__init__()
        self._series = _EMPTY
        self._arranged_size = Size()
        self.columns: list[Column] = []
        """The columns of the plot, from left to right.

        If the series is long, one column stands for several steps.
        """
        self.edges: list[int] = [0]
        """The cell offsets of the columns' left edges, and of the last column's right edge."""
        self._rows: list[list[Cell]] = []

    def show(self, series: Series, *, cursor: int) -> None:
        """Show a series of values, with the cursor on the step ``cursor``.

        Posts `Highlighted` even if the cursor was already on that step.
        """
        self._series = series
        self.count = series.count
        self._arrange()
        self.put_cursor(cursor)
        self.refresh()

    def _arrange(self) -> None:
        self._arranged_size = self.size
        height = max(1, self.size.height - 1)
        series = self._series
        self.columns = columns(series, self.size.width - self._gutter)
        self.edges = [0, *accumulate(column.cells for column in self.columns)]
        self._rows = []
        for column in self.columns:
            levels = [level[column.peak] for level in series.levels]
            self._rows.append(stacked(levels, series.top, height))

    @property
    def _gutter(self) -> int:
        return _GUTTER if self.size.width >= _ROOMY else 0

    # -- the cursor

    @property
    def page_step(self) -> int:
        return max(1, self.count // 10)

    def action_mark(self, direction: int) -> None:
        marks = self._series.marks
        if direction > 0:
            self.cursor = min((at for at in marks if at > self.cursor), default=self.cursor)
        else:
            self.cursor = max((at for at in marks if at < self.cursor), default=self.cursor)

    def on_click(self, event: events.Click) -> None:
        x = event.x - self._gutter
        at = next((at for at, end in enumerate(self.edges[1:]) if 0 <= x < end), None)
        if at is None:
            return
        if event.chain > 1:
            self.action_choose()
        elif not self.columns[at].first <= self.cursor < self.columns[at].end:
            self.cursor = self.columns[at].peak

    @on(events.MouseScrollUp)
    @on(events.MouseScrollDown)
    def _wheel_turned(self, event: events.MouseEvent) -> None:
        event.stop()
        self.action_move(-1 if isinstance(event, events.MouseScrollUp) else 1)

    # -- painting

    def render_line(self, y: int) -> Strip:
        if self._arranged_size != self.size:
            self._arrange()
        height = max(1, self.size.height - 1)
        if y == 0:
            axis = tokens(round(self._series.top))
        elif y == height - 1 and height > 1:
            axis = "0"
        else:
            axis = ""
        segments = []
        if self._gutter:
            segments = [Segment(f"{axis:>{_GUTTER - 1}} ", self.style_of("axis"))]
        for column, cells in zip(self.columns, self._rows, strict=True):
            lit = column.first <= self.cursor < column.end
            if y < height:
                segments.append(self._cell(cells[y], column.cells, lit=lit))
            else:
                segments.append(self._mark(column, lit=lit))
        return Strip(segments).adjust_cell_length(self.size.width, self.style_of("axis"))

    def _cell(self, cell: Cell, width: int, *, lit: bool) -> Segment:
        is_base = cell.part == 0 and len(self._series.levels) > 1
        if cell.part == FREE:
            name = "free"
        elif is_base:
            name = "base"
        else:
            name = "bar"
        if self.app.no_color or lit:
            if lit:
                name = f"{name} cursor"
            return Segment(cell.glyph * width, self.style_of(name))
        return Segment(("█" if is_base else cell.glyph) * width, self.style_of(name))

    def _mark(self, column: Column, *, lit: bool) -> Segment:
        if not lit:
            return Segment(column.mark.ljust(column.cells), self.style_of("mark"))
        return Segment(
            f"▲{column.mark}"[: column.cells].ljust(column.cells), self.style_of("mark pointer")
        )
