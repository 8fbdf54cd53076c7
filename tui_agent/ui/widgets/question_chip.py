"""The line on top of another screen that says the agent waits for an answer in the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import events
from textual.widgets import Static

from tui_agent.app.format import one_line
from tui_agent.ui.edge import Guarded

if TYPE_CHECKING:
    from textual.screen import Screen

    from tui_agent.agent.events import PermissionRequest


class QuestionChip(Guarded, Static):
    """One line; a click goes to the question."""

    ALLOW_SELECT = False

    def __init__(self, main: Screen[Any], request: PermissionRequest) -> None:
        super().__init__(markup=False)
        self._main = main
        self.ask(request)

    def ask(self, request: PermissionRequest) -> None:
        """Tell of a question."""
        self.update(f"▲ The agent asks about {request.tool}, esc goes back to it: {one_line(request.title, 200)}")

    def on_click(self, event: events.Click) -> None:
        """Close every screen over the conversation."""
        event.stop()
        self._main.run_worker(self._go(), group="question")

    async def _go(self) -> None:
        app = self._main.app
        while app.screen is not self._main and len(app.screen_stack) > 1:
            await app.pop_screen()


def show_question(main: Screen[Any], request: PermissionRequest | None) -> None:
    """Have the screen on top tell of a question, unless it is the conversation, and no other screen."""
    stack = main.app.screen_stack
    for screen in stack:
        chips = screen.query(QuestionChip)
        if request is None or screen is main or screen is not stack[-1]:
            chips.remove()
        elif chips:
            chips.first().ask(request)
        elif screen.is_attached:
            screen.mount(QuestionChip(main, request))
