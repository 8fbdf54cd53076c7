"""What the agent is doing now, as the status line says it: a pure step from event to state, and its wording."""

from dataclasses import dataclass, replace
from enum import StrEnum

from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    CompactionEnded,
    CompactionStarted,
    PermissionAsked,
    PermissionSettled,
    ReasoningProgress,
    RequestStarted,
    RetryScheduled,
    RunEnded,
    RunStarted,
    ToolCallProgress,
    ToolFinished,
    ToolStarted,
)
from tui_agent.ui.format import one_line, seconds


class Phase(StrEnum):
    """The kinds of state the status line tells apart."""

    IDLE = "idle"
    WAITING = "waiting"
    THINKING = "thinking"
    STREAMING = "streaming"
    TOOL = "tool"
    PERMISSION = "permission"
    RETRY = "retry"
    COMPACTING = "compacting"


@dataclass(frozen=True, slots=True)
class RunState:
    """What goes on, and since when (seconds, the caller's clock)."""

    phase: Phase = Phase.IDLE
    since: float = 0.0
    detail: str = ""
    until: float | None = None
    """When a scheduled retry goes out."""
    tools: tuple[tuple[str, str], ...] = ()
    """Calls that run now: call id and tool."""

    @property
    def active(self) -> bool:
        """Whether something goes on (and so the status line has to be kept up to date)."""
        return self.phase is not Phase.IDLE


def next_state(state: RunState, event: AgentEvent, now: float) -> RunState:  # noqa: PLR0911 - one arm per event
    """Return the state after an event; the same object when the event changes nothing."""
    match event:
        case RunStarted() | RequestStarted():
            return RunState(Phase.WAITING, now, tools=state.tools)
        case AnswerDelta() | ToolCallProgress():
            return _entered(state, Phase.STREAMING, now)
        case ReasoningProgress():
            return _entered(state, Phase.THINKING, now)
        case ToolStarted(call_id=call_id, tool=tool):
            return _with_tools(state, (*state.tools, (call_id, tool)), now)
        case ToolFinished(call_id=call_id):
            return _with_tools(state, tuple(call for call in state.tools if call[0] != call_id), now)
        case PermissionAsked(request=request):
            return replace(state, phase=Phase.PERMISSION, since=now, detail=request.tool)
        case PermissionSettled():
            return _with_tools(state, state.tools, now)
        case RetryScheduled():
            detail = f"attempt {event.attempt} of {event.attempts}"
            return RunState(Phase.RETRY, now, detail, until=now + event.seconds)
        case CompactionStarted():
            return RunState(Phase.COMPACTING, now)
        case CompactionEnded():
            return RunState(Phase.WAITING, now)
        case RunEnded():
            return RunState(since=now)
        case _:
            return state


def _entered(state: RunState, phase: Phase, now: float) -> RunState:
    return state if state.phase is phase else RunState(phase, now, tools=state.tools)


def _with_tools(state: RunState, tools: tuple[tuple[str, str], ...], now: float) -> RunState:
    if state.phase is Phase.PERMISSION and tools != state.tools:
        return replace(state, tools=tools)
    if not tools:
        return RunState(Phase.WAITING, now)
    return RunState(Phase.TOOL, state.since if state.phase is Phase.TOOL else now, tools=tools)


def describe(state: RunState, now: float) -> str:  # noqa: PLR0911 - one arm per phase
    """Return the state in a few words, empty when idle."""
    passed = seconds(now - state.since)
    match state.phase:
        case Phase.IDLE:
            return ""
        case Phase.WAITING:
            return f"waiting {passed}"
        case Phase.THINKING:
            return f"thinking {passed}"
        case Phase.STREAMING:
            return f"streaming {passed}"
        case Phase.TOOL:
            names = " + ".join(dict.fromkeys(one_line(tool, 20) for _, tool in state.tools))
            return f"running {names} {passed}"
        case Phase.PERMISSION:
            return f"asks about {one_line(state.detail, 20)}"
        case Phase.RETRY:
            left = max(0.0, (state.until or now) - now)
            return f"retry in {seconds(left + 0.999)} ({state.detail})"
        case Phase.COMPACTING:
            return f"compacting {passed}"
