"""A page of text to read and close: help, costs, what fills the window."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalGroup, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui_agent.ui.error_boundary import Dialog
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.two_columns import HangingText


class ReportScreen(Dialog[None]):
    """Shows a title and content; Escape, q or Enter closes."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,f1", "dismiss(None)", "close", show=False)]

    def __init__(self, title: str, content: Content) -> None:
        super().__init__()
        self._title = title
        self._content = content

    def compose(self) -> ComposeResult:
        with VerticalGroup(classes="dialog"):
            yield Static(self._title, classes="dialog-title", markup=False)
            with VerticalScroll():
                yield HangingText(self._content)
            yield KeyLine("esc back", classes="dialog-keys")
