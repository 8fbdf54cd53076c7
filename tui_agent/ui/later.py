"""Delays calls that widgets ask for, so that many requests during the delay lead to one call."""

from collections.abc import Callable

from textual.message_pump import MessagePump
from textual.timer import Timer


class Later:
    """A call that a widget or screen schedules for later. At most one call is pending at a time."""

    def __init__(self, owner: MessagePump, act: Callable[[], object]) -> None:
        """Create the delayed call; ``owner`` runs ``act``, which may be a coroutine function."""
        self._owner = owner
        self._act = act
        self._timer: Timer | None = None
        self.is_waiting = False

    def after(self, seconds: float) -> None:
        """Run the call after ``seconds``, unless a call is already pending."""
        if not self.is_waiting:
            self.is_waiting = True
            self._timer = self._owner.set_timer(seconds, self._due)

    def debounce(self, seconds: float) -> None:
        """Run the call after ``seconds``; if a call is pending already, cancel that one first."""
        self.stop()
        self.after(seconds)

    def after_refresh(self) -> None:
        """Run the call after the screen's next refresh, unless a call is already pending."""
        if not self.is_waiting:
            self.is_waiting = True
            self._owner.call_after_refresh(self._due)

    def stop(self) -> None:
        """Cancel the pending call, if there is one."""
        self.is_waiting = False
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _due(self) -> object:
        if not self.is_waiting:
            return None
        self.stop()
        return self._act()
