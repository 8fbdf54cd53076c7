"""The answers to a question: their keys, the list of them, and the note that says what to do instead."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Input
from textual.widgets.option_list import Option

from tui_agent.agent.events import PermissionRequest
from tui_agent.app.permission_text import answers
from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.options import Options

ANSWER_KEYS = {
    "1": "once", "y": "once", "2": "session", "a": "session", "3": "deny", "n": "deny", "4": "note", "e": "note",
    "5": "project", "p": "project", "6": "rule", "r": "rule", "s": "stop",
}  # fmt: skip
KEY_HOLD_SECONDS = 0.2
"""Seconds an answer's key waits for another one."""


class PermissionChoices(Options):
    """The answers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1,y", "answer('once')", "yes", key_display="y"),
        Binding("2,a", "answer('session')", "always", key_display="a"),
        Binding("3,n", "answer('deny')", "no", key_display="n"),
        Binding("4,e", "answer('note')", "no, but …", key_display="e"),
        Binding("5,p", "answer('project')", "project", key_display="p", show=False),
        Binding("6,r", "answer('rule')", "change the rule", key_display="r", show=False),
        Binding("s", "answer('stop')", "stop", key_display="s", show=False),
        Binding("pageup", "scroll_details(-1)", "details up", show=False),
        Binding("pagedown", "scroll_details(1)", "details down", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """A key chose an answer: ``once``, ``session``, ``project``, ``rule``, ``deny``, ``note`` or ``stop``."""

        name: str

    @dataclass
    class DetailsScrolled(Message):
        """The user wants to see more of the details, ``pages`` further down."""

        pages: int

    class OpenAsked(Message):
        """The user wants to see the details whole."""

    @dataclass
    class Typed(Message):
        """Text that is no answer: it is meant for the prompt."""

        text: str

    def __init__(self, *, hold: float) -> None:
        """Make the choices; an answer's key waits ``hold`` seconds for another one: two in a row are text."""
        super().__init__(compact=True)
        self.hold = hold
        self._held = ""
        self.typed = False
        """Whether text was typed since the question was armed; keys close behind are text, too, even answers' keys."""
        self.touched = False
        """Whether the user moved among the choices: only then does Enter take the highlighted one."""

    def action_answer(self, name: str) -> None:
        # A loop has no rules to keep: there the same digit stops the run.
        self.post_message(self.Chosen("stop" if name == "project" and self._has("stop") else name))

    def _has(self, name: str) -> bool:
        return any(option.id == name and not option.disabled for option in self.options)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only the answers that this question has."""
        if action == "answer" and self.option_count:
            return self._has(str(parameters[0]))
        return super().check_action(action, parameters)

    def action_cursor_up(self) -> None:
        """Move up; Enter means the highlighted choice from now on."""
        self.touched = True
        super().action_cursor_up()

    def action_cursor_down(self) -> None:
        """Move down; Enter means the highlighted choice from now on."""
        self.touched = True
        super().action_cursor_down()

    def action_select(self) -> None:
        if self.touched:
            super().action_select()

    async def _on_click(self, event: events.Click) -> None:  # noqa: ARG002 - as inherited
        self.touched = True

    async def _on_key(self, event: events.Key) -> None:
        character = event.character if event.is_printable else None
        if character is None:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        answer = ANSWER_KEYS.get(character.lower())
        if character == "o" and not (self.typed or self._held):
            self.post_message(self.OpenAsked())
        elif answer is None or self.typed or self._held:
            self.typed = True
            held, self._held = self._held, ""
            self.post_message(self.Typed(held + character))
        elif self.hold:
            self._held = character
            self.set_timer(self.hold, self._answer_held)
        else:
            self.action_answer(answer)

    def _answer_held(self) -> None:
        held, self._held = self._held, ""
        if held:
            self.action_answer(ANSWER_KEYS[held.lower()])

    def action_scroll_details(self, pages: int) -> None:
        self.post_message(self.DetailsScrolled(pages))


def options_of(request: PermissionRequest, made: Sequence[str] = ()) -> list[Option]:
    """Return the answers to a question with their digits, the rules as offered or as ``made`` of them."""
    return [
        Option(Content(f"{number} {answer.text}"), id=answer.name, disabled=not answer.is_possible)
        for number, answer in enumerate(answers(request, made), 1)
    ]


def first_answer(request: PermissionRequest) -> int | None:
    """Return the answer that is highlighted at first: of a loop the one that ends the run, else none."""
    names = [option.id for option in options_of(request)]
    return names.index("stop") if request.loop else None


class PermissionPattern(Input):
    """The pattern of a rule, before it is made."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "back to the choices", show=False)]

    @dataclass
    class Left(Message):
        """The user went back to the choices."""

    def action_leave(self) -> None:
        """Go back; the rule stays as it was."""
        self.post_message(self.Left())


class PermissionNote(Input):
    """What the agent should do instead."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "back to the choices", show=False)]

    @dataclass
    class Left(Message):
        """The user went back to the choices."""

    def action_leave(self) -> None:
        """Go back; the note is kept."""
        self.post_message(self.Left())
