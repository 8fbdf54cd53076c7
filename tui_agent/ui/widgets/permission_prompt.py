"""The permission question: the call, why it asks, and exactly what each answer allows. In place, never modal."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalGroup, VerticalScroll
from textual.content import Content
from textual.reactive import var
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.agent.checkpoints.restoring import ChangedFile
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionRequest
from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import DiffPage, Output, Page
from tui_agent.app.permission_text import answers, asked_parts, question
from tui_agent.ui.widgets.options import Options
from tui_agent.ui.widgets.prompt import Prompt
from tui_agent.ui.widgets.transcript.bodies import INDENT, TextBody, body_lines
from tui_agent.ui.widgets.transcript.line_view import LineView, diff_lines
from tui_agent.ui.widgets.transcript.lines import Line, crop_runs

LOOP_RESULTS, LOOP_LINES = 3, 3
"""Results of a repeated call that are shown, and lines of each."""


def details_of(request: PermissionRequest, width: int) -> Iterator[Line]:
    """Return the full command, diff or address, as the conversation would show it. Nothing in it is markup.

    For a loop it is the call's results so far, for a command all of it and the parts that ask.
    """
    if request.loop:
        yield from _loop_lines(request, width)
        return
    if asked := asked_parts(request):
        yield from _text_lines(request.command.strip(), "strong", width)
        for text in asked:
            yield Line(crop_runs([("asks for  ", "muted"), (text, "text")], width))
        return
    for text, kind in dict.fromkeys((need.detail or need.pattern, need.detail_kind) for need in request.needs):
        if text and kind == "diff":
            yield from diff_lines(text, width)
        elif text:
            yield from _text_lines(text, "strong" if kind == "command" else "text", width)


def _text_lines(text: str, style: str, width: int) -> Iterable[Line]:
    return body_lines(TextBody(visible(text), style, ""), width)


def _loop_lines(request: PermissionRequest, width: int) -> Iterator[Line]:
    yield from _text_lines(one_line(f"{request.tool} {request.title}", 400), "strong", width)
    # A repetitive answer comes with its text twice.
    first = len(request.loop) - 1 if request.question else max(0, len(request.loop) - LOOP_RESULTS)
    for number, result in enumerate(request.loop[first:], first + 1):
        kept = visible(result).strip().splitlines()
        more = f"  … {len(kept) - LOOP_LINES} more lines" if len(kept) > LOOP_LINES else ""
        name = "repeated text" if request.question else f"result {number} of {len(request.loop)}"
        yield Line([(f"{name}{more}", "muted")])
        for text in kept[:LOOP_LINES] or ["(nothing)"]:
            yield Line(crop_runs([(one_line(text), "text")], width - len(INDENT)), prefix=((INDENT, "text"),))


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

    def __init__(self, question: "PermissionPrompt", *, hold: float) -> None:
        """Make the choices; an answer's key waits ``hold`` seconds for another one: two in a row are text."""
        super().__init__(compact=True)
        self._question = question
        self.hold = hold
        self._held = ""
        self.typed = False
        """Whether text was typed since the question was armed; keys close behind are text, too, even answers' keys."""
        self.touched = False
        """Whether the user moved among the choices: only then does Enter take the highlighted one."""

    def action_answer(self, name: str) -> None:
        # A loop has no rules to keep: there the same digit stops the run.
        self._question.answer("stop" if name == "project" and self._has("stop") else name)

    def _has(self, name: str) -> bool:
        return any(option.id == name and not option.disabled for option in self.options)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "answer" and self.option_count:
            return self._has(str(parameters[0]))
        return super().check_action(action, parameters)

    def action_select(self) -> None:
        if self.touched:
            super().action_select()

    async def _on_click(self, event: events.Click) -> None:  # noqa: ARG002 - as inherited
        self.touched = True

    async def _on_key(self, event: events.Key) -> None:
        character = event.character if event.is_printable else None
        if character is None:
            self.touched |= event.key in {"up", "down"}
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        answer = ANSWER_KEYS.get(character.lower())
        if character == "o" and not (self.typed or self._held):
            self._question.open()
        elif answer is None or self.typed or self._held:
            self.typed = True
            held, self._held = self._held, ""
            self._question.go_on(held + character)
        elif self.hold:
            self._held = character
            self.set_timer(self.hold, self._answer_held)
        else:
            self.action_answer(answer)

    def action_scroll_details(self, pages: int) -> None:
        self._question.scroll_details(pages)

    def _answer_held(self) -> None:
        held, self._held = self._held, ""
        if held:
            self.action_answer(ANSWER_KEYS[held.lower()])


