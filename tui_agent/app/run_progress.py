"""Derives the agent's current activity (`RunState`) from its events.

All functions are pure, so that the caller has to keep the state.
"""

from dataclasses import replace

from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    ChecksAwaited,
    CompactionEnded,
    CompactionProgress,
    CompactionStarted,
    HookAnswered,
    HookAwaited,
    PermissionAsked,
    PermissionSettled,
    PromptProgress,
    QuestionAsked,
    QuestionsAnswered,
    ReasoningProgress,
    RequestStarted,
    RetryScheduled,
    RunEnded,
    RunStarted,
    ToolCallProgress,
    ToolFinished,
    ToolStarted,
)
from tui_agent.app.format import one_line
from tui_agent.app.run_state import Phase, RunState


def next_state(state: RunState, event: AgentEvent, now: float) -> RunState:
    """Return the agent's state after an event; the same object if nothing changes.

    ``now`` is the time of the event, in seconds of the caller's clock.
    """
    found = _state_after(state, event, now)
    is_waiting = state.hook and not isinstance(event, RunStarted | RunEnded | HookAnswered)
    if is_waiting and not found.hook:
        found = replace(found, hook=state.hook, hook_since=state.hook_since)
    if found is state or not found.active:
        return found
    if isinstance(event, RunStarted) or not state.active:
        began = now
    else:
        began = state.began
    return replace(found, began=began)


def _state_after(state: RunState, event: AgentEvent, now: float) -> RunState:  # noqa: C901, PLR0911, PLR0912 - one arm per event
    match event:
        case RunStarted() | RequestStarted():
            return RunState(
                Phase.WAITING, now, tools=state.tools, asked=isinstance(event, RequestStarted)
            )
        case PromptProgress(processed=processed, total=total):
            return RunState(Phase.READING, now, f"{processed:,} of {total:,}", tools=state.tools)
        case AnswerDelta() | ToolCallProgress():
            return _entered(state, Phase.STREAMING, now)
        case ReasoningProgress():
            return _entered(state, Phase.THINKING, now)
        case ToolStarted(call_id=call_id, tool=tool):
            if state.active:
                return _with_tools(state, (*state.tools, (call_id, tool)), now)
            return RunState(Phase.TOOL, now, tools=((call_id, tool),), in_run=False)
        case ToolFinished(call_id=call_id):
            left = tuple(call for call in state.tools if call[0] != call_id)
            return _with_tools(state, left, now)
        case ChecksAwaited(checkers=names):
            return RunState(Phase.CHECKING, now, " + ".join(one_line(name, 20) for name in names))
        case PermissionAsked(request=request):
            # A race's runner may ask the user through this agent while it is idle.
            in_run = state.active and state.in_run
            return replace(state, phase=Phase.ASKING, since=now, detail=request.tool, in_run=in_run)
        case QuestionAsked():
            # An MCP server may also ask while the agent is idle.
            in_run = state.active and state.in_run
            return replace(state, phase=Phase.ASKING, since=now, detail="", in_run=in_run)
        case PermissionSettled() | QuestionsAnswered():
            return _with_tools(state, state.tools, now)
        case HookAwaited(name=name, seconds=waited):
            in_run = state.active and state.in_run
            return replace(state, hook=name, hook_since=now - waited, in_run=in_run)
        case HookAnswered(name=name) if name == state.hook:
            return replace(state, hook="", in_run=state.phase is Phase.IDLE or state.in_run)
        case RetryScheduled(loading=float(waited)):
            return RunState(Phase.LOADING, now - waited, one_line(event.reason.rstrip("."), 80))
        case RetryScheduled():
            detail = f"attempt {event.attempt} of {event.attempts}"
            if event.reason:
                detail += f": {one_line(event.reason, 80)}"
            return RunState(Phase.RETRY, now, detail, until=now + event.seconds)
        case CompactionStarted():
            return RunState(Phase.COMPACTING, now, in_run=state.active and state.in_run)
        case CompactionProgress(text=text) if state.phase is Phase.COMPACTING:
            return replace(state, words=state.words + text.count(" ") + text.count("\n"))
        case CompactionEnded():
            if state.in_run:
                return RunState(Phase.WAITING, now)
            return RunState(since=now)
        case RunEnded():
            return RunState(since=now)
        case _:
            return state


def _entered(state: RunState, phase: Phase, now: float) -> RunState:
    """Return the agent's state in a phase, which begins now unless the agent is in it already."""
    if state.phase is phase:
        return state
    return RunState(phase, now, tools=state.tools)


def _with_tools(state: RunState, tools: tuple[tuple[str, str], ...], now: float) -> RunState:
    """Return the agent's state with ``tools`` as the running tool calls.

    While the user is being asked, the phase doesn't change. Without running calls, the agent waits
    for the model, or is idle outside a run.
    """
    if state.phase is Phase.ASKING and tools != state.tools:
        return replace(state, tools=tools)
    if not state.active:
        return state
    if not tools:
        if state.in_run:
            return RunState(Phase.WAITING, now)
        return RunState(since=now)
    if state.phase is Phase.TOOL:
        since = state.since
    else:
        since = now
    return RunState(Phase.TOOL, since, tools=tools, in_run=state.in_run)
