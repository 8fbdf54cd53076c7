"""From agent events to widgets: the one place that knows which widget shows what, and what the agent does now."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    CompactionEnded,
    CompactionProgress,
    CompactionStarted,
    CostKnown,
    EntryAppended,
    HeadKnown,
    LeafMoved,
    MessageRefused,
    Notice,
    PermissionAsked,
    PermissionSettled,
    QueueChanged,
    ReasoningProgress,
    RequestStarted,
    RetryScheduled,
    RunEnded,
    RunStarted,
    TitleChanged,
    ToolCallProgress,
    ToolFinished,
    ToolStarted,
)
from tui_agent.app.format import one_line, tokens
from tui_agent.app.run_state import Phase, RunState
from tui_agent.session.entries import AssistantEntry

if TYPE_CHECKING:
    from tui_agent.ui.screens.main import MainScreen
    from tui_agent.ui.widgets.session_view import SessionView

INTERRUPTED = "Interrupted."
COMPACTION_STOPPED = "The compaction was stopped. Nothing was changed."

RETRY = ("f8", "retry", "screen.command('retry')")
"""Key, label and action of the remedy for a failed request."""


def apply(main: "MainScreen", view: "SessionView", event: AgentEvent) -> None:
    """Show an event. The transcript and the status line see every one."""
    view.hear(event)
    _show_state(main, view, next_state(main.status.state, event, main.clock()))
    match event:
        case RunStarted():
            main.attention.run_started()
            main.leave_warnings()
            main.show_running()
        case EntryAppended() | LeafMoved() | TitleChanged() | CostKnown() | HeadKnown():
            main.refresh_facts()
        case PermissionAsked(request=request):
            main.attention.asked(request)
            view.question.ask(request)
            view.announce_question()
            main.refresh_bindings()
        case PermissionSettled(call_id=call_id):
            main.attention.settled()
            view.question.settle(call_id)
            view.leave_question()
        case QueueChanged():
            view.waiting.queue = event
            main.unsent.save()
            main.refresh_bindings()
        case MessageRefused(text=text, reason=reason):
            main.put_back(text)
            main.say(f"A hook refused the message: {reason}", "warning")
        case Notice():
            _noticed(main, event)
        case CompactionStarted(tokens_before=tokens_before):
            view.transcript.show_notice(f"Compacting {tokens(tokens_before)} tokens of history …", key="compaction")
            main.refresh_bindings()
        case CompactionEnded(error=error):
            view.transcript.withdraw_notice("compaction")
            if error:
                main.say(COMPACTION_STOPPED if error == INTERRUPTED else error, "warning")
            main.refresh_facts()
            main.refresh_bindings()
        case RunEnded():
            _run_ended(main, view, event)


def _show_state(main: "MainScreen", view: "SessionView", state: RunState) -> None:
    if state is not main.status.state:
        main.status.state = state
        view.show_activity(state)


def _noticed(main: "MainScreen", notice: Notice) -> None:
    action = notice.action
    remedy = ("", f"/{action}", f"screen.command('{action}')") if action else None
    if notice.severity != "information":
        main.desk.warnings.add(main.clock(), notice.message)
    main.notice.add(notice.message, notice.severity, remedy)


def _run_ended(main: "MainScreen", view: "SessionView", event: RunEnded) -> None:
    main.attention.run_ended(event)
    view.question.clear()
    view.leave_question()
    main.show_running()
    main.refresh_facts()
    view.check_cache()
    main.watch_files()
    match event.reason:
        case "error" if main.desk.take_over.look():
            pass
        case "error" if not _is_shown_in_transcript(view, event.error):
            main.say(event.error or "The request failed.", "error", RETRY)
        case "step_limit":
            main.say(f"Stopped after {event.steps} steps. Send a message to go on.", "warning")
        case "stopped":
            main.say(event.error or "Stopped. Send a message to go on.", "warning")
        case _:
            pass


def _is_shown_in_transcript(view: "SessionView", error: str | None) -> bool:
    """Whether the conversation ends with an answer that failed for this reason, and says so with the key to retry."""
    session = view.agent.session if view.agent is not None else None
    if session is None or session.leaf is None:
        return False
    entry = session.entry(session.leaf)
    return isinstance(entry, AssistantEntry) and bool(error) and entry.error == error


# -- what the agent does now, step by step ------------------------------------------------------------------


def next_state(state: RunState, event: AgentEvent, now: float) -> RunState:
    """Return the state after an event; the same object when the event changes nothing."""
    found = _following(state, event, now)
    if found is state or not found.active:
        return found
    began = now if isinstance(event, RunStarted) or not state.active else state.began
    return replace(found, began=began)


def _following(state: RunState, event: AgentEvent, now: float) -> RunState:  # noqa: PLR0911 - one arm per event
    match event:
        case RunStarted() | RequestStarted():
            return RunState(Phase.WAITING, now, tools=state.tools)
        case AnswerDelta() | ToolCallProgress():
            return _entered(state, Phase.STREAMING, now)
        case ReasoningProgress():
            return _entered(state, Phase.THINKING, now)
        case ToolStarted(call_id=call_id, tool=tool) if not state.active:
            return RunState(Phase.TOOL, now, tools=((call_id, tool),), in_run=False)
        case ToolStarted(call_id=call_id, tool=tool):
            return _with_tools(state, (*state.tools, (call_id, tool)), now)
        case ToolFinished(call_id=call_id):
            return _with_tools(state, tuple(call for call in state.tools if call[0] != call_id), now)
        case PermissionAsked(request=request):
            return replace(state, phase=Phase.PERMISSION, since=now, detail=request.tool)
        case PermissionSettled():
            return _with_tools(state, state.tools, now)
        case RetryScheduled():
            reason = f": {one_line(event.reason, 80)}" if event.reason else ""
            detail = f"attempt {event.attempt} of {event.attempts}{reason}"
            return RunState(Phase.RETRY, now, detail, until=now + event.seconds)
        case CompactionStarted() | CompactionProgress() | CompactionEnded():
            return _compacting(state, event, now)
        case RunEnded():
            return RunState(since=now)
        case _:
            return state


def _compacting(
    state: RunState, event: CompactionStarted | CompactionProgress | CompactionEnded, now: float
) -> RunState:
    match event:
        case CompactionStarted():
            return RunState(Phase.COMPACTING, now, in_run=state.active)
        case CompactionProgress(text=text) if state.phase is Phase.COMPACTING:
            return replace(state, words=state.words + text.count(" ") + text.count("\n"))
        case CompactionEnded():
            return RunState(Phase.WAITING, now) if state.in_run else RunState(since=now)
        case _:
            return state


def _entered(state: RunState, phase: Phase, now: float) -> RunState:
    return state if state.phase is phase else RunState(phase, now, tools=state.tools)


def _with_tools(state: RunState, tools: tuple[tuple[str, str], ...], now: float) -> RunState:
    if state.phase is Phase.PERMISSION and tools != state.tools:
        return replace(state, tools=tools)
    if not state.active:
        return state
    if not tools:
        return RunState(Phase.WAITING, now) if state.in_run else RunState(since=now)
    since = state.since if state.phase is Phase.TOOL else now
    return RunState(Phase.TOOL, since, tools=tools, in_run=state.in_run)
