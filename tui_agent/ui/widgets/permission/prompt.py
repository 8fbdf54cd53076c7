"""The permission question: what would run, why it asks, and exactly what each answer allows. In place, never modal."""

from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import VerticalGroup, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Input, OptionList, Static

from tui_agent.agent.events import Decision, PermissionAnswer, PermissionRequest
from tui_agent.app.format import one_line, plural
from tui_agent.app.permission_text import question
from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.permission.choices import (
    KEY_HOLD_SECONDS,
    PermissionChoices,
    PermissionNote,
    PermissionPattern,
    first_answer,
    options_of,
)
from tui_agent.ui.widgets.permission.details import PermissionDetails

WORDS_HINT = "enter sends your words as “no, but …” · tab: answer with a key"
"""Shown while the prompt has words."""
PATTERN_HINT = "* stands for anything. Enter takes it, Escape goes back"
"""What is said in place of why a call asks while its rule is being changed."""


class PermissionPrompt(VerticalGroup):
    """Shows the oldest question that waits; others are counted.

    A question takes no key at first, not while the user is typing, and not while the prompt has words: those are sent
    as the answer "no, but …". The user can give it the keys all the same.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"permission--what", "permission--reason"}

    armed: var[bool] = var(False, toggle_class="-armed")  # noqa: FBT003 - how Textual spells it
    """Whether keys answer."""

    @dataclass
    class Answered(Message):
        """The user decided."""

        request: PermissionRequest
        answer: PermissionAnswer

    @dataclass
    class Armed(Message):
        """The question takes keys from now on."""

    @dataclass
    class OpenAsked(Message):
        """The user wants to see the whole of what a question is about."""

        request: PermissionRequest

    @dataclass
    class Typed(Message):
        """The user goes on writing: the text belongs into the prompt, and the question waits for the next pause."""

        text: str

    def __init__(
        self,
        *,
        grace: float,
        typing_pause: float,
        last_typed: Callable[[], float],
        clock: Callable[[], float],
        has_draft: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self._grace = grace
        self._typing_pause = typing_pause
        self._last_typed = last_typed
        self._clock = clock
        self._waiting: list[PermissionRequest] = []
        self._shown_at = 0.0
        self._details = PermissionDetails()
        self._title = Static("", classes="permission-title", markup=False)
        self._scroll = VerticalScroll(self._details, can_focus=False)
        self._has_draft = has_draft
        self._hint = Static("", classes="permission-hint", markup=False)
        self._choices = PermissionChoices(hold=min(KEY_HOLD_SECONDS, grace))
        self._note = PermissionNote(
            placeholder="What should it do instead?  Enter sends, Escape goes back", compact=True
        )
        self._pattern = PermissionPattern(compact=True, select_on_focus=False)
        self._made: list[str] = []
        self._changed = 0
        self.display = False

    def wait_for(self, *, grace: float, typing_pause: float) -> None:
        """Wait so many seconds from the next question on before keys are taken."""
        self._grace, self._typing_pause = grace, typing_pause
        self._choices.hold = min(KEY_HOLD_SECONDS, grace)

    def compose(self) -> ComposeResult:
        """Title, details, what is not seen of them, answers, note, rule."""
        yield self._title
        yield self._scroll
        yield self._hint
        yield self._choices
        yield self._note
        yield self._pattern

    @property
    def request(self) -> PermissionRequest | None:
        """The question shown."""
        return self._waiting[0] if self._waiting else None

    def ask(self, request: PermissionRequest) -> None:
        """Add a question; it is shown when those before it are settled."""
        if any(waiting.call_id == request.call_id for waiting in self._waiting):
            return
        self._waiting.append(request)
        if len(self._waiting) == 1:
            self._show(request)
        else:
            self._show_title()

    def settle(self, call_id: str) -> None:
        """Drop a question that is no longer open, and show the next."""
        shown = self.request
        self._waiting = [waiting for waiting in self._waiting if waiting.call_id != call_id]
        if (request := self.request) is None:
            self.display = self.armed = False
        elif request is not shown:
            self._show(request)
        else:
            self._show_title()

    @property
    def takes_words(self) -> bool:
        """Whether what is sent now is an answer to the question, which was there long enough to be seen."""
        return self.request is not None and self._clock() >= self._shown_at + self._grace

    def answer_in_words(self, text: str) -> None:
        """Answer: no, and what to do instead."""
        self._settle_with(PermissionAnswer(Decision.DENY, text.strip()))

    def take_keys(self) -> None:
        if self.request is not None:
            self._arm()

    def draft_changed(self) -> None:
        """Follow whether the prompt has words."""
        if self.request is None or self.armed:
            return
        self._show_hint()
        if not self._has_draft():
            self._arm_or_wait()

    def come_back(self) -> None:
        """Take no key at first: the user comes from another screen and sees the question only now."""
        if self.request is not None:
            self.armed = False
            self._shown_at = self._clock()
            self._arm_or_wait()

    def clear(self) -> None:
        """Drop every question: the run is over."""
        self._waiting.clear()
        self.display = self.armed = False

    # -- showing ----------------------------------------------------------------------------------------------

    def _show(self, request: PermissionRequest) -> None:
        self.armed = False
        self._shown_at = self._clock()
        self._details.ask(request)
        self.call_after_refresh(self._show_first_change)
        self._choices.set_options(options_of(request))
        self._choices.highlighted = first_answer(request)
        self._choices.touched = False
        self._note.value = ""
        self._made = list(request.rules)
        self._write_in(None)
        self.display = True
        self._arm_or_wait()

    def _show_title(self) -> None:
        if (request := self.request) is None:
            return
        more = f"  ({len(self._waiting) - 1} more)" if len(self._waiting) > 1 else ""
        what, reason = question(request), one_line(request.reason, 200)
        if self._pattern.display:
            what, reason = f"{_name_of(self._made[self._changed])}:", PATTERN_HINT
        faint = self.get_visual_style("permission--reason", partial=True)
        strong = self.get_visual_style("permission--what", partial=True)
        about = f"  {reason}" if reason else ""
        self._title.update(Content.assemble((what, strong), (about, faint), (more, faint)))

    def _show_first_change(self) -> None:
        """Scroll to the first line that changes, where what is around it leaves no room for it."""
        first, rows = self._details.first_change(), self._scroll.size.height
        self._scroll.scroll_to(y=first - rows // 3 if first >= rows - 1 else 0, animate=False)
        self._show_hint()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_hint)

    def _show_hint(self) -> None:
        """Say how much of the details is below, and what happens to words in the prompt."""
        below = round(self._scroll.max_scroll_y - self._scroll.scroll_target_y)
        words = self._has_draft() and not self.armed
        self.set_class(words, "-words")
        keys = WORDS_HINT if words else f"{plural(below, 'more line')} · PgDn · o opens" if below > 0 else ""
        self._hint.display = bool(keys)
        self._hint.update(keys)

    def _arm_or_wait(self) -> None:
        if self._has_draft():
            return
        now = self._clock()
        ready = max(self._shown_at + self._grace, self._last_typed() + self._typing_pause)
        if ready > now:
            self.set_timer(ready - now, self._try_to_arm)
        else:
            self._arm()

    def _try_to_arm(self) -> None:
        if self.request is not None and not self.armed:
            self._arm_or_wait()

    def _arm(self) -> None:
        self.armed = True
        self._choices.typed = False
        self._choices.focus()
        self._show_hint()
        self.refresh_bindings()
        self.post_message(self.Armed())

    # -- answering --------------------------------------------------------------------------------------------

    @on(OptionList.OptionSelected)
    def _option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id:
            self._answer(event.option_id)

    @on(PermissionChoices.Chosen)
    def _key_chose(self, event: PermissionChoices.Chosen) -> None:
        event.stop()
        self._answer(event.name)

    @on(PermissionChoices.Typed)
    def _text_typed(self, event: PermissionChoices.Typed) -> None:
        event.stop()
        self.armed = False
        self.post_message(self.Typed(event.text))

    @on(PermissionChoices.DetailsScrolled)
    def _details_scrolled(self, event: PermissionChoices.DetailsScrolled) -> None:
        event.stop()
        self._scroll.scroll_relative(y=event.pages * max(1, self._scroll.size.height - 1), animate=False)
        self._show_hint()

    @on(PermissionChoices.OpenAsked)
    def _open_asked(self, event: PermissionChoices.OpenAsked) -> None:
        event.stop()
        if self.request is not None:
            self.post_message(self.OpenAsked(self.request))

    @on(PermissionNote.Left)
    def _note_left(self, event: PermissionNote.Left) -> None:
        event.stop()
        self._write_in(None)
        self._choices.focus()

    @on(Input.Submitted, "PermissionPattern")
    def _pattern_made(self, event: Input.Submitted) -> None:
        """Take the pattern of one rule, and go on with the next until all are done."""
        event.stop()
        if pattern := event.value.strip():
            self._made[self._changed] = _with_pattern(self._made[self._changed], pattern)
        if self._changed + 1 < len(self._made):
            self._change_rule(self._changed + 1)
        else:
            self._leave_pattern()

    @on(PermissionPattern.Left)
    def _pattern_left(self, event: PermissionPattern.Left) -> None:
        event.stop()
        self._leave_pattern()

    def _write_in(self, field: Input | None) -> None:
        """Show a field in place of the choices, which a small screen has no room for beside it; None shows those."""
        for known in (self._note, self._pattern):
            known.display = known is field
        if field is not None:
            field.focus()
        self._choices.display = field is None
        self._show_title()

    def _change_rule(self, place: int) -> None:
        self._changed = place
        self._pattern.value = _pattern_of(self._made[place])
        self._pattern.cursor_position = len(self._pattern.value)
        self._write_in(self._pattern)

    def _leave_pattern(self) -> None:
        self._write_in(None)
        if (request := self.request) is not None:
            self._choices.set_options(options_of(request, self._made))
            self._choices.highlighted = 1
        self._choices.focus()
        self.refresh_bindings()

    @on(Input.Submitted, "PermissionNote")
    def _note_sent(self, event: Input.Submitted) -> None:
        event.stop()
        self._settle_with(PermissionAnswer(Decision.DENY, event.value.strip()))

    def _answer(self, name: str) -> None:
        request = self.request
        if request is None or not self.armed or (name in {"session", "project", "rule"} and not request.rules):
            return
        if name in {"project", "rule"} and request.loop:
            return
        if name == "rule":
            self._change_rule(0)
            return
        if name == "stop" and not request.loop:
            return
        if name == "note":
            self._write_in(self._note)
            return
        patterns = () if self._made == list(request.rules) else tuple(map(_pattern_of, self._made))
        self._settle_with(PermissionAnswer(Decision(name), patterns=patterns))

    def _settle_with(self, answer: PermissionAnswer) -> None:
        if (request := self.request) is not None:
            self.armed = False
            self.post_message(self.Answered(request, answer))

    def on_click(self, event: events.Click) -> None:
        """A click is meant: it need not wait for the pause in typing, only for the grace period."""
        if self.request is not None and not self.armed and self._clock() >= self._shown_at + self._grace:
            event.stop()
            self._arm()


def _pattern_of(rule: str) -> str:
    """Return the pattern of a rule as people read it: ``allow bash: git commit *``."""
    return rule.partition(": ")[2]


def _name_of(rule: str) -> str:
    """Return what a rule is about: ``allow bash``."""
    return rule.partition(": ")[0]


def _with_pattern(rule: str, pattern: str) -> str:
    return f"{_name_of(rule)}: {pattern}"
