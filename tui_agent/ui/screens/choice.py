"""A small question with a few answers, over the screen it belongs to."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalGroup
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.ui.screens.leaving import Dialog
from tui_agent.ui.widgets.key_line import KeyLine


class ChoiceScreen(Dialog[str | None]):
    """Dismissed with the key of an answer, None for Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "back", show=False)]

    def __init__(
        self, question: str, answers: Sequence[tuple[str, str]], details: str = "", *, at: str | None = None
    ) -> None:
        """Make the question. ``at`` is the answer that is highlighted at first."""
        super().__init__()
        self._at = at
        self._question = question
        self._answers = answers
        self._details = details

    def compose(self) -> ComposeResult:
        """The question over its answers."""
        with VerticalGroup(classes="dialog"):
            yield Static(self._question, classes="dialog-title", markup=False)
            if self._details:
                yield Static(self._details, classes="dialog-text", markup=False)
            yield OptionList(*(Option(Content(text), id=key) for key, text in self._answers), compact=True)
            yield KeyLine("enter choose  esc back", classes="dialog-keys")

    def on_mount(self) -> None:
        """Highlight the answer to begin with."""
        keys = [key for key, _text in self._answers]
        if self._at in keys:
            self.query_one(OptionList).highlighted = keys.index(self._at)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_id)
