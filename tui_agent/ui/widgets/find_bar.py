"""The find bar: searches the conversation for a text and steps through the matching lines.

The store finds the matching entries (find_commands.py); the transcript finds the lines in each entry,
unfolds and shows them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events, getters, on, work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input

from tui_agent.app.find_commands import find_entries
from tui_agent.ui.bindings import hidden
from tui_agent.ui.widgets.plain_text import PlainText

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller
    from tui_agent.ui.widgets.transcript.transcript import Transcript

WRITING_KEYS = "↑ older  ↓ newer  esc back"
KEYS = "n older  N newer  esc back"


class FindBar(Horizontal, can_focus=True):
    """The find bar: takes the text to find, and steps through the matches, newest first."""

    BINDINGS = [
        hidden("escape", "end", "end the search"),
        hidden("n,up,enter", "step(1)", "older"),
        hidden("N,shift+n,down", "step(-1)", "newer"),
        hidden("slash,ctrl+f", "edit", "another text"),
        hidden("pageup", "screen.scroll_page(-1)", "page up"),
        hidden("pagedown", "screen.scroll_page(1)", "page down"),
    ]

    field = getters.query_one(Input)
    status = getters.query_one("#find-status", PlainText)

    def __init__(
        self,
        controller: Controller,
        transcript: Transcript,
        give_back: Callable[[Widget | None], None],
    ) -> None:
        """Create the find bar.

        ``give_back`` is called when the search ends. Its argument is the widget that had the focus
        before.
        """
        super().__init__()
        self._give_back = give_back
        self._before: Widget | None = None
        self._controller = controller
        self._transcript = transcript
        self._found: list[int] = []
        self._at = 0
        self._lines: list[int] = []
        self._line = 0
        self.display = False

    def compose(self) -> ComposeResult:
        yield Input(placeholder="Find in the conversation", compact=True)
        yield PlainText(id="find-status")

    def begin(self, query: str) -> None:
        if not self.display:
            self._before = self.screen.focused
        self.display = True
        self.field.value = query
        self.field.focus()

    def action_edit(self) -> None:
        self.field.focus()

    def action_end(self) -> None:
        """Close the find bar, and give the focus back to the widget that had it before."""
        self.display = False
        self.field.value = ""
        self.status.update("")
        self._found = []
        self._transcript.query_text = ""
        self._give_back(self._before)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self._search(event.value.strip())

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.focus()
        if self._found:
            self.call_after_refresh(self._show_status)

    def on_key(self, event: events.Key) -> None:
        if self.field.has_focus and event.key in {"up", "down"}:
            event.stop()
            self.action_step(1 if event.key == "up" else -1)

    @work(exclusive=True, group="find")
    async def _search(self, query: str) -> None:
        self._transcript.query_text = query
        found = await find_entries(self._controller, query)
        if not self.display:  # In the meantime, the user has ended the search.
            return
        self._found = found
        self._at = 0
        self._show()

    def action_step(self, step: int) -> None:
        """Go to the next older match (``step`` 1) or newer match (``step`` -1).

        After the last match, start over.
        """
        if not self._found:
            return
        # The lines may have moved since the last step, because the terminal was resized or a block
        # was folded.
        self._lines = self._transcript.lines_with(self._found[self._at], self.field.value.strip())
        self._line -= step
        if 0 <= self._line < len(self._lines):
            self._go()
            return
        self._at = (self._at + step) % len(self._found)
        self._show(first=step < 0)

    def _show(self, *, first: bool = False) -> None:
        """Go to the last matching line of the current entry; with ``first``, to the first one.

        If no line contains the whole text, go to the entry. If there are no matches, show a
        message.
        """
        query = self.field.value.strip()
        if not self._found:
            self.status.update("not found  esc back" if query else "")
            return
        entry_id = self._found[self._at]
        self._lines = self._transcript.lines_with(entry_id, query)
        if first:
            self._line = 0
        else:
            self._line = len(self._lines) - 1
        if self._lines:
            self._go()
        else:
            self._transcript.jump_to(entry_id)
            self._show_status()

    def _go(self) -> None:
        self._transcript.show_line(self._found[self._at], self._lines[self._line])
        self._show_status()

    def _show_status(self) -> None:
        line = ""
        if len(self._lines) > 1:
            line = f", line {self._line + 1} of {len(self._lines)}"
        keys = WRITING_KEYS if self.field.has_focus else KEYS
        if self.size.width < 70:
            line = ""
            keys = "esc back"
        self.status.update(f"{self._at + 1} of {len(self._found)}{line}  {keys}")
