"""The page of changed files, which lists the files and shows the diff of the highlighted one."""

from collections.abc import Sequence
from functools import partial

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui_agent.agent.checkpoints.restoring import ChangedFile
from tui_agent.app.frontend import diff_text, file_lines
from tui_agent.ui.bindings import hidden
from tui_agent.ui.screens.page import PanePage
from tui_agent.ui.widgets.options import Options
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.transcript.line_view import LineView, diff_lines

MAX_DRAWN = 200_000
"""Maximum number of characters of a file's diff that are drawn."""


class DiffScreen(PanePage):
    """Shows a list of changed files and the diff of the highlighted one; ``y`` copies all diffs."""

    KEYS = "↑↓ file  pgup/pgdn scroll  y copy all  esc back"
    AUTO_FOCUS = "OptionList"
    BINDINGS = [
        hidden("y", "copy", "copy all"),
        hidden("space", "scroll(1)", "down", priority=True),
    ]

    view = getters.query_one(LineView)

    def __init__(self, title: str, files: Sequence[ChangedFile]) -> None:
        super().__init__(title)
        self._files = files

    def body(self) -> ComposeResult:
        yield Options(
            *(Option(Content(line)) for line in file_lines(self._files)), id="files", compact=True
        )
        with VerticalScroll(id="pane", can_focus=False):
            yield PlainText(id="note")
            yield LineView()

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        file = self._files[event.option_index]
        note = self.query_one("#note", PlainText)
        note.display = not file.diff or len(file.diff) > MAX_DRAWN
        note.update(
            "This is the beginning of a long diff. Press y to copy all of it."
            if file.diff
            else "There are no lines to show."
        )
        self.view.show(partial(diff_lines, file.diff[:MAX_DRAWN]))
        self.pane.scroll_home(animate=False)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(diff_text(self._files))
