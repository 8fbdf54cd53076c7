"""A dialog in which a text of many lines is changed, over the screen it belongs to."""

from typing import ClassVar

from textual import getters
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalGroup
from textual.widgets import Static, TextArea

from tui_agent.ui.error_boundary import Dialog
from tui_agent.ui.widgets.key_line import KeyLine


class LongTextScreen(Dialog[str | None]):
    """Dismissed with the text without space around it, None for Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "back", show=False),
        Binding("ctrl+s", "keep", "keep", show=False, priority=True),
    ]

    editor = getters.query_one(TextArea)

    def __init__(self, question: str, text: str, *, keeps: str) -> None:
        """Ask ``question``, with ``text`` in the field; ``keeps`` is what Ctrl+S does."""
        super().__init__()
        self._question = question
        self._text = text
        self._keeps = keeps

    def compose(self) -> ComposeResult:
        with VerticalGroup(classes="dialog"):
            yield Static(self._question, classes="dialog-title", markup=False)
            yield TextArea(self._text, soft_wrap=True, show_line_numbers=False, tab_behavior="focus")
            yield KeyLine(f"ctrl+s {self._keeps}  esc back", classes="dialog-keys")

    def action_keep(self) -> None:
        self.dismiss(self.editor.text.strip())
