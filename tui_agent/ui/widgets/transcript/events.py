"""From the agent's events to the transcript, and the agent's session as a source of entries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

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

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.subagents import FinishedSubagent
    from tui_agent.session.session import Session
    from tui_agent.ui.widgets.transcript.transcript import Transcript


ShownAgent: TypeAlias = "Agent | FinishedSubagent"
"""Whose session a transcript shows."""


class SessionSource:
    """The path of a session as it is now."""

    def __init__(self, session: "Session") -> None:
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
