"""Base classes of pages: screens with a title, facts, a body, and lines for notices and keys."""

from collections.abc import Callable
from typing import Generic, TypeVar

from textual import getters
from textual.app import ComposeResult
from textual.containers import VerticalGroup, VerticalScroll

from tui_agent.app.format import one_line
from tui_agent.ui.bindings import hidden
from tui_agent.ui.error_boundary import PageScreen
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.notice import NoticeLine
from tui_agent.ui.widgets.plain_text import PlainText

ResultT = TypeVar("ResultT")


class FramedPage(PageScreen[ResultT | None], Generic[ResultT]):
    """Base class of pages.

    Subclasses define ``body``. Escape closes the page with the result None.
    """

    HEADING = ""
    KEYS = "esc back"
    LAST_KEYS = 1
    """Number of keys, from the end of the line, that are always shown, even on a narrow
    terminal."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-medium"), (120, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (20, "-low"), (28, "-normal"), (32, "-tall")]
    BINDINGS = [
        hidden("escape", "back", "back"),
        hidden("q", "dismiss(None)", "close"),
    ]

    heading = getters.query_one("#heading", PlainText)
    facts = getters.query_one("#facts", PlainText)
    notice = getters.query_one(NoticeLine)
    keys = getters.query_one("#keys", KeyLine)

    def __init__(self, heading: str = "", keys: str = "") -> None:
        super().__init__()
        self._heading = one_line(heading or self.HEADING, 300)
        self._keys_shown = keys or self.KEYS

    def compose(self) -> ComposeResult:
        with VerticalGroup(id="head"):
            yield PlainText(self._heading, id="heading")
            yield PlainText(id="facts")
        yield from self.body()
        with VerticalGroup(id="foot"):
            yield NoticeLine()
            yield KeyLine(self._keys_shown, keep=self.LAST_KEYS, id="keys")

    body: Callable[[], ComposeResult]
    """Method that yields the widgets between the lines of facts and the line of keys."""

    def show_facts(self, facts: str) -> None:
        self.facts.update(facts)
        self.facts.display = bool(facts)


class PanePage(FramedPage[None]):
    """A page with a pane that PgUp and PgDn scroll, whichever widget has the focus."""

    BINDINGS = [
        # With priority, these keys scroll the pane even if a list that uses them has the focus.
        hidden("pageup", "scroll(-1)", "up", priority=True),
        hidden("pagedown", "scroll(1)", "down", priority=True),
    ]

    pane = getters.query_one("#pane", VerticalScroll)

    def action_scroll(self, pages: int) -> None:
        self.pane.scroll_relative(y=pages * max(1, self.pane.size.height - 1), animate=False)
