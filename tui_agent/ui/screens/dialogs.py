"""The one kind of dialog, over the screen it belongs to: title, text, body, keys. Escape goes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual import events, getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalGroup, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from tui_agent.app.frontend import Choice
from tui_agent.lazy import dataclass
from tui_agent.ui.error_boundary import PageScreen
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.options import Options
from tui_agent.ui.widgets.two_columns import HangingText, hung

if TYPE_CHECKING:
    from tui_agent.app.frontend import LongText, TextLine

ResultT = TypeVar("ResultT")


class Dialog(ModalScreen[ResultT | None], PageScreen[ResultT | None], Generic[ResultT]):
    """Dismissed with None by Escape."""

    KEYS: ClassVar[str] = "esc back"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (70, "-normal")]  # noqa: RUF012 - as inherited
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (18, "-short"), (28, "-tall"), (45, "-huge")]  # noqa: RUF012 - as inherited
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "back", show=False)]

    keys = getters.query_one(".dialog-keys", KeyLine)

    def __init__(self, title: str, text: str = "", keys: str = "") -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._keys_shown = keys or self.KEYS

    def compose(self) -> ComposeResult:
        with VerticalGroup(classes="dialog"):
            yield Static(self._title, classes="dialog-title", markup=False)
            if self._text:
                with VerticalScroll(classes="dialog-text", can_focus=False):
                    yield Static(self._text, markup=False)
            yield from self.body()
            yield KeyLine(self._keys_shown, classes="dialog-keys")

    def on_resize(self) -> None:
        self.remove_class("-full")
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        """Take all of the screen where the body needs more than there is, so that it scrolls."""
        parts = self.query(".dialog > *").exclude(".dialog-keys")
        self.set_class(max(part.region.bottom for part in parts) > self.keys.region.y, "-full")

    body: Callable[[], ComposeResult]
    """Yields the parts between the text and the keys."""


class ReportScreen(Dialog[None]):
    """Text to read: help, status, the setup."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter,f1", "back", "close", show=False)]

    def __init__(self, title: str, content: Content, at: int = 0) -> None:
        """``at`` is the line that is at the top at first."""
        super().__init__(title)
        self._content = content
        self._at = at

    def body(self) -> ComposeResult:
        with VerticalScroll():
            yield HangingText(self._content)

    def on_mount(self) -> None:
        if self._at:
            self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        text = self.query_one(HangingText)
        before = Content("\n").join(self._content.split("\n", allow_blank=True)[: self._at])
        lines = len(hung(before, text.size.width).split("\n", allow_blank=True))
        self.query_one(VerticalScroll).scroll_to(y=lines, animate=False)


class ChoiceScreen(Dialog[str]):
    """Dismissed with the key of an answer."""

    KEYS: ClassVar[str] = "enter choose  esc back"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll(-1)", "up", show=False, priority=True),
        Binding("pagedown", "scroll(1)", "down", show=False, priority=True),
    ]

    answers = getters.query_one(Options)

    def __init__(self, question: Choice) -> None:
        super().__init__(question.question, question.details)
        self.set_class(question.wide, "-wide")
        self._question = question
        self._keys = [key for key, _text in question.answers]

    def body(self) -> ComposeResult:
        rows = enumerate(self._question.answers, 1)
        numbered = self._question.numbered
        yield Options(
            *(Option(Content(f"{number}  {text}" if numbered else text), id=key) for number, (key, text) in rows),
            compact=True,
        )

    def on_mount(self) -> None:
        if self._question.at in self._keys:
            self.answers.highlighted = self._keys.index(self._question.at)

    def on_key(self, event: events.Key) -> None:
        if (key := self.meant(event.character or "")) is not None:
            event.stop()
            self.answer(key)

    def meant(self, character: str) -> str | None:
        """Return the key of the answer that a character chooses."""
        if not self._question.numbered or not character:
            return None
        numbers = zip(map(str, range(1, 10)), self._keys, strict=False)
        return character if character in self._keys else dict(numbers).get(character)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.answer(event.option_id)

    def answer(self, key: str | None) -> None:
        self.dismiss(key)

    def action_scroll(self, pages: int) -> None:
        """Scroll the text over the answers; without one that is longer than its place, the answers."""
        text = next((part for part in self.query(".dialog-text") if part.max_scroll_y), self.answers)
        text.scroll_relative(y=pages * max(1, text.size.height - 1), animate=False)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The effect of a question beneath the conversation on it."""

    scroll: Callable[[int], None]
    """Scrolls by pages."""
    write: Callable[[str], None]
    """Goes on with a text in the prompt."""
    leave_room: Callable[[int], None]
    """Keeps so many rows at the bottom of the screen free of the conversation; 0 gives them back."""
    clock: Callable[[], float]
    """Returns seconds since the epoch."""


class ChoiceBeneath(ChoiceScreen):
    """A question under the conversation, which stays in sight and can be scrolled. Text that is typed is no answer."""

    KEYS: ClassVar[str] = "enter choose  pgup/pgdn scroll  type to answer in words  esc back"

    def __init__(self, question: Choice, conversation: Conversation, grace: float) -> None:
        """``grace`` is seconds in which keys pressed before are not meant for the question."""
        super().__init__(replace(question, numbered=True))
        self._conversation = conversation
        self._ready_at = conversation.clock() + grace

    def on_resize(self) -> None:
        self.call_after_refresh(lambda: self._conversation.leave_room(self.query_one(".dialog").region.height))

    def on_unmount(self) -> None:
        self._conversation.leave_room(0)

    def action_scroll(self, pages: int) -> None:
        self._conversation.scroll(pages)

    def on_key(self, event: events.Key) -> None:
        """Take text for the prompt: only digits answer."""
        if not event.is_printable or not event.character or (event.character == " " and self.is_current):
            return
        event.stop()
        event.prevent_default()
        meant = self.meant(event.character) if self.is_current else None
        if meant is not None:
            self.answer(meant)
        else:
            self.dismiss(None)
            self._conversation.write(event.character)

    def answer(self, key: str | None) -> None:
        """Leave with an answer, unless the key was pressed before the question was seen."""
        if self._conversation.clock() >= self._ready_at:
            super().answer(key)


class LineScreen(Dialog[str]):
    """Dismissed with the text without space around it. A command typed here is text like any other."""

    def __init__(self, question: TextLine) -> None:
        super().__init__(question.question, question.details, f"enter {question.confirm}  esc back")
        self._question = question

    def body(self) -> ComposeResult:
        yield Input(self._question.text, compact=True, password=self._question.hidden)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class LongTextScreen(Dialog[str]):
    """A text of many lines to be changed. Dismissed with it, without space around it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "keep", "keep", show=False, priority=True)]

    editor = getters.query_one(TextArea)

    def __init__(self, question: LongText) -> None:
        super().__init__(question.question, keys=f"ctrl+s {question.confirm}  esc back")
        self._question = question

    def body(self) -> ComposeResult:
        yield TextArea(self._question.text, soft_wrap=True, show_line_numbers=False, tab_behavior="focus")

    def action_keep(self) -> None:
        self.dismiss(self.editor.text.strip())
