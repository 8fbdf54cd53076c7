"""The edge of the full-screen program: an error in a key, a handler or a worker becomes a sentence on the screen."""

from typing import TypeVar

from textual import events
from textual.app import App
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.worker import WorkerFailed

from tui_agent.errors import UserFacingError, report

Result = TypeVar("Result")

_BUILDING = (events.Load, events.Compose, events.Mount)
"""What makes a widget: one that fails here is not there, and its page is left."""


class Guarded(MessagePump):
    """A part of the screen whose handlers may fail without ending the program. Everything of ours is one."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if isinstance(message, _BUILDING):
                raise
            tell(self.app, error)


class GuardedApp(Guarded, App[Result]):
    """An application that reports what its workers, timers and pages can't do, and goes on."""

    def _handle_exception(self, error: Exception) -> None:
        cause = error.error if isinstance(error, WorkerFailed) else error
        if not isinstance(error, WorkerFailed | UserFacingError):
            super()._handle_exception(error)
            return
        tell(self, cause)
        screen = self.screen
        if not isinstance(error, WorkerFailed) and not _is_whole(screen):
            self.call_later(self._leave, screen)

    def _leave(self, screen: Screen[object]) -> None:
        """Leave a page that could not be built."""
        if self.screen is screen and len(self.screen_stack) > 1:
            self.pop_screen()


def tell(app: App[Result], error: BaseException) -> None:
    """Log an error and say on the screen what is the matter."""
    problem = report(error)
    app.notify(problem.sentence, severity="warning" if problem.expected else "error", markup=False)


def _is_whole(screen: Screen[object]) -> bool:
    """Whether everything of a screen was built."""
    return screen.is_running and all(widget.is_running for widget in screen.walk_children())
