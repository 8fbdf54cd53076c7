"""The main screen: header, the open session, the prompt, the gauge and the status line.

It is painted before anything about sessions is imported; ``attach`` brings in the rest.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen

from tui_agent.ui import following, knowledge_handlers
from tui_agent.ui.commands import Command, Offer, close_names, find, key_bindings
from tui_agent.ui.format import one_line, short_path
from tui_agent.ui.prompting.completion import CommandName
from tui_agent.ui.prompting.outbox import Outbox
from tui_agent.ui.prompting.sources import FileSource, sources
from tui_agent.ui.prompting.unsent import UnsentKeeper
from tui_agent.ui.services import OpenRequest
from tui_agent.ui.take_over import TakeOverWatch
from tui_agent.ui.warned import Warned
from tui_agent.ui.widgets.completion import CompletionPopup
from tui_agent.ui.widgets.gauge import Gauge
from tui_agent.ui.widgets.header import LEAST, SessionHeader
from tui_agent.ui.widgets.notice import NoticeLine, Severity
from tui_agent.ui.widgets.prompt import Prompt
from tui_agent.ui.widgets.status import StatusLine

if TYPE_CHECKING:
    from tui_agent.ui.services import AgentPort, AppServices, UiSettings
    from tui_agent.ui.undo_handlers import Undone
    from tui_agent.ui.widgets.session_view import SessionView

WARNED = 20
"""Seconds a warning of the start is shown, unless one clicks it away."""
HISTORY = 1_000
"""Earlier messages the prompt can go back to."""


def _look_as_it_is(_settings: UiSettings) -> None:
    """Nobody follows the settings."""


class MainScreen(Screen[None]):
    """Shows the agent of the open session. Handlers here own every change; the agent is the truth."""

    AUTO_FOCUS = "Prompt"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (70, "-normal"), (120, "-wide")]  # noqa: RUF012 - as inherited
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (18, "-short"), (24, "-tall")]  # noqa: RUF012 - as inherited
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "interrupt", "interrupt", key_display="esc"),
        Binding("escape", "to_prompt", "prompt", key_display="esc"),
        Binding("alt+up", "take_back", "take back", show=False, id="take_back"),
        Binding("ctrl+end", "scroll_conversation('end')", "newest", show=False, id="newest"),
        Binding("ctrl+home", "scroll_conversation('home')", "oldest", show=False, id="oldest"),
        *key_bindings(),
    ]

    header = getters.query_one(SessionHeader)
    body = getters.query_one("#body", Container)
    notice = getters.query_one(NoticeLine)
    popup = getters.query_one(CompletionPopup)
    prompt = getters.query_one(Prompt)
    gauge = getters.query_one(Gauge)
    status = getters.query_one(StatusLine)

    def __init__(self, look_like: Callable[[UiSettings], None] = _look_as_it_is) -> None:
        """Make the screen; ``look_like`` has the application take the settings that concern every screen."""
        super().__init__()
        self.look_like = look_like
        self.undone: list[Undone] = []
        """What ``/undo`` did since the last message, newest last."""
        self.view: SessionView | None = None
        """What shows the open session; None until ``attach``."""
        self.keymap: Mapping[str, str] = {}
        """The user's own keys, by the id of what they do."""
        self._services: AppServices | None = None
        self._offer = Offer(None)
        self.outbox = Outbox(self)
        """Where what the user wrote leaves from."""
        self._files = FileSource(self)
        self.take_over = TakeOverWatch(self)
        """Notices that another program has the session now."""
        self.warned = Warned()
        """What the program warned of by itself."""
        self.unsent = UnsentKeeper(self)
        """Keeps what is in the prompt through whatever happens to the program."""

    def compose(self) -> ComposeResult:
        """Header, room for the session, prompt, gauge, status."""
        popup = CompletionPopup(self._command_names, sources(self, self._files))
        yield SessionHeader(short_path(Path.cwd()))
        with Container(id="body"):
            yield NoticeLine()
            yield popup
        yield Prompt(popup, self._history, self.clock)
        yield Gauge(self.clock)
        yield StatusLine(self.clock)

    async def attach(self, services: AppServices) -> None:
        """Take the ports and mount what shows a session."""
        from tui_agent.ui.widgets.session_view import SessionView

        self._services = services
        following.use(self, services.settings)
        for warning in services.warnings:
            # Not above the prompt: an early first message starts a run, which clears that.
            self.warned.add(self.clock(), warning)
            self.notify(warning, severity="warning", markup=False, timeout=WARNED)
        view = SessionView(self, services)
        await self.body.mount(view, before=self.notice)
        # Textual tells a widget its first size only if nobody has looked at the screen's map between mounting and
        # layout (Compositor.full_map takes new widgets in silently), and the prompt's cursor looks all the time.
        await self.wait_for_refresh()
        view.transcript.on_resize()
        self.view = view

    @property
    def services(self) -> AppServices:
        """The ports of the application; there after ``attach``."""
        assert self._services is not None, "attach comes first"  # noqa: S101 - a promise of this class
        return self._services

    @property
    def agent(self) -> AgentPort | None:
        """The agent of the open session; None until the first is open."""
        return self.view.agent if self.view is not None else None

    @property
    def cwd(self) -> Path:
        """The directory of the open session, before there is one the program's."""
        return Path(self.agent.session.info.cwd) if self.agent is not None else Path.cwd()

    @property
    def has_services(self) -> bool:
        """Whether there are ports yet: a key can come before them."""
        return self._services is not None

    @property
    def state_dir(self) -> Path | None:
        """Where copies that no clipboard took are saved."""
        return self._services.state_dir if self._services is not None else None

    def update_node_styles(self, animate: bool = True) -> None:  # noqa: FBT001, FBT002 - as inherited
        """Restyle everything, except for the terminal's focus, which the focused widget alone looks different for."""
        if not getattr(self.app, "is_refocusing", False):
            super().update_node_styles(animate)

    def clock(self) -> float:
        """Return seconds since the epoch."""
        return self._services.clock() if self._services is not None else time.time()

    def on_resize(self, event: events.Resize) -> None:
        """Say when the terminal is too small for what there is to show."""
        self.header.cramped = event.size.width < LEAST.width or event.size.height < LEAST.height

    # -- sessions ---------------------------------------------------------------------------------------------

    async def open(self, request: OpenRequest) -> None:
        """Open a session in place of the one shown; when that fails, the one shown stays."""
        if self.view is not None:
            await self.view.open(request)

    def open_later(self, request: OpenRequest | None) -> None:
        """Open what a picker was dismissed with."""
        if request is not None and not (self.view is not None and self.view.shows(request)):
            self.run_worker(self.open(request), group="open", exclusive=True)

    def show_opened(self, agent: AgentPort) -> None:
        """Show that another session is open."""
        self.undone.clear()
        self.notice.clear()
        self.prompt.read_only = agent.session.read_only
        kind = agent.session.info.agent
        notes = [
            f"{kind}, a subagent: /parent goes back" if kind else "",
            "read only" if agent.session.read_only else "",
        ]
        self.header.note = " · ".join(filter(None, notes))
        self.show_facts()
        self.show_running()
        self.look_at_files()
        self.unsent.opened(agent)
        self.outbox.send_early()

    async def on_unmount(self) -> None:
        """End the run and let go of the session."""
        self.unsent.save()
        if self.view is not None:
            await self.view.close()

    # -- showing ----------------------------------------------------------------------------------------------

    def show_facts(self) -> None:
        """Show what the session and the next request are now: title, leaf, model, size, cost."""
        from tui_agent.ui import reports

        if (agent := self.agent) is None:
            return
        info = agent.session.info
        self.header.title = info.title or info.first_message
        self.header.directory = short_path(info.cwd)
        self.status.mode, self.status.model, self.status.leaf = agent.mode, agent.model, agent.session.leaf
        self.status.effort = agent.effort.level or ""
        self.gauge.reading = reports.gauge_reading(agent, self.clock())
        self.app.sub_title = one_line(info.title, 60)

    def show_running(self) -> None:
        """Let keys and hints follow whether a run goes on."""
        self.prompt.running = self.agent is not None and self.agent.running
        self.refresh_bindings()

    def say(self, message: str, severity: Severity = "information", remedy: tuple[str, str, str] | None = None) -> None:
        """Show a sentence above the prompt until something new begins."""
        self.notice.say(message, severity, remedy)

    def leave_warnings(self) -> None:
        """Make room above the prompt; the status line says that there were warnings."""
        self.warned.unread += self.notice.warnings
        self.status.warnings = self.warned.unread
        self.notice.clear()

    @work(exclusive=True, group="branch", exit_on_error=False)
    async def look_at_files(self) -> None:
        """See what the branch is now; the list of files may have changed too."""
        self._files.forget()
        self.header.branch = await self.services.branch(self.cwd) or ""

    def action_scroll_page(self, pages: int) -> None:
        """Scroll the conversation while the prompt has the focus."""
        if self.view is not None:
            self.view.transcript.action_page(pages)

    def action_scroll_conversation(self, where: str) -> None:
        """Go to the ``home`` or ``end`` of the conversation; at the end it is followed."""
        if self.view is not None:
            transcript = self.view.transcript
            (transcript.action_top if where == "home" else transcript.action_bottom)()

    def action_to_prompt(self) -> None:
        """Go back to writing."""
        self.prompt.focus()

    # -- the prompt -------------------------------------------------------------------------------------------

    @on(Prompt.Changed)
    def _prompt_changed(self) -> None:
        self.unsent.changed()
        self.take_over.look_as_writing_begins(has_draft=bool(self.prompt.text))

    @on(Prompt.Sent)
    async def _prompt_sent(self, message: Prompt.Sent) -> None:
        await self.outbox.send(message.text, follow_up=message.follow_up)
        self.unsent.save()

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

    @on(Gauge.Pressed)
    async def _gauge_pressed(self) -> None:
        await self.run_command("context", "")

    @on(Gauge.Cooled)
    @on(Prompt.Changed)
    def _cache_may_be_cold(self) -> None:
        if self.view is not None:
            self.view.look_at_cache()

    # -- commands ---------------------------------------------------------------------------------------------

    @property
    def commands(self) -> list[Command]:
        """The commands that exist for this agent."""
        if self._offer.agent is not self.agent:
            self._offer = Offer(self.agent)
        return self._offer.commands()

    async def run_command(self, name: str, arguments: str) -> None:
        """Run a command of the table; an unknown name is answered with those that look like it."""
        commands = self.commands
        if (command := find(name, commands)) is None:
            close = close_names(name, commands)
            meant = f"Did you mean {' or '.join('/' + known for known in close)}?" if close else "/help lists them."
            knowledge_handlers.unknown(self, name, arguments, f"There is no command /{one_line(name, 40)}. {meant}")
            return
        await command.handler(self, arguments)

    async def action_command(self, name: str) -> None:
        """Run a command by its key."""
        await self.run_command(name, "")

    def action_interrupt(self) -> None:
        """Stop the run."""
        if self.agent is not None:
            self.agent.interrupt()

    def action_choose_how(self) -> None:
        """Ask how to go on with a session that another program took over."""
        self.take_over.ask()

    def action_take_back(self) -> None:
        """Put the newest waiting message back into the prompt."""
        if self.agent is not None and (text := self.agent.take_back()) is not None:
            self.put_back(text)

    def put_back(self, text: str) -> None:
        """Put a message back into the prompt to be edited, before what is written there."""
        draft = self.prompt.full_text
        if text:
            self.prompt.set_draft(f"{text}\n{draft}" if draft.strip() else text)
        self.prompt.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what would do something now."""
        agent = self.agent
        match action:
            case "interrupt":
                return agent is not None and (agent.running or self.status.state.active)
            case "to_prompt":
                return not self.prompt.has_focus and (agent is None or not agent.running)
            case "take_back":
                return agent is not None and bool(agent.queue.steer or agent.queue.follow_up)
            case "command":
                return find(str(parameters[0]), self.commands) is not None
            case _:
                return super().check_action(action, parameters)

    def run_soon(self, result: object) -> None:
        """Run what an agent's method returned, when it is something to wait for."""
        if inspect.isawaitable(result):
            self.run_worker(_wait_for(result), group="agent", exit_on_error=False)

    def use_model(self, model: str | None) -> None:
        """Use a model from the next request on, and at the next start."""
        from tui_agent.ui import model_switch

        if model:
            self.run_soon(model_switch.use_model(self, model))

    def use_theme(self, theme: str | None) -> None:
        """Use a theme now and at the next start."""
        if theme is not None:
            self.app.theme = theme
            self.services.save_setting("ui.theme", theme)

    # -- sources ----------------------------------------------------------------------------------------------

    def _command_names(self) -> list[CommandName]:
        return [CommandName(row.name, row.help, row.takes_argument) for row in self.commands]

    def _history(self) -> Sequence[str]:
        return self.services.store.prompt_history(HISTORY) if self._services is not None else ()

    def on_key(self, event: events.Key) -> None:
        """Text typed while a block has the focus is meant for the prompt, unless its first letter acts on the block."""
        transcript = self.view.transcript if self.view is not None else None
        if transcript is None or not transcript.has_focus or not event.is_printable or event.character is None:
            return
        if event.key not in self.active_bindings:
            event.stop()
            event.prevent_default()
            self.prompt.go_on(event.character)

    @on(events.Paste)
    def _paste_elsewhere(self, event: events.Paste) -> None:
        """A paste while the conversation has the focus is meant for the prompt."""
        asking = self.view is not None and self.view.question.request is not None
        if not self.prompt.has_focus and not asking:
            self.prompt.focus()
            self.prompt.post_message(event)


async def _wait_for(result: object) -> None:
    if inspect.isawaitable(result):
        await result
