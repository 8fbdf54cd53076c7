"""What a session has cost: a plot by step or by day under a cursor, the sums below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.widgets import Static

from tui_agent.app import spending
from tui_agent.app.format import money
from tui_agent.ui.screens.page import Page
from tui_agent.ui.widgets.plot import Plot
from tui_agent.ui.widgets.two_columns import HangingText

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.app.spending import Spending

BY_STEP = "←→ request  v by day  enter open in the tree  ↑↓ scroll  esc back"
WITHOUT_PLOT = "↑↓ scroll  esc back"
BY_DAY = "←→ day  v by request  ↑↓ scroll  esc back"


class CostScreen(Page[None]):
    """Shows what a session has cost."""

    KEYS = BY_STEP
    AUTO_FOCUS = "Plot"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "days", "by day", show=False),
        Binding("up,k", "scroll(-1)", "up", show=False),
        Binding("down", "scroll(1)", "down", show=False),
    ]

    plot = query_one(Plot)
    sums = query_one(VerticalScroll)

    def __init__(self, title: str, sums: Content, found: Spending, show_in_tree: Callable[[int], None]) -> None:
        """``show_in_tree`` opens the tree at an entry."""
        super().__init__(title)
        self._content = sums
        self._found = found
        self._show_in_tree = show_in_tree
        self._by_day = False

    def body(self) -> ComposeResult:
        yield Plot(money)
        yield Static("", id="point", markup=False)
        with VerticalScroll(can_focus=False):
            yield HangingText(self._content)

    def on_mount(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if not self._found.can_plot:
            self.plot.display = False
            self.keys.show(WITHOUT_PLOT)
            return
        series = spending.day_series(self._found) if self._by_day else spending.step_series(self._found)
        self.plot.show(series, cursor=series.count - 1)
        self.keys.show(BY_DAY if self._by_day else BY_STEP)

    def action_days(self) -> None:
        """Plot days instead of requests, or requests again."""
        if not self._found.can_plot:
            return
        self._by_day = not self._by_day
        self._draw()

    def action_scroll(self, lines: int) -> None:
        self.sums.scroll_relative(y=lines, animate=False)

    @on(Plot.Highlighted)
    def _highlighted(self, message: Plot.Highlighted) -> None:
        message.stop()
        words = spending.day_words if self._by_day else spending.step_words
        if self.plot.series.count:
            self.query_one("#point", Static).update(words(self._found, message.index))

    @on(Plot.Chosen)
    def _chosen(self, message: Plot.Chosen) -> None:
        message.stop()
        if not self._by_day:
            self._show_in_tree(self._found.steps[message.index].id)
