"""The page that shows a long text in full: an output, a block of the context or a request."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from textual import getters, on
from textual.app import ComposeResult
from textual.widgets import Input

from tui_agent.app.format import lower_case, plural
from tui_agent.lazy import frozen
from tui_agent.ui.bindings import hidden
from tui_agent.ui.screens.page import FramedPage
from tui_agent.ui.widgets.line_list import LineList
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.lines import StyledSpan, wrap

TAB_WIDTH = 4

MAX_CHARS = 5_000_000
"""Maximum number of characters of a text that are shown. Below a longer text, a line says how many
more characters it contains."""


@frozen
class _Row:
    """A row on the screen: the characters ``start`` to ``end`` of line ``line`` of the text."""

    line: int
    start: int
    end: int


class TextLines(LineList):
    """Shows a text, wrapped to the widget's width. It can be scrolled and searched (see `find`)."""

    CURSOR = "never"
    BINDINGS = [
        hidden("up,k", "scroll(-1)", "up"),
        hidden("down,j", "scroll(1)", "down"),
        hidden("pageup", "scroll(0, -1)", "page up"),
        hidden("pagedown,space", "scroll(0, 1)", "page down"),
        hidden("home", "scroll_home", "first"),
        hidden("end", "scroll_end", "last"),
        hidden("n", "next_match(1)", "next"),
        hidden("N,shift+n", "next_match(-1)", "previous"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__(id="text")
        self.lines: list[str] = [
            line.expandtabs(TAB_WIDTH) for line in sanitize.output(text).split("\n")
        ]
        self._rows: list[_Row] = []
        self._width = 0
        self._query = ""
        self.matches: list[tuple[int, int]] = []
        """Position of each match as (line, character), counted from 0, in the order of the text."""
        self.current: int | None = None
        """Index of the current match in ``matches``; None if there is no match."""

    # -- layout

    def on_resize(self) -> None:
        width = max(1, self.scrollable_content_region.width - 1)
        if width != self._width:
            first = 0
            if self._rows:
                first = self._rows[self.scroll_offset.y].line
            self._width = width
            self._rows = self._wrapped(width)
            self.set_count(len(self._rows))
            self.scroll_to(y=self._row_of(first, 0), animate=False)

    def _wrapped(self, width: int) -> list[_Row]:
        rows: list[_Row] = []
        for number, line in enumerate(self.lines):
            if len(line) <= width and line.isascii():
                rows.append(_Row(number, 0, len(line)))
                continue
            start = 0
            for swallowed, runs in wrap([(line, "text")], width):
                start += len(swallowed)
                end = start + sum(len(text) for text, _ in runs)
                rows.append(_Row(number, start, end))
                start = end
        return rows

    def _row_of(self, line: int, character: int) -> int:
        return max(
            0,
            bisect_right(self._rows, (line, character), key=lambda row: (row.line, row.start)) - 1,
        )

    # -- scrolling

    def action_scroll(self, rows: int, pages: int = 0) -> None:
        self.scroll_relative(y=rows + pages * self.page_step, animate=False)

    # -- search

    def find(self, query: str) -> int:
        """Mark all matches of a text, ignoring case, and return the number of matches.

        Scrolls to the first match in or below the visible rows, else to the first match of all. An
        empty text removes the marks.
        """
        self._query = lower_case(query)
        self.matches = []
        for number, line in enumerate(self.lines if query else ()):
            lowered = lower_case(line)
            at = lowered.find(self._query)
            while at >= 0:
                self.matches.append((number, at))
                at = lowered.find(self._query, at + len(self._query))
        if self._rows:
            top = self._rows[self.scroll_offset.y]
        else:
            top = _Row(0, 0, 0)
        below = [at for at, match in enumerate(self.matches) if match >= (top.line, top.start)]
        if below:
            self.current = below[0]
        elif self.matches:
            self.current = 0
        else:
            self.current = None
        self._show_match()
        return len(self.matches)

    def action_next_match(self, step: int) -> None:
        if self.matches:
            self.current = ((self.current or 0) + step) % len(self.matches)
            self._show_match()

    def _show_match(self) -> None:
        if self.current is not None:
            row = self._row_of(*self.matches[self.current])
            if not self.scroll_offset.y <= row < self.scroll_offset.y + self.page_height:
                self.scroll_to(y=max(0, row - self.page_height // 3), animate=False)
        self.refresh()

    # -- painting

    def row(self, index: int, width: int) -> Sequence[StyledSpan]:  # noqa: ARG002 - wrapped before
        row = self._rows[index]
        line = self.lines[row.line]
        runs: list[StyledSpan] = []
        position = row.start
        size = len(self._query)
        first = bisect_left(self.matches, (row.line, row.start - size + 1))
        for _line, at in self.matches[first : bisect_left(self.matches, (row.line, row.end))]:
            start = max(at, row.start)
            end = min(at + size, row.end)
            runs += [(line[position:start], "text"), (line[start:end], "match")]
            position = end
        return [*runs, (line[position : row.end], "text")]


class ViewerScreen(FramedPage[None]):
    """The page that shows a long text. The key ``/`` searches the text."""

    KEYS = "↑↓ scroll  / search  n next  y copy all  esc back"
    AUTO_FOCUS = "TextLines"
    BINDINGS = [
        hidden("slash,ctrl+f", "search", "search"),
        hidden("y", "copy", "copy all"),
    ]

    text = getters.query_one(TextLines)
    field = getters.query_one("#search", Input)

    def __init__(self, title: str, text: str) -> None:
        super().__init__(title)
        self._text = text

    def body(self) -> ComposeResult:
        more = len(self._text) - MAX_CHARS
        tail = ""
        if more > 0:
            tail = f"\n… and {more:,} more characters; press y to copy the whole text"
        yield TextLines(self._text[:MAX_CHARS] + tail)
        field = Input(placeholder="Search", id="search", compact=True)
        field.display = False
        yield field

    def action_search(self) -> None:
        self.field.display = True
        self.field.focus()

    def action_back(self) -> None:
        if not self.field.display:
            self.dismiss(None)
            return
        self.field.display = False
        self.field.value = ""
        self.text.find("")
        self.text.focus()
        self.keys.show(self.KEYS)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._text)

    @on(Input.Changed, "#search")
    def _searched(self, event: Input.Changed) -> None:
        count = self.text.find(event.value)
        self.keys.show(
            f"{plural(count, 'match')}  n next  N previous  esc back" if event.value else self.KEYS
        )

    @on(Input.Submitted, "#search")
    def _search_submitted(self) -> None:
        self.text.focus()
