"""Holds the user's messages until they are appended: at a run's next step (steer) or end (follow-up).

`Agent` adds messages (also the message that starts a run) and takes them back; `Intake` takes them
out and appends them. Both emit `QueueChanged`; the queue itself does not.
"""

from collections import deque

from tui_agent.agent.events import QueueChanged
from tui_agent.lazy import frozen
from tui_agent.session.entries import UserPart, typed_text


@frozen
class QueuedMessage:
    """One waiting message.

    With ``follow_up``, it waits for the end of the run, otherwise for the next step.
    """

    parts: tuple[UserPart, ...]
    follow_up: bool

    @property
    def typed(self) -> str:
        return typed_text(self.parts)


class MessageQueue(deque[QueuedMessage]):
    """The waiting messages, oldest first."""

    checked: tuple[QueuedMessage, ...] = ()
    """The messages that were taken out, but are not appended yet, because their hooks are running.

    They are older than the waiting messages.
    """

    def take_steering(self) -> list[QueuedMessage]:
        """Remove and return the messages that wait for the next step, oldest first."""
        taken = [message for message in self if not message.follow_up]
        left = [message for message in self if message.follow_up]
        self.clear()
        self.extend(left)
        return taken

    def snapshot(self) -> QueueChanged:
        """Return an event that contains the waiting messages."""
        steer: list[str] = []
        follow_up: list[str] = []
        for message in self:
            (follow_up if message.follow_up else steer).append(message.typed)
        checked = tuple(message.typed for message in self.checked)
        return QueueChanged(tuple(steer), tuple(follow_up), checked)
