"""From the agent's events to the transcript, and the agent's session as a source of entries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    EntryAppended,
    LeafMoved,
    LiveAnswer,
    ReasoningProgress,
    RequestStarted,
    RunEnded,
    RunStarted,
    ToolCallProgress,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from tui_agent.session.entries import Entry
from tui_agent.session.records import Outlines

if TYPE_CHECKING:
    from tui_agent.ui.widgets.transcript.transcript import Transcript


class SessionPort(Protocol):
    """What the transcript reads of a session."""

    def path_outline(self) -> Outlines:
        """Return id, kind and size of the path's entries, root first."""
        ...

    def entries(self, ids: Sequence[int]) -> Sequence[Entry]:
        """Return entries in the order of their ids."""
        ...

    def active_path(self) -> Sequence[Entry]:
        """Return the entries that the next request depends on."""
        ...


class AgentPort(Protocol):
    """What the transcript reads of an agent."""

    @property
    def session(self) -> SessionPort:
        """The session it works in."""
        ...

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        ...

    @property
    def live(self) -> LiveAnswer | None:
        """The answer being streamed."""
        ...


class SessionSource:
    """The path of a session as it is now."""

    def __init__(self, session: SessionPort) -> None:
        self._session = session
        self.headers = session.path_outline()

    def load(self, ids: Sequence[int]) -> Sequence[Entry]:
        """Return some entries."""
        return self._session.entries(ids)


def show_live(transcript: "Transcript", live: LiveAnswer | None) -> None:
    """Show what has been streamed before the transcript looked."""
    if live is None:
        return
    if live.reasoning:
        transcript.live_reasoning(live.reasoning)
    if live.text:
        transcript.live_text(live.text)
    for call in live.calls:
        transcript.live_tool_call(call.call_id, call.tool, call.arguments)


def apply_event(transcript: "Transcript", event: AgentEvent) -> None:
    """Show an event; those that are no matter of the conversation are left to others."""
    match event:
        case RunStarted():
            transcript.begin_run()
        case RequestStarted():
            transcript.discard_live()
        case AnswerDelta(text=text):
            transcript.live_text(text)
        case ReasoningProgress(text=text):
            transcript.live_reasoning(text)
        case ToolCallProgress(call_id=call_id, tool=tool, arguments=arguments):
            transcript.live_tool_call(call_id, tool, arguments)
        case ToolStarted():
            transcript.tool_started(event.call_id, event.tool, event.title, event.arguments)
        case ToolOutput(call_id=call_id, text=text):
            transcript.tool_output(call_id, text)
        case ToolFinished():
            transcript.tool_finished(event.call_id, event.status, event.metadata, event.seconds)
        case EntryAppended(entry=entry):
            transcript.append_entry(entry)
            transcript.refresh_standings()
        case LeafMoved():
            transcript.reopen()
        case RunEnded():
            transcript.run_ended()
        case _:
            pass