def options_of(request: PermissionRequest, made: Sequence[str] = ()) -> list[Option]:
    """Return the answers to a question with their digits, the rules as offered or as ``made`` of them."""
    return [
        Option(Content(f"{number} {answer.text}"), id=answer.name, disabled=not answer.is_possible)
        for number, answer in enumerate(answers(request, made), 1)
    ]


WORDS_HINT = "enter sends your words as “no, but …” · tab: answer with a key"
PATTERN_HINT = "* stands for anything. Enter takes it, Escape goes back"
"""Replaces the reason why a call asks while its rule is being changed."""


class PermissionPrompt(VerticalGroup):
    """Shows the oldest question that waits; others are counted.

    A question takes no key at first, not while the user is typing, and not while the prompt has words: those are sent
    as the answer "no, but …". The user can give it the keys all the same.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave_field", "back to the choices", show=False)]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"permission--what", "permission--reason"}

    armed: var[bool] = var(False, toggle_class="-armed")  # noqa: FBT003 - how Textual spells it

    def __init__(
        self,
        *,
        grace: float,
        typing_pause: float,
        prompt: Prompt,
        clock: Callable[[], float],
        settle: Callable[[PermissionRequest, PermissionAnswer], None],
        show: Callable[[Page], None],
    ) -> None:
        """``settle`` takes the user's decision, ``show`` the page with the whole subject of a question."""
        super().__init__()
        self._settle = settle
        self._show_page = show
        self._prompt = prompt
        self._grace = grace
        self._typing_pause = typing_pause
        self._clock = clock
        self._waiting: list[PermissionRequest] = []
        self._shown_at = 0.0
        self._details = LineView()
        self._title = Static("", classes="permission-title", markup=False)
        self._scroll = VerticalScroll(self._details, can_focus=False)
        self._hint = Static("", classes="permission-hint", markup=False)
        self._choices = PermissionChoices(self, hold=min(KEY_HOLD_SECONDS, grace))
        self._note = Input(placeholder="What should it do instead?  Enter sends, Escape goes back", compact=True)
        """The field for an instruction to the agent; its text stays."""
        self._pattern = Input(compact=True, select_on_focus=False)
        """The pattern of a rule before it is made."""
        self._made: list[str] = []
        """The rules as the user wants them: their subject and a pattern, ``allow bash: git commit *``."""
        self._changed = 0
        self._is_scrolled = False
        self.display = False

    def wait_for(self, *, grace: float, typing_pause: float) -> None:
        """Wait so many seconds from the next question on before keys are taken."""
        self._grace, self._typing_pause = grace, typing_pause
        self._choices.hold = min(KEY_HOLD_SECONDS, grace)

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._scroll
        yield self._hint
        yield self._choices
        yield self._note
        yield self._pattern

    @property
    def request(self) -> PermissionRequest | None:
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
        shown = self.request
        self._waiting = [waiting for waiting in self._waiting if waiting.call_id != call_id]
        if (request := self.request) is None:
            self.display = self.armed = False
        elif request is not shown:
            self._show(request)
        else:
            self._show_title()

    def answer_in_words(self, text: str) -> bool:
        """Answer "no, but …", unless the question was not there long enough to be seen; returns whether it was."""
        was_seen = self.request is not None and self._clock() >= self._shown_at + self._grace
        if was_seen:
            self._settle_with(PermissionAnswer(Decision.DENY, text.strip()))
        return was_seen

    def draft_changed(self) -> None:
        if self.request is None or self.armed:
            return
        self._show_hint()
        if not self._prompt.text:
            self._arm_or_wait()

    def come_back(self) -> None:
        """Take no key at first: the user comes from another screen and sees the question only now."""
        if self.request is not None:
            self.armed = False
            self._shown_at = self._clock()
            self._arm_or_wait()

    def clear(self) -> None:
        self._waiting.clear()
        self.display = self.armed = False

    # -- showing ----------------------------------------------------------------------------------------------

    def _show(self, request: PermissionRequest) -> None:
        self.armed = False
        self._shown_at = self._clock()
        self._details.show(partial(details_of, request))
        self._is_scrolled = False
        self.call_after_refresh(self._show_first_change)
        options = options_of(request)
        self._choices.set_options(options)
        # Of a loop the answer that ends the run is highlighted, else none.
        self._choices.highlighted = [option.id for option in options].index("stop") if request.loop else None
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
        heading, reason = question(request), one_line(request.reason, 200)
        if self._pattern.display:
            heading, reason = f"{self._made[self._changed].partition(': ')[0]}:", PATTERN_HINT
        faint, strong = ".permission--reason", ".permission--what"
        about = f"  {reason}" if reason else ""
        self._title.update(Content.assemble((heading, strong), (about, faint), (more, faint)))

    def _show_first_change(self) -> None:
        """Scroll to the first line that changes, where the lines before it leave no room for it."""
        lines, rows = enumerate(self._details.lines(self._details.size.width)), self._scroll.size.height
        first = next((at for at, line in lines if line.fill.startswith(("added", "removed"))), 0)
        self._scroll.scroll_to(y=first - rows // 3 if first >= rows - 1 else 0, animate=False)
        self._show_hint()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_hint if self._is_scrolled else self._show_first_change)

    def _show_hint(self) -> None:
        below = round(self._scroll.max_scroll_y - self._scroll.scroll_target_y)
        words = bool(self._prompt.text) and not self.armed
        self.set_class(words, "-words")
        more = f"{below:,} more line{'s' * (below > 1)}{' · PgDn · o opens' * self._choices.display}"
        keys = WORDS_HINT if words else more if below > 0 else ""
        self._hint.display = bool(keys)
        self._hint.update(keys)

    def _arm_or_wait(self) -> None:
        if self._prompt.text or self.request is None or self.armed:
            return
        now = self._clock()
        ready = max(self._shown_at + self._grace, self._prompt.last_typed + self._typing_pause)
        if ready > now:
            self.set_timer(ready - now, self._arm_or_wait)
        else:
            self.arm()

    def arm(self) -> None:
        """Take the keys."""
        self.armed = True
        self._choices.typed = False
        self._choices.focus()
        self._show_hint()
        self.refresh_bindings()

    # -- answering --------------------------------------------------------------------------------------------

    @on(OptionList.OptionSelected)
    def _option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id:
            self.answer(event.option_id)

    def go_on(self, text: str) -> None:
        self.armed = False
        self._prompt.go_on(text)

    def scroll_details(self, pages: int) -> None:
        self._is_scrolled = True
        self._scroll.scroll_relative(y=pages * max(1, self._scroll.size.height - 1), animate=False)
        self._show_hint()

    def open(self) -> None:
        if (request := self.request) is None:
            return
        if diffs := [need for need in request.needs if need.detail_kind == "diff"]:
            files = [ChangedFile("M", need.pattern, "", need.detail) for need in diffs]
            self._show_page(DiffPage(question(request), files))
        else:
            parts = [request.command, *(need.detail or need.pattern for need in request.needs), *request.loop]
            self._show_page(Output(question(request), "\n\n".join(dict.fromkeys(filter(None, parts)))))

    @on(Input.Submitted)
    def _field_sent(self, event: Input.Submitted) -> None:
        """Send the note; or take the pattern of one rule, and go on with the next until all are done."""
        event.stop()
        text = event.value.strip()
        if event.input is self._note:
            self._settle_with(PermissionAnswer(Decision.DENY, text))
            return
        if text:
            about, _, _ = self._made[self._changed].partition(": ")
            self._made[self._changed] = f"{about}: {text}"
        if self._changed + 1 < len(self._made):
            self._change_rule(self._changed + 1)
        else:
            self.action_leave_field()

    def _write_in(self, field: Input | None) -> None:
        """Show a field in place of the choices, which a small screen has no room for beside it; None shows those."""
        for known in (self._note, self._pattern):
            known.display = known is field
        if field is not None:
            field.focus()
        self._choices.display = field is None
        self._show_title()
        self._show_hint()

    def _change_rule(self, place: int) -> None:
        self._changed = place
        _, _, self._pattern.value = self._made[place].partition(": ")
        self._pattern.cursor_position = len(self._pattern.value)
        self._write_in(self._pattern)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - as inherited
        return action != "leave_field" or self._note.has_focus or self._pattern.has_focus

    def action_leave_field(self) -> None:
        is_rule = self._pattern.display
        self._write_in(None)
        if is_rule and (request := self.request) is not None:
            self._choices.set_options(options_of(request, self._made))
            self._choices.highlighted = 1
        self._choices.focus()
        self.refresh_bindings()

    def answer(self, name: str) -> None:
        request = self.request
        if request is None or not self.armed:
            return
        if not any(one.name == name and one.is_possible for one in answers(request)):
            return
        if name == "rule":
            self._change_rule(0)
        elif name == "note":
            self._write_in(self._note)
        else:
            is_changed = self._made != list(request.rules)
            patterns = tuple(rule.partition(": ")[2] for rule in self._made) if is_changed else ()
            self._settle_with(PermissionAnswer(Decision(name), patterns=patterns))

    def _settle_with(self, answer: PermissionAnswer) -> None:
        if (request := self.request) is not None:
            self.armed = False
            self._settle(request, answer)

    def on_click(self, event: events.Click) -> None:
        """A click is meant: it need not wait for the pause in typing, only for the grace period."""
        if self.request is not None and not self.armed and self._clock() >= self._shown_at + self._grace:
            event.stop()
            self.arm()
