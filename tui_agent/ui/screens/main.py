"""The main screen: one session's conversation, the questions it asks, the prompt, the gauge and the status line."""

import asyncio
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import events, getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.screen import Screen

from tui_agent.session.entries import UserPart
from tui_agent.session.errors import SessionHeld, StoreError
from tui_agent.ui import handlers, reports
from tui_agent.ui.commands import Command, available, close_names, find, key_bindings
from tui_agent.ui.event_map import apply
from tui_agent.ui.format import one_line, short_path
from tui_agent.ui.inbox import AgentEvents
from tui_agent.ui.prompting.attachments import has_mention, parts_of
from tui_agent.ui.prompting.completion import CommandName
from tui_agent.ui.prompting.intent import CommandIntent, MessageIntent, ShellIntent, parse
from tui_agent.ui.run_state import RunState
from tui_agent.ui.screens.sessions import held_question
from tui_agent.ui.services import AgentPort, AppServices, CompactingAgent, OpenHow, OpenRequest
from tui_agent.ui.session_slot import SessionSlot
from tui_agent.ui.widgets.completion import CompletionPopup
from tui_agent.ui.widgets.gauge import Gauge, GaugeReading
from tui_agent.ui.widgets.header import SessionHeader
from tui_agent.ui.widgets.new_chip import NewChip
from tui_agent.ui.widgets.notice import NoticeLine, Severity
from tui_agent.ui.widgets.permission import PermissionPrompt
from tui_agent.ui.widgets.prompt import Prompt
from tui_agent.ui.widgets.queue import QueueList
from tui_agent.ui.widgets.status import StatusLine
from tui_agent.ui.widgets.transcript import Transcript, messages

HISTORY = 1_000
"""Earlier messages the prompt can go back to."""


