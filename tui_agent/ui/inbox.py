"""Brings the agent's events to a screen as messages, many at once when they come faster than the screen."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final

from textual.message import Message
from textual.message_pump import MessagePump
from textual.timer import Timer

from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    CompactionProgress,
    ReasoningProgress,
    RunStarted,
    ToolCallProgress,
    ToolOutput,
)
from tui_agent.lazy import dataclass

REQUEST_FIRST_SECONDS: Final = 0.02
"""How long the beginning of a run waits to be shown: the request goes out first, as both need the one thread."""
STREAM_SECONDS: Final = 0.05
"""Time from one look at what is streamed to the next."""

_Streamed = AnswerDelta | ReasoningProgress | ToolCallProgress | CompactionProgress | ToolOutput


@dataclass
class AgentEvents(Message):
    """What the agent said since the last message, in order."""

    inbox: "Inbox"


class Inbox:
    """Collects events from the agent's callback until the screen gets to them.

    A burst of deltas costs one message and one text, however many there are, and a key pressed meanwhile stands
    before the next burst in the screen's queue. What is streamed more often than ``STREAM_SECONDS`` waits for more of
    it, because waking the screen costs more than what it says. Nothing else waits, but for the beginning of a run.
    """

    def __init__(self, receiver: MessagePump, *, clock: Callable[[], float] = monotonic) -> None:
        self._receiver = receiver
        self._clock = clock
        self._events: list[AgentEvent] = []
        self._is_told = False
        self._timer: Timer | None = None
        self._holds_streamed = False
        """Whether the timer is one of streamed events, not of a run's beginning."""
        self._next_stream = 0.0

    def put(self, event: AgentEvent) -> None:
        """Take an event; on the event loop's thread."""
        self._events.append(event)
        if self._is_told:
            return
        is_streamed = isinstance(event, _Streamed)
        if self._timer is None:
            wait = self._next_stream - self._clock() if is_streamed else 0.0
            if isinstance(event, RunStarted):
                wait = REQUEST_FIRST_SECONDS
            if wait > 0:
                self._timer, self._holds_streamed = self._receiver.set_timer(wait, self._tell), is_streamed
                return
        if self._timer is None or is_streamed != self._holds_streamed:
            self._tell()

    def _tell(self) -> None:
        self._stop_waiting()
        if not self._is_told:
            self._is_told = True
            self._receiver.post_message(AgentEvents(self))

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def take(self) -> Sequence[AgentEvent]:
        """Return what came since the last time, neighbouring deltas joined."""
        self._stop_waiting()
        self._is_told = False
        events, self._events = self._events, []
        if any(isinstance(event, _Streamed) for event in events):
            self._next_stream = self._clock() + STREAM_SECONDS
        joined: list[AgentEvent] = []
        for event in events:
            merged = _join(joined[-1], event) if joined else None
            if merged is None:
                joined.append(event)
            else:
                joined[-1] = merged
        return joined


def _join(first: AgentEvent, second: AgentEvent) -> AgentEvent | None:
    """Return one event for two neighbours, None when they can't be one."""
    match first, second:
        case AnswerDelta(text=one), AnswerDelta(text=more):
            return AnswerDelta(one + more)
        case ReasoningProgress(text=one), ReasoningProgress(text=more):
            return ReasoningProgress(one + more)
        case CompactionProgress(text=one), CompactionProgress(text=more):
            return CompactionProgress(one + more)
        case ToolOutput(call_id=call, text=one), ToolOutput(call_id=same, text=more) if call == same:
            return ToolOutput(call, one + more)
        case ToolCallProgress(call_id=call), ToolCallProgress(call_id=same) if call and call == same:
            return second
        case _:
            return None
