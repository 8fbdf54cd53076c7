"""The base class of dialogs, which open over another screen, and dialogs for general questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from textual import events, getters, on
from textual.app import ComposeResult
from textual.containers import VerticalGroup, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, OptionList, TextArea
from textual.widgets.option_list import Option

from tui_agent.app.frontend import Choice
from tui_agent.ui.bindings import hidden
from tui_agent.ui.error_boundary import PageScreen
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.options import Options
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.transcript.line_view import LineView, diff_lines
from tui_agent.ui.widgets.two_columns import HangingText, wrap_columns

if TYPE_CHECKING:
    from tui_agent.app.frontend import LongText, TextLine

ResultT = TypeVar("ResultT")

BESIDE_ANSWERS = 8
"""Number of cells by which the answers are narrower than the screen."""


class Dialog(ModalScreen[ResultT | None], PageScreen[ResultT | None], Generic[ResultT]):
    """Base class of dialogs.

    Subclasses define ``body``. Escape closes the dialog with the result None.
    """

    KEYS = "esc back"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (70, "-normal")]
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (18, "-short"), (28, "-tall"), (45, "-huge")]
    BINDINGS = [hidden("escape", "back", "back")]

    keys = getters.query_one(".dialog-keys", KeyLine)

    def __init__(self, title: str, text: str = "", keys: str = "") -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._keys_shown = keys or self.KEYS

    def compose(self) -> ComposeResult:
        with VerticalGroup(classes="dialog"):
            yield PlainText(self._title, classes="dialog-title")
            if self._text:
                with VerticalScroll(classes="dialog-text", can_focus=False):
                    yield PlainText(self._text)
            yield from self.body()
            yield KeyLine(self._keys_shown, classes="dialog-keys")

    def on_resize(self) -> None:
        self.remove_class("-full")
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        """Make the dialog fill the screen if its body does not fit above the keys."""
        parts = self.query(".dialog > *").exclude(".dialog-keys")
        self.set_class(max(part.region.bottom for part in parts) > self.keys.region.y, "-full")

    body: Callable[[], ComposeResult]
    """Yield the widgets of the dialog between its text and its line of keys."""


class ReportScreen(Dialog[None]):
    """Dialog that shows a text for the user to read, such as the session's status."""

    BINDINGS = [hidden("q,enter,f1", "back", "close")]

    def __init__(self, title: str, content: Content, at: int = 0) -> None:
        """Create the dialog, with line ``at`` of its content at the top.

        Lines are counted from 0.
        """
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
        lines = len(wrap_columns(before, text.size.width).split("\n", allow_blank=True))
        self.query_one(VerticalScroll).scroll_to(y=lines, animate=False)


class ChoiceScreen(Dialog[str]):
    """Dialog that asks the question of a `Choice`. Its result is the name of the chosen answer."""

    KEYS = "enter choose  esc back"
    BINDINGS = [
        hidden("pageup", "scroll(-1)", "up", priority=True),
        hidden("pagedown", "scroll(1)", "down", priority=True),
    ]

    answers = getters.query_one(Options)

    def __init__(self, question: Choice) -> None:
        super().__init__(
            question.question, "\n".join(filter(None, [question.why, question.details]))
        )
        self.set_class(question.wide or bool(question.files), "-wide")
        self._question = question
        self._names = [name for name, _text in question.answers]
        self._is_keyed = question.numbered or question.inline or question.keys == self._names
        self._texts: list[Content] = []
        for (_name, text), key in zip(question.answers, question.keys, strict=True):
            self._texts.append(Content(f"{key}  {text}" if self._is_keyed else text))

    def body(self) -> ComposeResult:
        if diffs := [file.diff for file in self._question.files if file.diff]:
            view = LineView()
            view.show(lambda width: (line for diff in diffs for line in diff_lines(diff, width)))
            with VerticalScroll(classes="dialog-diff", can_focus=False):
                yield view
        rows = zip(self._texts, self._names, strict=True)
        yield Options(*(Option(text, id=name) for text, name in rows), compact=True)

    def on_resize(self) -> None:
        """Wrap the answers again to fit the new width, with continuation lines indented."""
        for place, text in enumerate(self._texts):
            self.answers.replace_option_prompt_at_index(
                place, wrap_columns(text, self.app.size.width - BESIDE_ANSWERS)
            )

    def on_mount(self) -> None:
        if self._question.at in self._names:
            self.answers.highlighted = self._names.index(self._question.at)

    def on_key(self, event: events.Key) -> None:
        row = self.answers.highlighted_option
        if (
            event.key == "space"
            and row is not None
            and row.id in self._names[: self._question.ticks]
        ):
            event.stop()
            self.answer(row.id)
        elif (key := self.answer_for(event.character or "")) is not None:
            event.stop()
            self.answer(key)

    def answer_for(self, character: str) -> str | None:
        """Return the name of the answer whose name, key or number is ``character``.

        Returns None if there is no such answer, or the answers are not shown with keys.
        """
        if not self._is_keyed or not character:
            return None
        numbers = zip(map(str, range(1, 10)), self._names, strict=False)
        keyed = dict(numbers) | dict(zip(self._question.keys, self._names, strict=True))
        if character in self._names:
            return character
        return keyed.get(character)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.answer(event.option_id)

    def answer(self, key: str | None) -> None:
        self.dismiss(key)

    def action_scroll(self, pages: int) -> None:
        """Scroll the text above the answers if it does not fit; otherwise, scroll the answers."""
        text: Widget = self.answers
        for part in self.query(".dialog-text"):
            if part.max_scroll_y:
                text = part
                break
        text.scroll_relative(y=pages * max(1, text.size.height - 1), animate=False)


class LineScreen(Dialog[str]):
    """Dialog that asks the user to type one line of text.

    Its result is that text, without spaces at both ends.
    """

    def __init__(self, question: TextLine) -> None:
        super().__init__(question.question, question.details, f"enter {question.confirm}  esc back")
        self._question = question

    def body(self) -> ComposeResult:
        yield Input(self._question.text, compact=True, password=self._question.hidden)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class LongTextScreen(Dialog[str]):
    """Dialog in which the user edits a text of several lines.

    Its result is the text, without white space at both ends.
    """

    BINDINGS = [hidden("ctrl+s", "keep", "keep", priority=True)]

    editor = getters.query_one(TextArea)

    def __init__(self, question: LongText) -> None:
        super().__init__(question.question, keys=f"ctrl+s {question.confirm}  esc back")
        self._question = question

    def body(self) -> ComposeResult:
        yield TextArea(
            self._question.text, soft_wrap=True, show_line_numbers=False, tab_behavior="focus"
        )

    def action_keep(self) -> None:
        self.dismiss(self.editor.text.strip())
