"""The permission question: what would run, why it asks, and exactly what each answer allows. In place, never modal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalGroup, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.style import Style
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.agent.events import Decision, PermissionAnswer, PermissionRequest
from tui_agent.tools.base import Permission, PermissionNeed
from tui_agent.ui.format import one_line, visible

VERBS = {
    Permission.READ: "Read",
    Permission.EDIT: "Change",
    Permission.BASH: "Run",
    Permission.WEBFETCH: "Fetch",
    Permission.MCP: "Use",
    Permission.TASK: "Start",
    Permission.EXTERNAL_DIRECTORY: "Go outside the project for",
    Permission.DOOM_LOOP: "Go on repeating",
}
WHAT = {Permission.BASH: "this command", Permission.WEBFETCH: "this address", Permission.DOOM_LOOP: "this call"}
"""What a question is about when the details below name it anyway."""


ABOUT = {
    Permission.READ: "reading",
    Permission.EDIT: "changing",
    Permission.EXTERNAL_DIRECTORY: "going to",
    Permission.WEBFETCH: "fetching",
}
"""How a part of a command is named that needs more than to run."""

LOOP_RESULTS, LOOP_LINES = 3, 3
"""Results of a repeated call that are shown, and lines of each."""


def _question(request: PermissionRequest) -> str:
    """Return the question in a few words."""
    if not request.needs:
        return f"Use {one_line(request.tool, 40)}?"
    if request.command:
        return "Run this command?"
    need = request.needs[0]
    what = WHAT.get(need.permission) or one_line(request.title or need.pattern, 120)
    return f"{VERBS[need.permission]} {what}?"


class PermissionDetails(Static):
    """The full command, diff or address. Plain text only: nothing in it is markup."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "permission--added",
        "permission--removed",
        "permission--hunk",
        "permission--command",
    }

    def show(self, request: PermissionRequest) -> None:
        """Show what the call wants: for a loop what it gave so far, for a command all of it and what of it asks."""
        if request.loop:
            self.update(self._loop(request))
            return
        shown = [self._detail(need) for need in request.needs if need.detail or need.pattern]
        command = request.command.strip()
        if command and any(need.detail.strip() != command for need in request.needs):
            faint = self._style("hunk")
            asked = (Content.assemble(("asks for  ", faint), self._asked(need)) for need in request.needs)
            shown = [Content.styled(visible(command), self._style("command")), *asked]
        self.update(Content("\n").join(dict.fromkeys(shown)))

    def _asked(self, need: PermissionNeed) -> Content:
        """Return a part of a command that asks, on one line, with what it is about."""
        text = one_line(need.detail if need.detail_kind == "command" else need.pattern, 160)
        if need.permission is Permission.BASH:
            return Content(text)
        return Content(f"{ABOUT.get(need.permission, need.permission.value)} {text}")

    def _loop(self, request: PermissionRequest) -> Content:
        """Return the call that repeats and the last of its results, shortened."""
        faint = self._style("hunk")
        lines = [Content.styled(one_line(f"{request.tool} {request.title}", 400), self._style("command"))]
        first = max(0, len(request.loop) - LOOP_RESULTS)
        for number, result in enumerate(request.loop[first:], first + 1):
            kept = visible(result).strip().splitlines()
            more = f"  … {len(kept) - LOOP_LINES} more lines" if len(kept) > LOOP_LINES else ""
            lines.append(Content.styled(f"result {number} of {len(request.loop)}{more}", faint))
            lines += [Content(f"  {line[:200]}") for line in kept[:LOOP_LINES] or ["(nothing)"]]
        return Content("\n").join(lines)

    def _detail(self, need: PermissionNeed) -> Content:
        text = visible(need.detail or need.pattern)
        match need.detail_kind:
            case "diff":
                # The question names the file already; room for lines of the diff is dear.
                lines = [line for line in text.splitlines() if not line.startswith(("--- ", "+++ "))]
                return Content("\n").join(self._diff_line(line) for line in lines)
            case "command":
                return Content.styled(text, self._style("command"))
            case _:
                return Content(text)

    def _diff_line(self, line: str) -> Content:
        name = {"+": "added", "-": "removed", "@": "hunk"}.get(line[:1])
        return Content.styled(line, self._style(name)) if name else Content(line)

    def _style(self, name: str) -> Style:
        return self.get_visual_style(f"permission--{name}", partial=True)


