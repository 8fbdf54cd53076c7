"""Delays calls for widgets, so that many requests during the delay cause a single call."""

from collections.abc import Callable

from textual.message_pump import MessagePump
from textual.timer import Timer


class Later:
    """A delayed call for a widget or screen, with at most one call pending."""

    def __init__(self, owner: MessagePump, act: Callable[[], object]) -> None:
        """Create the delayed call; ``owner`` runs ``act``, a function or coroutine function."""
        self._owner = owner
        self._act = act
        self._timer: Timer | None = None
        self.is_waiting = False

    def after(self, seconds: float) -> None:
        """Schedule the call to run after ``seconds``, unless a call is already pending."""
        if not self.is_waiting:
            self.is_waiting = True
            self._timer = self._owner.set_timer(seconds, self._due)

    def debounce(self, seconds: float) -> None:
        """Schedule the call to run after ``seconds``, and cancel a call that is already pending."""
        self.stop()
        self.after(seconds)

    def after_refresh(self) -> None:
        """Schedule the call to run after the screen's next refresh, unless a call is pending."""
        if not self.is_waiting:
            self.is_waiting = True
            self._owner.call_after_refresh(self._due)

    def stop(self) -> None:
        """Cancel the pending call, if any."""
        self.is_waiting = False
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _due(self) -> object:
        if not self.is_waiting:
            return None
        self.stop()
        return self._act()
