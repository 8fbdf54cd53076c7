"""A subagent's session, entered from the card of its task: live while it works, to be read afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from tui_agent.agent.events import PermissionAsked, PermissionSettled, RunEnded
from tui_agent.app.format import one_line, plural, short_model
from tui_agent.app.services import OpenHow, OpenRequest
from tui_agent.ui.error_boundary import PageScreen
from tui_agent.ui.inbox import AgentEvents, Inbox
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.transcript import messages
from tui_agent.ui.widgets.transcript.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.app.desk import Desk
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

    def __init__(self, desk: Desk, subagent: ShownAgent, close: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._desk = desk
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
        info = self._subagent.session.info
        parent = self._desk.agent.session.info if self._desk.agent is not None else None
        of = one_line(parent.title or parent.first_message, 60) if parent is not None else "another session"
        self.heading.update(f"{info.agent or 'subagent'}: {one_line(info.title, 200)}")
        state = self._asking or ("working" if self._subagent.running else "done")
        facts = [f"subagent of “{of}”", short_model(info.model), plural(info.entry_count, "entry"), state]
        self.facts.update(" · ".join(filter(None, facts)))

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
        """Go on with what it did, in a session of one's own."""
        session = self._subagent.session.id
        self.dismiss(None)
        self._desk.open_soon(OpenRequest(session, OpenHow.FORK))

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
            open_output(self._desk, self._subagent.session.entry(message.entry_id))
