"""Brings the agent's events to a screen as messages, many at once when they come faster than the screen."""

from collections.abc import Callable, Sequence
from time import monotonic

from textual.message import Message
from textual.message_pump import MessagePump
from textual.timer import Timer

from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    CompactionProgress,
    ReasoningProgress,
    RunStarted,
    ToolOutput,
)
from tui_agent.lazy import dataclass

REQUEST_FIRST_SECONDS = 0.02
"""How long the beginning of a run waits to be shown: the request goes out first, as both need the one thread."""
DELTA_SECONDS = 0.05
"""Time from one look at what is streamed to the next."""


@dataclass
class AgentEvents(Message):
    """What the agent said since the last message, in order."""

    inbox: "Inbox"


class Inbox:
    """Collects events from the agent's callback until the screen gets to them.

    A burst of deltas costs one message and one text, however many there are, and a key pressed meanwhile stands
    before the next burst in the screen's queue. Deltas that come more often than ``DELTA_SECONDS`` wait for each
    other, because waking the screen costs more than what they say.
    """

    def __init__(self, receiver: MessagePump, *, clock: Callable[[], float] = monotonic) -> None:
        self._receiver = receiver
        self._clock = clock
        self._events: list[AgentEvent] = []
        self._later: Timer | None = None
        self._is_told = False
        self._begins = False
        """Whether what waits is the beginning of a run."""
        self._taken_at = -DELTA_SECONDS

    def put(self, event: AgentEvent) -> None:
        """Take an event; on the event loop's thread."""
        self._events.append(event)
        self._begins |= isinstance(event, RunStarted)
        if self._is_told:
            return
        if _join(event, event) is not None:
            wait = self._taken_at + DELTA_SECONDS - self._clock()
        else:
            wait = REQUEST_FIRST_SECONDS if self._begins else 0.0
        if wait <= 0:
            self._tell()
        elif self._later is None:
            self._later = self._receiver.set_timer(wait, self._tell)

    def _tell(self) -> None:
        self._stop_waiting()
        self._is_told = True
        self._receiver.post_message(AgentEvents(self))

    def _stop_waiting(self) -> None:
        if self._later is not None:
            self._later.stop()
            self._later = None

    def take(self) -> Sequence[AgentEvent]:
        """Return what came since the last time, neighbouring deltas joined."""
        self._stop_waiting()
        self._is_told = self._begins = False
        events, self._events = self._events, []
        self._taken_at = self._clock()
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
        case _:
            return None
