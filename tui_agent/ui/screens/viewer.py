"""All of a long text: the output a card shows only the beginning of."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Log, Static

from tui_agent.ui.format import one_line, visible

SHOWN = 5_000_000
"""Characters shown; the rest is named at the end."""
LINE = 2_000
"""Characters of one line shown."""


class ViewerScreen(Screen[None]):
    """Shows a text, drawn by the line so that its length does not matter."""

    AUTO_FOCUS = "Log"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "close", show=False),
        Binding("y", "copy", "copy all", show=False),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Title, text, keys."""
        yield Static(one_line(self._title), id="heading", markup=False)
        yield Log(auto_scroll=False)
        yield Static("↑↓ scroll   y copy all   escape close", id="keys", markup=False)

    def on_mount(self) -> None:
        """Fill in the text."""
        log = self.query_exactly_one(Log)
        lines = visible(self._text[:SHOWN]).replace("\t", "    ").split("\n")
        log.write_lines([line if len(line) <= LINE else line[:LINE] + " …" for line in lines], scroll_end=False)
        if len(self._text) > SHOWN:
            log.write_line(f"… and {len(self._text) - SHOWN:,} more characters; y copies all of it", scroll_end=False)

    def action_copy(self) -> None:
        """Copy all of it."""
        self.app.copy_to_clipboard(self._text)
