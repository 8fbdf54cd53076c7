"""Screens over the conversation, and how they are left.

Textual takes the screen on top away, whichever one says that it is done. Keys come in bursts, and work ends while a
screen is being left: a second Enter would take away the screen below as well, or the conversation itself. It also takes
the parts of a screen away before it ends the work on them.
"""

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen
from textual.worker import NoActiveWorker, get_current_worker

from tui_agent.ui.edge import Guarded

Result = TypeVar("Result")


class PageScreen(Guarded, Screen[Result]):
    """A screen of its own that is left once, however often it is told to."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Leave with a result; does nothing when that has happened already."""
        return super().dismiss(result) if _ready_to_leave(self) else AwaitComplete()


class Dialog(Guarded, ModalScreen[Result]):
    """A screen over another one that is left once, however often it is told to."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Leave with a result; does nothing when that has happened already."""
        return super().dismiss(result) if _ready_to_leave(self) else AwaitComplete()


def _ready_to_leave(screen: Screen[Result]) -> bool:
    """Leave whatever covers a screen and end the work on it; returns whether the screen is there at all."""
    app = screen.app
    if screen not in app.screen_stack:
        return False
    while app.screen is not screen:
        app.screen.dismiss()
    try:
        current = get_current_worker()
    except NoActiveWorker:
        current = None
    for worker in list(app.workers):
        if worker is not current and screen in worker.node.ancestors_with_self:
            worker.cancel()
    return True
