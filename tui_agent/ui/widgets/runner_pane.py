"""A pane on the screen of a race, in which several agents work on the same task.

It shows the conversation of one of these agents, called runners, while it works.
"""

from collections.abc import Callable

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Vertical

from tui_agent.agent.agent import Agent
from tui_agent.ui.inbox import AgentEvents, Inbox
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.transcript.transcript import Transcript


class RunnerPane(Vertical):
    """Shows a title and the conversation of one agent, and updates them with the agent's events."""

    title = getters.query_one(".runner-title", PlainText)
    transcript = getters.query_one(Transcript)

    def __init__(self) -> None:
        super().__init__()
        self._agent: Agent | None = None
        self._leave: Callable[[], None] = lambda: None
        self._inbox = Inbox(self, pause=lambda: self.transcript.pause)

    def compose(self) -> ComposeResult:
        yield PlainText(classes="runner-title")
        yield Transcript()

    def on_mount(self) -> None:
        self.transcript.can_focus = False

    def on_unmount(self) -> None:
        self._leave()

    def follow(self, title: str, agent: Agent) -> None:
        """Show the conversation of ``agent`` below ``title`` instead of the current one."""
        self.title.update(title)
        if agent is self._agent:
            return
        self._leave()
        self._agent = agent
        self._leave = agent.channel.subscribe(self._inbox.put)
        self.call_after_refresh(self._open, agent)

    def _open(self, agent: Agent) -> None:
        self.transcript.on_resize()
        self._inbox.take()
        self.transcript.open(agent)

    @on(AgentEvents)
    def _on_events(self, message: AgentEvents) -> None:
        message.stop()
        with self.transcript.together():
            for event in message.inbox.take():
                self.transcript.apply(event)
