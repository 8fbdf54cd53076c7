"""A small question with a few answers, over the screen it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalGroup
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.lazy import dataclass
from tui_agent.ui.error_boundary import Dialog
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.options import Options

if TYPE_CHECKING:
    from tui_agent.app.frontend import Choice


class ChoiceScreen(Dialog[str | None]):
    """Dismissed with the key of an answer, None for Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "back", show=False)]
    KEYS: ClassVar[str] = "enter choose  esc back"

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
        with VerticalGroup(classes="dialog"):
            yield Static(self._question, classes="dialog-title", markup=False)
            if self._details:
                yield Static(self._details, classes="dialog-text", markup=False)
            yield Options(*(Option(Content(text), id=key) for key, text in self._answers), compact=True)
            yield KeyLine(self.KEYS, classes="dialog-keys")

    def on_mount(self) -> None:
        keys = [key for key, _text in self._answers]
        if self._at in keys:
            self.query_one(Options).highlighted = keys.index(self._at)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if not self._is_early:
            self.dismiss(event.option_id)

    @property
    def _is_early(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a question beneath the conversation does to it: scrolls it by pages, goes on with text in the prompt."""

    scroll: Callable[[int], None]
    write: Callable[[str], None]
    leave_room: Callable[[int], None]
    """Keeps so many rows at the bottom of the screen free of the conversation; 0 gives them back."""
    clock: Callable[[], float]
    """Returns seconds since the epoch."""
    grace: float
    """Seconds in which keys pressed before are not meant for the question."""


class ChoiceBeneath(ChoiceScreen):
    """A question under the conversation, which stays in sight and can be scrolled. Text that is typed is no answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll_conversation(-1)", "up", show=False, priority=True),
        Binding("pagedown", "scroll_conversation(1)", "down", show=False, priority=True),
    ]
    KEYS: ClassVar[str] = "enter choose  pgup/pgdn scroll  type to answer in words  esc back"

    def __init__(self, question: Choice, conversation: Conversation) -> None:
        numbered = [(key, f"{number}  {text}") for number, (key, text) in enumerate(question.answers, 1)]
        super().__init__(question.question, numbered, question.details, at=question.at)
        self._conversation = conversation
        self._shown_at = conversation.clock()

    def on_mount(self) -> None:
        self.call_after_refresh(self._make_room)

    def on_resize(self) -> None:
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        self._conversation.leave_room(self.query_one(".dialog").region.height)

    def on_unmount(self) -> None:
        self._conversation.leave_room(0)

    def action_scroll_conversation(self, pages: int) -> None:
        self._conversation.scroll(pages)

    def on_key(self, event: events.Key) -> None:
        """Take text for the prompt: only digits answer."""
        if not event.is_printable or not event.character or (event.character == " " and self.is_current):
            return
        event.stop()
        event.prevent_default()
        number = int(event.character) if event.character.isdigit() else 0
        if 0 < number <= len(self._answers) and self.is_current:
            if not self._is_early:
                self.dismiss(self._answers[number - 1][0])
        else:
            self.dismiss(None)
            self._conversation.write(event.character)

    @property
    def _is_early(self) -> bool:
        return self._conversation.clock() < self._shown_at + self._conversation.grace
