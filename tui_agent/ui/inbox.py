"""Passes the agent's events to a screen, several in one message if they come faster than it draws."""

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
"""Seconds for which events of a type wait for more events to be shown with; text ends the wait.

So the next request goes out before a screen update, which needs the same thread.
"""
ENDING_SECONDS: Final = 0.02
"""Seconds for which an answer's entry waits, so that its last words are painted first."""

_Words = AnswerDelta | ReasoningProgress | CompactionProgress


@dataclass
class AgentEvents(Message):
    """Tells the receiver to take the agent's new events from ``inbox``."""

    inbox: "Inbox"


class Inbox:
    """Collects events from the agent's callback until the screen handles them.

    A burst of deltas becomes one message with one text, and keys pressed meanwhile come before the
    next burst. Text waits for more text for ``pause()`` seconds, since waking the screen is costly;
    events in ``HELD_SECONDS`` wait for other events, and the entry of an answer for its last words.
    """

    def __init__(self, receiver: MessagePump, *, pause: Callable[[], float] = lambda: 0.0) -> None:
        self._receiver = receiver
        self._pause = pause
        self._events: list[AgentEvent] = []
        self._is_told = False
        self._telling = Later(receiver, self._tell)
        self._holds_words = False
        """Whether the running timer is for text only; other events don't wait for it."""

    def put(self, event: AgentEvent) -> None:
        """Add an event. Call it on the event loop's thread."""
        self._events.append(event)
        if self._is_told:
            return
        is_words = isinstance(event, _Words)
        if self._telling.is_waiting:
            if is_words != self._holds_words:
                self._tell()
            return
        wait = HELD_SECONDS.get(type(event), 0.0)
        if is_words:
            wait = self._pause()
        elif isinstance(event, EntryAppended) and self._pause() > 0:
            wait = ENDING_SECONDS
        if wait > 0:
            self._telling.after(wait)
            self._holds_words = is_words
        else:
            self._tell()

    def _tell(self) -> None:
        self._telling.stop()
        self._is_told = True
        self._receiver.post_message(AgentEvents(self))

    def take(self) -> Sequence[AgentEvent]:
        """Return the events since the last call, with neighbouring deltas joined."""
        self._telling.stop()
        self._is_told = False
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
    """Return one event that joins two neighbours; None if they can't be joined."""
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