class MainScreen(Screen[None]):
    """Shows the agent of the open session. Handlers here own every change; the agent is the truth."""

    AUTO_FOCUS = "Prompt"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (70, "-normal"), (120, "-wide")]  # noqa: RUF012 - as inherited
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (18, "-short"), (24, "-tall")]  # noqa: RUF012 - as inherited
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "interrupt", "interrupt", key_display="esc"),
        Binding("escape", "to_prompt", "prompt", show=False),
        Binding("alt+up", "take_back", "take back", show=False),
        Binding("ctrl+end", "scroll_end", "newest", show=False),
        Binding("ctrl+home", "scroll_top", "oldest", show=False),
        *key_bindings(),
    ]

    header = getters.query_one(SessionHeader)
    transcript = getters.query_one(Transcript)
    question = getters.query_one(PermissionPrompt)
    notice = getters.query_one(NoticeLine)
    waiting = getters.query_one(QueueList)
    popup = getters.query_one(CompletionPopup)
    new_chip = getters.query_one(NewChip)
    prompt = getters.query_one(Prompt)
    gauge = getters.query_one(Gauge)
    status = getters.query_one(StatusLine)

    class Opened(Message):
        """A session was opened and is shown."""

    def __init__(self, services: AppServices) -> None:
        super().__init__()
        self.services = services
        self.undone: list[int | None] = []
        """Leaves that ``/undo`` left, newest last."""
        self._slot = SessionSlot(services, self)
        self._sending = asyncio.Lock()

    def compose(self) -> ComposeResult:
        """Header, conversation with everything that lies above the prompt, prompt, gauge, status."""
        settings, clock = self.services.settings, self.services.clock
        popup = CompletionPopup(self._command_names, self._files)
        prompt = Prompt(popup, self._history, clock)
        prompt.cursor_blink = settings.cursor_blink and not settings.reduced_motion
        yield SessionHeader()
        with Container(id="body"):
            yield Transcript()
            yield PermissionPrompt(
                grace=settings.permission_grace,
                typing_pause=settings.typing_pause,
                last_typed=lambda: prompt.last_typed,
                clock=clock,
            )
            yield NoticeLine()
            yield QueueList()
            yield NewChip()
            yield popup
        yield prompt
        yield Gauge()
        yield StatusLine(clock)

    @property
    def agent(self) -> AgentPort | None:
        """The agent of the open session; None until the first is open."""
        return self._slot.agent

    # -- sessions ---------------------------------------------------------------------------------------------

    async def open(self, request: OpenRequest) -> None:
        """Open a session in place of the one shown; when that fails, the one shown stays."""
        try:
            agent = await self._slot.open(request)
        except SessionHeld as held:
            self._ask_how(request, held)
            return
        except StoreError as error:
            self.say(error.message, "error")
            return
        self.undone.clear()
        self.notice.clear()
        self.question.clear()
        self.leave_question()
        self.transcript.open(agent)
        self.status.state = RunState()
        self.waiting.queue = agent.queue
        if agent.question is not None:
            self.question.ask(agent.question)
        self.prompt.read_only = agent.session.read_only
        self.header.note = "read only" if agent.session.read_only else ""
        self.show_facts()
        self.show_running()
        self.look_at_files()
        self.post_message(self.Opened())

    def open_later(self, request: OpenRequest | None) -> None:
        """Open what a picker was dismissed with."""
        if request is not None and (self.agent is None or request != OpenRequest(self.agent.session.id)):
            self.run_worker(self.open(request), group="open", exclusive=True)

    async def on_unmount(self) -> None:
        """End the run and let go of the session."""
        await self._slot.close()

    def _ask_how(self, request: OpenRequest, held: SessionHeld) -> None:
        def answered(how: str | None) -> None:
            if how is not None:
                self.open_later(OpenRequest(request.session_id or held.session_id, OpenHow(how)))

        self.app.push_screen(held_question(held.pid, held.host), answered)

    # -- showing ----------------------------------------------------------------------------------------------

    @on(AgentEvents)
    def _agent_spoke(self, message: AgentEvents) -> None:
        for event in message.inbox.take():
            apply(self, event)

    def show_facts(self) -> None:
        """Show what the session and the next request are now: title, leaf, model, size, cost."""
        if (agent := self.agent) is None:
            return
        info = agent.session.info
        self.header.title = info.title or info.first_message
        self.header.directory = short_path(info.cwd)
        self.status.mode, self.status.model, self.status.leaf = agent.mode, agent.model, agent.session.leaf
        self.gauge.reading = GaugeReading(
            agent.context_size(),
            reports.cache_share(agent.session.active_path()),
            agent.session_cost(),
            isinstance(agent, CompactingAgent),
        )
        self.app.sub_title = one_line(info.title, 60)

    def show_running(self) -> None:
        """Let keys and hints follow whether a run goes on."""
        self.prompt.running = self.agent is not None and self.agent.running
        self.refresh_bindings()

    def say(self, message: str, severity: Severity = "information", remedy: tuple[str, str, str] | None = None) -> None:
        """Show a sentence above the prompt until something new begins."""
        self.notice.say(message, severity, remedy)

    def leave_question(self) -> None:
        """Go back to the prompt when no question is left."""
        if self.question.request is None and self.question.has_focus_within:
            self.prompt.focus()
        self.refresh_bindings()

    @work(exclusive=True, group="branch", exit_on_error=False)
    async def look_at_files(self) -> None:
        """See what the branch is now; the list of files may have changed too."""
        self.popup.forget_files()
        self.header.branch = await self.services.branch(self._cwd) or ""

    # -- the conversation -------------------------------------------------------------------------------------

    @on(messages.CopyRequested)
    def _copy_block(self, message: messages.CopyRequested) -> None:
        self.app.copy_to_clipboard(message.text)

    @on(messages.ActionRequested)
    async def _block_action(self, message: messages.ActionRequested) -> None:
        await handlers.block_action(self, message.action, message.entry_id)

    @on(messages.LinkClicked)
    def _link_clicked(self, message: messages.LinkClicked) -> None:
        self.app.open_url(message.href)

    @on(messages.NewBelow)
    def _new_below(self, message: messages.NewBelow) -> None:
        self.new_chip.display = message.has_new

    @on(NewChip.Pressed)
    def action_scroll_end(self) -> None:
        """Show the end of the conversation and follow it."""
        self.transcript.action_bottom()

    def action_scroll_top(self) -> None:
        """Show the beginning of the conversation."""
        self.transcript.action_top()

    def action_scroll_page(self, pages: int) -> None:
        """Scroll the conversation while the prompt has the focus."""
        self.transcript.action_page(pages)

    def action_to_prompt(self) -> None:
        """Go back to writing."""
        self.prompt.focus()

    # -- the prompt -------------------------------------------------------------------------------------------

    @on(Prompt.Sent)
    async def _prompt_sent(self, message: Prompt.Sent) -> None:
        if self.agent is None:
            self.prompt.set_draft(message.text)
            return
        self.notice.clear()
        match parse(message.text):
            case CommandIntent(name, arguments):
                await self.run_command(name, arguments)
            case ShellIntent(command, excluded):
                self.run_soon(self.agent.run_shell(command, excluded=excluded))
            case MessageIntent(text) if has_mention(text):
                self._send_with_files(text, message.follow_up)
            case MessageIntent(text):
                self._submit(text, follow_up=message.follow_up)
            case _:
                pass

    def send(self, text: str) -> None:
        """Send a text as if it were typed."""
        self.post_message(Prompt.Sent(self.prompt, text, follow_up=False))

    @work(group="send", exit_on_error=False)
    async def _send_with_files(self, text: str, follow_up: bool) -> None:  # noqa: FBT001 - a worker's argument
        async with self._sending:
            parts = await parts_of(text, self._cwd, self.services.store.put_blob)
            self._submit(parts, follow_up=follow_up)

    def _submit(self, message: str | Sequence[UserPart], *, follow_up: bool) -> None:
        if self.agent is None:
            return
        if self.agent.session.read_only:
            self.say("This session is open for reading only; /fork goes on in a copy.", "warning")
            return
        self.undone.clear()
        try:
            self.agent.submit(message, follow_up=follow_up)
        except StoreError as error:
            text = message if isinstance(message, str) else "".join(getattr(part, "text", "") for part in message[:1])
            self.prompt.set_draft(text)
            self.say(error.message, "error")

    @on(Prompt.QuitAsked)
    def _quit_asked(self) -> None:
        self.run_worker(self.run_command("quit", ""), group="command")

    @on(Prompt.EditorFailed)
    def _editor_failed(self, message: Prompt.EditorFailed) -> None:
        self.say(message.reason, "warning")

    @on(CompletionPopup.Changed)
    def _popup_changed(self) -> None:
        self.refresh_bindings()

    @on(CompletionPopup.Picked)
    def _popup_picked(self) -> None:
        self.prompt.insert_choice()
        self.prompt.focus()

    @on(PermissionPrompt.Answered)
    def _question_answered(self, message: PermissionPrompt.Answered) -> None:
        if self.agent is not None:
            self.agent.answer_permission(message.request.call_id, message.answer)

    @on(Gauge.Pressed)
    async def _gauge_pressed(self) -> None:
        await self.run_command("context", "")

    # -- commands ---------------------------------------------------------------------------------------------

    @property
    def commands(self) -> list[Command]:
        """The commands that exist for this agent."""
        return available(self.agent)

    async def run_command(self, name: str, arguments: str) -> None:
        """Run a command of the table; an unknown name is answered with those that look like it."""
        commands = self.commands
        if (command := find(name, commands)) is None:
            close = close_names(name, commands)
            meant = f"Did you mean {' or '.join('/' + known for known in close)}?" if close else "/help lists them."
            self.say(f"There is no command /{one_line(name, 40)}. {meant}", "warning")
            return
        await command.handler(self, arguments)

    async def action_command(self, name: str) -> None:
        """Run a command by its key."""
        await self.run_command(name, "")

    def action_interrupt(self) -> None:
        """Stop the run."""
        if self.agent is not None:
            self.agent.interrupt()

    def action_take_back(self) -> None:
        """Put the newest waiting message back into the prompt, before what is written there."""
        if self.agent is None or (text := self.agent.take_back()) is None:
            return
        draft = self.prompt.full_text
        self.prompt.set_draft(f"{text}\n{draft}" if draft.strip() else text)
        self.prompt.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what would do something now."""
        if action == "interrupt":
            return self.agent is not None and self.agent.running
        if action == "to_prompt":
            return self.agent is None or not self.agent.running
        if action == "take_back":
            return bool(self.waiting.queue.steer or self.waiting.queue.follow_up)
        if action == "command":
            return find(str(parameters[0]), self.commands) is not None
        return super().check_action(action, parameters)

    def run_soon(self, result: object) -> None:
        """Run what an agent's method returned, when it is something to wait for."""
        if inspect.isawaitable(result):
            self.run_worker(_wait_for(result), group="agent", exit_on_error=False)

    def use_model(self, model: str | None) -> None:
        """Use a model from the next request on, and at the next start."""
        if self.agent is None or not model:
            return
        self.agent.change_model(model)
        self.services.save_setting("model", model)
        self.show_facts()

    def use_theme(self, theme: str | None) -> None:
        """Use a theme now and at the next start."""
        if theme is not None:
            self.app.theme = theme
            self.services.save_setting("ui.theme", theme)

    # -- sources ----------------------------------------------------------------------------------------------

    @property
    def _cwd(self) -> Path:
        return Path(self.agent.session.info.cwd) if self.agent is not None else self.services.cwd

    def _command_names(self) -> list[CommandName]:
        return [CommandName(row.name, row.help, row.takes_argument) for row in self.commands]

    async def _files(self) -> Sequence[str]:
        return await self.services.list_files(self._cwd)

    def _history(self) -> Sequence[str]:
        return self.services.store.prompt_history(HISTORY)

    @on(events.Paste)
    def _paste_elsewhere(self, event: events.Paste) -> None:
        """A paste while the conversation has the focus is meant for the prompt."""
        if not self.prompt.has_focus and self.question.request is None:
            self.prompt.focus()
            self.prompt.post_message(event)


async def _wait_for(result: object) -> None:
    if inspect.isawaitable(result):
        await result