ANSWER_KEYS = {
    "1": "once", "y": "once", "2": "session", "a": "session", "3": "deny", "n": "deny", "4": "note", "e": "note",
    "5": "stop", "s": "stop",
}  # fmt: skip
HOLD = 0.2
"""Seconds an answer's key waits for another one."""


class PermissionChoices(OptionList):
    """The answers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1,y", "answer('once')", "yes", key_display="y"),
        Binding("2,a", "answer('session')", "always in this session", key_display="a", show=False),
        Binding("3,n", "answer('deny')", "no", key_display="n"),
        Binding("4,e", "answer('note')", "no, but …", key_display="e", show=False),
        Binding("5,s", "answer('stop')", "stop", key_display="s", show=False),
        Binding("pageup", "scroll_details(-1)", "details up", show=False),
        Binding("pagedown", "scroll_details(1)", "details down", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """A key chose an answer: ``once``, ``session``, ``deny``, ``note`` or ``stop``."""

        name: str

    @dataclass
    class DetailsScrolled(Message):
        """The user wants to see more of the details, ``pages`` further down."""

        pages: int

    @dataclass
    class Typed(Message):
        """Text that is no answer: it is meant for the prompt."""

        text: str

    def __init__(self, *, hold: float, has_draft: Callable[[], bool]) -> None:
        """Make the choices.

        Args:
            hold: Seconds an answer's key waits for another one: two in a row are text and no answer.
            has_draft: Whether the prompt holds text; then letters go on with it, and only digits answer.
        """
        super().__init__(compact=True)
        self._hold = hold
        self._has_draft = has_draft
        self._held = ""
        self.touched = False
        """Whether the user moved among the choices: only then does Enter take the highlighted one."""

    def action_answer(self, name: str) -> None:
        """Choose an answer by its key."""
        self.post_message(self.Chosen(name))

    def action_cursor_up(self) -> None:
        """Move up; Enter means the highlighted choice from now on."""
        self.touched = True
        super().action_cursor_up()

    def action_cursor_down(self) -> None:
        """Move down; Enter means the highlighted choice from now on."""
        self.touched = True
        super().action_cursor_down()

    def action_select(self) -> None:
        """Take the highlighted choice, if the user chose to highlight one."""
        if self.touched:
            super().action_select()

    async def _on_click(self, event: events.Click) -> None:
        self.touched = True
        await super()._on_click(event)

    async def _on_key(self, event: events.Key) -> None:
        character = event.character if event.is_printable else None
        if character is None:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        answer = ANSWER_KEYS.get(character.lower())
        if self._held or answer is None or (not character.isdigit() and self._has_draft()):
            held, self._held = self._held, ""
            self.post_message(self.Typed(held + character))
        elif self._hold:
            self._held = character
            self.set_timer(self._hold, self._answer_held)
        else:
            self.action_answer(answer)

    def _answer_held(self) -> None:
        held, self._held = self._held, ""
        if held:
            self.action_answer(ANSWER_KEYS[held.lower()])

    def action_scroll_details(self, pages: int) -> None:
        """Leave the choices where they are and scroll what is asked about."""
        self.post_message(self.DetailsScrolled(pages))


class PermissionNote(Input):
    """What the agent should do instead."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "back to the choices", show=False)]

    @dataclass
    class Left(Message):
        """The user went back to the choices."""

    def action_leave(self) -> None:
        """Go back; the note is kept."""
        self.post_message(self.Left())


