"""Work that is done later: once, however often it was asked for meanwhile."""

from collections.abc import Callable

from textual.message_pump import MessagePump
from textual.timer import Timer


class Later:
    """One piece of work of a widget or a screen, and whether it is waiting to be done."""

    def __init__(self, owner: MessagePump, act: Callable[[], object]) -> None:
        """``act`` may be a coroutine function; ``owner`` waits for it then."""
        self._owner = owner
        self._act = act
        self._timer: Timer | None = None
        self.is_waiting = False

    def after(self, seconds: float) -> None:
        """Do it in so many seconds; where it waits already, nothing changes."""
        if not self.is_waiting:
            self.is_waiting = True
            self._timer = self._owner.set_timer(seconds, self._due)

    def after_rest(self, seconds: float) -> None:
        """Do it when nobody has asked again for so many seconds."""
        self.stop()
        self.after(seconds)

    def after_refresh(self) -> None:
        """Do it after the next refresh of the screen; where it waits already, nothing changes."""
        if not self.is_waiting:
            self.is_waiting = True
            self._owner.call_after_refresh(self._due)

    def stop(self) -> None:
        """Don't do it."""
        self.is_waiting = False
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _due(self) -> object:
        if not self.is_waiting:
            return None
        self.stop()
        return self._act()
