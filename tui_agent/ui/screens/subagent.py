"""What a subagent does, entered from the card of its task: live while it works, to be read afterwards."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from tui_agent.agent.events import PermissionAsked, PermissionSettled, RunEnded
from tui_agent.app.format import money, one_line, plural, short_model
from tui_agent.app.services import OpenRequest
from tui_agent.session.entries import AssistantEntry, SubagentEntry
from tui_agent.ui.error_boundary import PageScreen
from tui_agent.ui.inbox import AgentEvents, Inbox
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.transcript import messages
from tui_agent.ui.widgets.transcript.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.app.controller import Controller
    from tui_agent.ui.widgets.transcript.transcript import ShownAgent

KEYS = "j/k blocks  space fold  y copy  f continue in a copy  esc back to the parent"


class SubagentScreen(PageScreen[None]):
    """Shows a subagent over its parent, which goes on beneath. ``close`` lets go of a session opened for this."""

    KEYS: ClassVar[str] = KEYS
    AUTO_FOCUS = "Transcript"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,backspace", "dismiss(None)", "back", show=False, id="subagent.back"),
        Binding("f", "fork", "continue in a copy", show=False, id="subagent.fork"),
    ]

    heading = getters.query_one("#heading", Static)
    facts = getters.query_one("#facts", Static)
    transcript = getters.query_one(Transcript)

    def __init__(self, controller: Controller, subagent: ShownAgent, close: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._controller = controller
        self._subagent = subagent
        self._close = close
        self._asking = ""
        self._inbox = Inbox(self)

    def compose(self) -> ComposeResult:
        """Whose child it is, its conversation, keys."""
        yield Static("", id="heading", markup=False)
        yield Static("", id="facts", markup=False)
        yield Transcript()
        yield KeyLine(self.KEYS, id="keys")

    def on_mount(self) -> None:
        """Show what there is, and what comes."""
        self.when_left(self._close)
        self.when_left(self._subagent.subscribe(self._inbox.put))
        self.call_after_refresh(self._open)

    def _open(self) -> None:
        self.transcript.on_resize()
        self._inbox.take()
        self.transcript.open(self._subagent)
        self._tell()

    def _tell(self) -> None:
        session, parent = self._subagent.session, self._controller.agent
        info, begun = session.info, self._begun()
        agent, task = (begun.agent, begun.task) if begun is not None else (info.agent, info.title)
        own = session.parting(session.leaf, begun.parent_id if begun is not None else None).left
        of = parent.session.info if parent is not None else info
        self.heading.update(f"{one_line(agent, 40) or 'subagent'}: {one_line(task, 200)}")
        state = self._asking or ("working" if self._subagent.running else "done")
        name = one_line(of.title or of.first_message, 60)
        facts = [f"subagent of “{name}”", short_model(self._model(info.model)), plural(len(own), "entry"), state]
        costs = session.costs() if begun is not None else {}
        spent = sum(costs.get(entry_id, 0.0) for entry_id in own.ids)
        self.facts.update(" · ".join(filter(None, [*facts, money(spent) if spent else ""])))

    def _begun(self) -> SubagentEntry | None:
        """Return what its branch begins with; None for one that worked in a session of its own."""
        session = self._subagent.session
        first = session.subagent_of(session.leaf) if session.leaf is not None else None
        return next((entry for entry in session.entries([first or 0]) if isinstance(entry, SubagentEntry)), None)

    def _model(self, default: str) -> str:
        path = self._subagent.session.active_path()
        return next((entry.model for entry in reversed(path) if isinstance(entry, AssistantEntry)), default)

    @on(AgentEvents)
    def _on_subagent_event(self, message: AgentEvents) -> None:
        message.stop()
        for event in message.inbox.take():
            self.transcript.apply(event)
            match event:
                case PermissionAsked():
                    self._asking = "asks for permission"
                case PermissionSettled() | RunEnded():
                    self._asking = ""
                case _:
                    pass
        self._tell()

    def action_fork(self) -> None:
        self.dismiss(None)
        self._controller.soon(self._fork())

    async def _fork(self) -> None:
        session = self._subagent.session
        info = await asyncio.to_thread(self._controller.services.store.fork, session.id, session.leaf)
        await self._controller.open(OpenRequest(info.id))

    # -- what the conversation asks for

    @on(messages.CopyRequested)
    def _copy_block(self, message: messages.CopyRequested) -> None:
        message.stop()
        self.app.copy_to_clipboard(message.text)

    @on(messages.LinkClicked)
    def _link_clicked(self, message: messages.LinkClicked) -> None:
        message.stop()
        self.app.open_url(message.href)

    @on(messages.ActionRequested)
    def _block_action(self, message: messages.ActionRequested) -> None:
        from tui_agent.app.session_commands import open_output

        message.stop()
        if message.action == "open":
            open_output(self._controller, self._subagent.session.entry(message.entry_id))