class PermissionPrompt(VerticalGroup):
    """Shows the oldest question that waits; others are counted.

    A question takes no key at first and not while the user is typing, so that a letter meant for the prompt never
    answers it. Then it takes the focus; the prompt keeps its text.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"permission--what", "permission--reason"}

    armed: var[bool] = var(False, toggle_class="-armed")  # noqa: FBT003
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
        self._details = PermissionDetails("", markup=False)
        self._title = Static("", classes="permission-title", markup=False)
        self._scroll = VerticalScroll(self._details, can_focus=False)
        self._choices = PermissionChoices(hold=min(HOLD, grace), has_draft=has_draft)
        self._note = PermissionNote(
            placeholder="What should it do instead?  Enter sends, Escape goes back", compact=True
        )
        self.display = False

    def compose(self) -> ComposeResult:
        """Title, details, answers, note."""
        yield self._title
        yield self._scroll
        yield self._choices
        yield self._note

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

    def clear(self) -> None:
        """Drop every question: the run is over."""
        self._waiting.clear()
        self.display = self.armed = False

    # -- showing ----------------------------------------------------------------------------------------------

    def _show(self, request: PermissionRequest) -> None:
        self.armed = False
        self._shown_at = self._clock()
        self._show_title()
        self._details.show(request)
        self._scroll.scroll_home(animate=False)
        self._choices.set_options(self._options(request))
        self._choices.highlighted = 0
        self._choices.touched = False
        self._note.value = ""
        self._note.display = False
        self.display = True
        self._arm_or_wait()

    def _show_title(self) -> None:
        if (request := self.request) is None:
            return
        more = f"  ({len(self._waiting) - 1} more)" if len(self._waiting) > 1 else ""
        reason = one_line(request.reason, 200)
        faint = self.get_visual_style("permission--reason", partial=True)
        strong = self.get_visual_style("permission--what", partial=True)
        about = f"  {reason}" if reason else ""
        self._title.update(Content.assemble((_question(request), strong), (about, faint), (more, faint)))

    def _options(self, request: PermissionRequest) -> list[Option]:
        rules = " · ".join(one_line(rule, 160) for rule in request.rules)
        if request.loop:
            rows = [
                ("once", "1 run it once more", False),
                ("session", "2 allow this loop in this session, until the program ends", False),
                ("deny", "3 no, it should try something else", False),
                ("note", "4 no, and say what to do instead", False),
                ("stop", "5 stop the run", False),
            ]
            return [Option(Content(text), id=name) for name, text, _disabled in rows]
        always = f"2 always in this session: {rules or 'not for this one'}"
        rows = [
            ("once", "1 yes, once", False),
            ("session", always, not rules),
            ("deny", "3 no", False),
            ("note", "4 no, and say what to do instead", False),
        ]
        return [Option(Content(text), id=name, disabled=disabled) for name, text, disabled in rows]

    def _arm_or_wait(self) -> None:
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
        self._choices.focus()
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
        self.set_timer(self._typing_pause, self._try_to_arm)

    @on(PermissionChoices.DetailsScrolled)
    def _details_scrolled(self, event: PermissionChoices.DetailsScrolled) -> None:
        event.stop()
        self._scroll.scroll_relative(y=event.pages * max(1, self._scroll.size.height - 1), animate=False)

    @on(PermissionNote.Left)
    def _note_left(self, event: PermissionNote.Left) -> None:
        event.stop()
        self._note.display = False
        self._choices.focus()

    @on(Input.Submitted)
    def _note_sent(self, event: Input.Submitted) -> None:
        event.stop()
        self._settle_with(PermissionAnswer(Decision.DENY, event.value.strip()))

    def _answer(self, name: str) -> None:
        request = self.request
        if request is None or not self.armed or (name == "session" and not request.rules):
            return
        if name == "stop" and not request.loop:
            return
        if name == "note":
            self._note.display = True
            self._note.focus()
            return
        self._settle_with(PermissionAnswer(Decision(name)))

    def _settle_with(self, answer: PermissionAnswer) -> None:
        if (request := self.request) is not None:
            self.armed = False
            self.post_message(self.Answered(request, answer))

    def on_click(self, event: events.Click) -> None:
        """A click is meant: it need not wait for the pause in typing, only for the grace period."""
        if self.request is not None and not self.armed and self._clock() >= self._shown_at + self._grace:
            event.stop()
            self._arm()
