"""Screens over the conversation, and how they are left.

Textual takes the screen on top away, whichever one says that it is done. Keys come in bursts, and work ends while a
screen is being left: a second Enter would take away the screen below as well, or the conversation itself.
"""

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen

from tui_agent.ui.edge import Guarded

Result = TypeVar("Result")


class PageScreen(Guarded, Screen[Result]):
    """A screen of its own that is left once, however often it is told to."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Leave with a result; does nothing when that has happened already."""
        return super().dismiss(result) if _uncovered(self) else AwaitComplete()


class Dialog(Guarded, ModalScreen[Result]):
    """A screen over another one that is left once, however often it is told to."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Leave with a result; does nothing when that has happened already."""
        return super().dismiss(result) if _uncovered(self) else AwaitComplete()


def _uncovered(screen: Screen[Result]) -> bool:
    """Leave whatever covers a screen; returns whether the screen is there at all."""
    app = screen.app
    if screen not in app.screen_stack:
        return False
    while app.screen is not screen:
        app.screen.dismiss()
    return True
