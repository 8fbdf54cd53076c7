"""A small dialog that asks for one line of text, over the screen it belongs to."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalGroup
from textual.widgets import Input, Static

from tui_agent.app.frontend import TextLine
from tui_agent.ui.error_boundary import Dialog
from tui_agent.ui.widgets.key_line import KeyLine


class LineScreen(Dialog[str | None]):
    """Dismissed with the text without space around it, None for Escape. A command typed here is text like any other."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "back", show=False)]

    def __init__(self, question: TextLine) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        question = self._question
        with VerticalGroup(classes="dialog"):
            yield Static(question.question, classes="dialog-title", markup=False)
            if question.details:
                yield Static(question.details, classes="dialog-text", markup=False)
            yield Input(question.text, compact=True, password=question.hidden)
            yield KeyLine(f"enter {question.confirm}  esc back", classes="dialog-keys")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip())
