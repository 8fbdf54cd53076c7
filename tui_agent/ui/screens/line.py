"""A small dialog that asks for one line of text, over the screen it belongs to."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalGroup
from textual.widgets import Input, Static

from tui_agent.ui.screens.leaving import Dialog
from tui_agent.ui.widgets.key_line import KeyLine


class LineScreen(Dialog[str | None]):
    """Dismissed with the text without space around it, None for Escape. A command typed here is text like any other."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "back", show=False)]

    def __init__(self, question: str, value: str = "", *, keeps: str = "keep") -> None:
        """Ask ``question``, with ``value`` in the field; ``keeps`` is what Enter does."""
        super().__init__()
        self._question = question
        self._value = value
        self._keeps = keeps

    def compose(self) -> ComposeResult:
        """The question, the field, the keys."""
        with VerticalGroup(classes="dialog"):
            yield Static(self._question, classes="dialog-title", markup=False)
            yield Input(self._value, compact=True)
            yield KeyLine(f"enter {self._keeps}  esc back", classes="dialog-keys")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip())
