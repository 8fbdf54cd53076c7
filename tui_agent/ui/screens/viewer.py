"""All of a long text: the output a card shows only the beginning of, a block of the context, a request."""

from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from tui_agent.app.format import one_line, plural
from tui_agent.ui.screens.leaving import PageScreen
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.text_lines import TextLines

MAX_CHARS = 5_000_000
"""Characters shown; the rest is named at the end."""
KEYS = "↑↓ scroll  / search  n next  y copy all  esc close"


class ViewerScreen(PageScreen[None]):
    """Shows a text, drawn by the line so that its length does not matter."""

    AUTO_FOCUS = "TextLines"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", show=False),
        Binding("q", "dismiss(None)", "close", show=False),
        Binding("slash,ctrl+f", "search", "search", show=False),
        Binding("y", "copy", "copy all", show=False),
    ]

    text = getters.query_one(TextLines)
    field = getters.query_one("#search", Input)
    keys = getters.query_one("#keys", KeyLine)

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Title, text, search, keys."""
        more = len(self._text) - MAX_CHARS
        tail = f"\n… and {more:,} more characters; y copies all of it" if more > 0 else ""
        yield Static(one_line(self._title), id="heading", markup=False)
        yield TextLines(self._text[:MAX_CHARS] + tail)
        yield Input(placeholder="Search", id="search", compact=True)
        yield KeyLine(KEYS, id="keys")

    def on_mount(self) -> None:
        """Search only when asked to."""
        self.field.display = False

    def action_search(self) -> None:
        """Ask what to search."""
        self.field.display = True
        self.field.focus()

    def action_back(self) -> None:
        """End the search, or close when there is none."""
        if not self.field.display:
            self.dismiss(None)
            return
        self.field.display = False
        self.field.value = ""
        self.text.find("")
        self.text.focus()
        self.keys.show(KEYS)

    def action_copy(self) -> None:
        """Copy all of it."""
        self.app.copy_to_clipboard(self._text)

    @on(Input.Changed, "#search")
    def _searched(self, event: Input.Changed) -> None:
        event.stop()
        count = self.text.find(event.value)
        self.keys.show(f"{plural(count, 'place')}  n next  p previous  esc end the search" if event.value else KEYS)

    @on(Input.Submitted, "#search")
    def _go_on(self, event: Input.Submitted) -> None:
        event.stop()
        self.text.focus()
