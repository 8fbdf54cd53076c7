"""From agent events to widgets: the one place that knows which widget shows what."""

from typing import TYPE_CHECKING

from tui_agent.agent.events import (
    AgentEvent,
    CompactionEnded,
    EntryAppended,
    LeafMoved,
    Notice,
    PermissionAsked,
    PermissionSettled,
    QueueChanged,
    RunEnded,
    RunStarted,
)
from tui_agent.ui.run_state import next_state

if TYPE_CHECKING:
    from tui_agent.ui.screens.main import MainScreen

RETRY = ("ctrl+r", "retry", "screen.command('retry')")
"""Key, label and action of the remedy for a failed request."""


def apply(main: "MainScreen", event: AgentEvent) -> None:
    """Show an event. The transcript and the status line see every one."""
    main.transcript.apply(event)
    main.status.state = next_state(main.status.state, event, main.services.clock())
    match event:
        case RunStarted():
            main.notice.clear()
            main.show_running()
        case EntryAppended() | LeafMoved():
            main.show_facts()
        case PermissionAsked(request=request):
            main.question.ask(request)
            main.refresh_bindings()
        case PermissionSettled(call_id=call_id):
            main.question.settle(call_id)
            main.leave_question()
        case QueueChanged():
            main.waiting.queue = event
            main.refresh_bindings()
        case Notice(message=message, severity=severity, action=action):
            remedy = ("", f"/{action}", f"screen.command('{action}')") if action else None
            main.say(message, severity, remedy)
        case CompactionEnded(error=error):
            if error:
                main.say(error, "warning")
            main.show_facts()
        case RunEnded():
            _run_ended(main, event)


def _run_ended(main: "MainScreen", event: RunEnded) -> None:
    main.question.clear()
    main.leave_question()
    main.show_running()
    main.show_facts()
    main.look_at_files()
    match event.reason:
        case "error":
            main.say(event.error or "The request failed.", "error", RETRY)
        case "step_limit":
            main.say(f"Stopped after {event.steps} steps. Send a message to go on.", "warning")
        case "stopped":
            main.say(event.error or "Stopped. Send a message to go on.", "warning")
        case _:
            pass
