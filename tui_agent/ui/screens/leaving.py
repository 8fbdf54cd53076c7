"""Screens over the conversation, and how they are left.

Textual takes the screen on top away, whichever one says that it is done, and its parts before its work. Keys and clicks
come in bursts, and work ends while a screen is being left: a second Enter would take away the screen below as well.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen

Result = TypeVar("Result")


class PageScreen(Screen[Result]):
    """A screen of its own. It is left once, however often it is told to, and takes along what covers it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._endings: list[Callable[[], object]] = []
        self._is_left = False

    def when_left(self, end: Callable[[], object]) -> None:
        """Have something done when the page is left, while its parts are there; at once if that has happened."""
        if self._is_left:
            end()
        else:
            self._endings.append(end)

    def end(self) -> None:
        """Do what was to be done when the page is left."""
        self._is_left = True
        while self._endings:
            self._endings.pop()()

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Leave with a result; does nothing when that has happened already."""
        if self not in self.app.screen_stack:
            return AwaitComplete()
        while self.app.screen is not self:
            self.app.screen.dismiss()
        return super().dismiss(result)


class Dialog(ModalScreen[Result], PageScreen[Result]):
    """A screen over another one that can be seen."""
