"""The messages a user sends while the agent works: for its next step (steering) or for when it is done."""

from collections import deque
from collections.abc import Sequence

from tui_agent.agent.events import QueueChanged
from tui_agent.lazy import dataclass
from tui_agent.session.entries import TextPart, UserPart
from tui_agent.session.typed import typed_text


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """One waiting message."""

    parts: tuple[UserPart, ...]
    follow_up: bool

    @property
    def text(self) -> str:
        """What is sent, without attachments."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def typed(self) -> str:
        return typed_text(self.parts)


class MessageQueue:
    """First in, first out for each of the two kinds; last in, first back for the user who changes their mind."""

    def __init__(self) -> None:
        self._messages: deque[QueuedMessage] = deque()

    def __bool__(self) -> bool:
        return bool(self._messages)

    def put(self, parts: tuple[UserPart, ...], *, follow_up: bool) -> None:
        self._messages.append(QueuedMessage(parts, follow_up))

    def take_steering(self) -> list[QueuedMessage]:
        """Remove and return every message that goes in before the next request."""
        taken = [message for message in self._messages if not message.follow_up]
        self._messages = deque(message for message in self._messages if message.follow_up)
        return taken

    def put_back(self, messages: Sequence[QueuedMessage]) -> None:
        """Put messages that were taken to the front again, in their order."""
        self._messages.extendleft(reversed(messages))

    def take_follow_up(self) -> QueuedMessage | None:
        """Remove and return the oldest follow-up."""
        return self._messages.popleft() if self._messages else None

    def take_back(self) -> QueuedMessage | None:
        """Remove and return the newest message."""
        return self._messages.pop() if self._messages else None

    def snapshot(self) -> QueueChanged:
        """Return what waits, for the screen."""
        return QueueChanged(
            steer=tuple(message.typed for message in self._messages if not message.follow_up),
            follow_up=tuple(message.typed for message in self._messages if message.follow_up),
        )
