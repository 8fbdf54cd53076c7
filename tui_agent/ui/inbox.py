"""Passes the agent's events to a screen; combines events in quick succession into one message."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from textual.message import Message
from textual.message_pump import MessagePump

from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    CompactionProgress,
    EntryAppended,
    ReasoningProgress,
    RunStarted,
    ToolCallProgress,
    ToolOutput,
    ToolStarted,
)
from tui_agent.lazy import dataclass
from tui_agent.ui.later import Later

HELD_SECONDS: Final[Mapping[type, float]] = {
    RunStarted: 0.05,
    ToolCallProgress: 0.05,
    ToolStarted: 0.05,
    ToolOutput: 0.05,
}
"""Seconds for which an event waits to be shown together with later ones, by event type.

An event with text ends the wait. Screen updates run on the agent's thread, so the wait also lets
the agent send its next request before the update.
"""
ENDING_SECONDS: Final = 0.02
"""Seconds for which a new entry waits before it is delivered, so that the last words of the answer
are painted first."""

_Words = AnswerDelta | ReasoningProgress | CompactionProgress


@dataclass
class AgentEvents(Message):
    """Message that asks the receiver to take the agent's new events from ``inbox``."""

    inbox: "Inbox"


class Inbox:
    """Collects events from the agent's callback until the screen handles them.

    A burst of text deltas becomes one message with the joined text. Keys that are pressed in the
    meantime are handled before the next burst. Text waits ``pause()`` seconds for more text,
    because waking the screen is costly. Events of the types in `HELD_SECONDS` wait for the time
    given there. While ``pause()`` is above 0, a new entry waits `ENDING_SECONDS`.
    """

    def __init__(self, receiver: MessagePump, *, pause: Callable[[], float] = lambda: 0.0) -> None:
        self._receiver = receiver
        self._pause = pause
        self._events: list[AgentEvent] = []
        self._is_notified = False
        self._delayed = Later(receiver, self._notify)
        self._holds_words = False
        """Whether the pending notification is only about pieces of text. If it is, any other event
        ends the wait before it."""

    def put(self, event: AgentEvent) -> None:
        """Add an event; notify the receiver now, or after the pause that the class describes.

        Call it on the event loop's thread.
        """
        self._events.append(event)
        if self._is_notified:
            return
        is_words = isinstance(event, _Words)
        if self._delayed.is_waiting:
            if is_words != self._holds_words:
                self._notify()
            return
        wait = HELD_SECONDS.get(type(event), 0.0)
        if is_words:
            wait = self._pause()
        elif isinstance(event, EntryAppended) and self._pause() > 0:
            wait = ENDING_SECONDS
        if wait > 0:
            self._delayed.after(wait)
            self._holds_words = is_words
        else:
            self._notify()

    def _notify(self) -> None:
        self._delayed.stop()
        self._is_notified = True
        self._receiver.post_message(AgentEvents(self))

    def take(self) -> Sequence[AgentEvent]:
        """Return the events since the last call, in order, with the pieces of one text joined."""
        self._delayed.stop()
        self._is_notified = False
        events = self._events
        self._events = []
        joined: list[AgentEvent] = []
        for event in events:
            merged = None
            if joined:
                merged = _join(joined[-1], event)
            if merged is None:
                joined.append(event)
            else:
                joined[-1] = merged
        return joined


def _join(first: AgentEvent, second: AgentEvent) -> AgentEvent | None:
    """Return one event that replaces two consecutive events; None if they can't be joined.

    Texts are concatenated. Of two progress events of the same tool call, the later one is returned.
    """
    match first, second:
        case AnswerDelta(text=one), AnswerDelta(text=more):
            return AnswerDelta(one + more)
        case ReasoningProgress(text=one), ReasoningProgress(text=more):
            return ReasoningProgress(one + more)
        case CompactionProgress(text=one), CompactionProgress(text=more):
            return CompactionProgress(one + more)
        case ToolOutput(call_id=call, text=one), ToolOutput(call_id=same, text=more) if (
            call == same
        ):
            return ToolOutput(call, one + more)
        case ToolCallProgress(call_id=call), ToolCallProgress(call_id=same) if (
            call and call == same
        ):
            return second
        case _:
            return None
