"""Brings the agent's events to a screen as messages, many at once when they come faster than the screen."""

from collections.abc import Sequence
from time import monotonic
from typing import Final

from textual.message import Message
from textual.message_pump import MessagePump
from textual.timer import Timer

from tui_agent.agent.events import AgentEvent, AnswerDelta, CompactionProgress, ReasoningProgress, ToolOutput
from tui_agent.lazy import dataclass

GATHER_SECONDS: Final = 0.1
"""How long pieces of a text that comes steadily are gathered before the screen gets them."""

_PIECES: Final = AnswerDelta | CompactionProgress | ReasoningProgress | ToolOutput
"""Events that add to a text, of which many make one."""


@dataclass
class AgentEvents(Message):
    """What the agent said since the last message, in order."""

    inbox: "Inbox"


class Inbox:
    """Collects events from the agent's callback until the screen gets to them.

    The first piece of a text, and whatever is none, is told at once. Pieces that follow are gathered, so that a
    burst costs one message and one text, and a key pressed meanwhile stands before the next in the screen's queue.
    """

    def __init__(self, receiver: MessagePump) -> None:
        self._receiver = receiver
        self._events: list[AgentEvent] = []
        self._told = False
        self._timer: Timer | None = None
        self._last_told = 0.0

    def put(self, event: AgentEvent) -> None:
        """Take an event; on the event loop's thread."""
        self._events.append(event)
        if self._told:
            return
        left = self._last_told + GATHER_SECONDS - monotonic()
        if left <= 0 or not isinstance(event, _PIECES):
            self._tell()
        elif self._timer is None:
            self._timer = self._receiver.set_timer(left, self._tell)

    def _tell(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._told = True
        self._last_told = monotonic()
        self._receiver.post_message(AgentEvents(self))

    def take(self) -> Sequence[AgentEvent]:
        """Return what came since the last time, neighbouring deltas joined."""
        events, self._events = self._events, []
        self._told = False
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
