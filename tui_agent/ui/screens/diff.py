"""How files differ, drawn as in the conversation: side by side where there is room."""

from typing import ClassVar

from textual import getters
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from tui_agent.app.format import one_line
from tui_agent.ui.screens.leaving import PageScreen
from tui_agent.ui.screens.viewer import ViewerScreen
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.line_view import LineView, diff_lines

DRAWN = 200_000
"""Characters of a diff that is drawn; a longer one is shown as text, which takes no time at any length."""
KEYS = "↑↓ scroll  y copy all  esc close"


def diff_screen(title: str, diff: str) -> Screen[None]:
    """Return a screen for what ``FileRewind.diff`` tells: a list of files, an empty line, a unified diff."""
    return DiffScreen(title, diff) if len(diff) <= DRAWN else ViewerScreen(title, diff)


class DiffScreen(PageScreen[None]):
    """Shows which files differ, and how."""

    AUTO_FOCUS = "VerticalScroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "close", show=False),
        Binding("y", "copy", "copy all", show=False),
    ]

    view = getters.query_one(LineView)

    def __init__(self, title: str, diff: str) -> None:
        super().__init__()
        self._title = title
        self._diff = diff

    def compose(self) -> ComposeResult:
        """Title, files, their differences, keys."""
        listed, _, diff = self._diff.partition("\n\n")
        yield Static(one_line(self._title), id="heading", markup=False)
        with VerticalScroll():
            yield Static(sanitize.text(listed), id="files", markup=False)
            yield LineView(diff_lines(diff))
        yield KeyLine(KEYS, id="keys")

    def action_copy(self) -> None:
        """Copy all of it."""
        self.app.copy_to_clipboard(self._diff)
