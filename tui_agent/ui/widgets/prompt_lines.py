"""What stands between the conversation and the prompt, a line or a few for each subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual import events
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.agent.agent import Agent
from tui_agent.agent.events import QueueChanged
from tui_agent.app.format import one_line
from tui_agent.session.entries import Entry, ToolResultEntry
from tui_agent.tools.registry import tool_traits
from tui_agent.tools.todo import Todo, TodoStatus, current_todos
from tui_agent.ui.widgets.asked import Asked, AskedPermission
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.transcript.transcript import Transcript

if TYPE_CHECKING:
    from textual.screen import Screen

MAX_MESSAGES = 4
"""Lines of messages that wait."""


class QuestionChip(PlainText):
    """The question that waits, on every page but the conversation; a click goes to it."""

    ALLOW_SELECT = False

    def __init__(self, main: Screen[Any], asked: Asked) -> None:
        super().__init__()
        self._main = main
        self.ask(asked)

    def ask(self, asked: Asked) -> None:
        words = one_line(asked.what, 200)
        if isinstance(asked, AskedPermission):
            request = asked.request
            words = f"The agent asks about {request.tool}, esc goes back to it: {one_line(request.title, 200)}"
        self.update(f"▲ {words}")

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self._main.run_worker(self._go(), group="question")

    async def _go(self) -> None:
        app = self._main.app
        while app.screen is not self._main and len(app.screen_stack) > 1:
            await app.pop_screen()


class QueueList(Widget):
    """The messages that wait, a line each. Hidden while none does."""

    ALLOW_SELECT = False
    queue: reactive[QueueChanged] = reactive(QueueChanged(), layout=True)

    def watch_queue(self, queue: QueueChanged) -> None:
        self.display = bool(queue.steer or queue.follow_up)

    def render(self) -> Content:
        width = max(20, self.size.width - 12)
        lines = [f"↳ next   {one_line(text, width)}" for text in self.queue.steer]
        lines += [f"↳ later  {one_line(text, width)}" for text in self.queue.follow_up]
        if len(lines) > MAX_MESSAGES:
            lines = [*lines[: MAX_MESSAGES - 1], f"  and {len(lines) - MAX_MESSAGES + 1} more"]
        if lines and len(lines[-1]) + 20 <= self.size.width:
            lines[-1] += "   alt+up takes back"
        return Content("\n".join(lines))


class PlanLine(PlainText):
    """How far the plan is, above the prompt while work goes on."""

    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__("")
        self.display = False

    def look(self, agent: Agent, entry: Entry | None) -> None:
        """Show the plan of work that goes on; ``entry`` was appended, None: the path is another."""
        if entry is None or (
            isinstance(entry, ToolResultEntry) and tool_traits()[entry.tool].state == "list"
        ):
            self._show(current_todos(agent.session.active_path()) if agent.running else ())

    def _show(self, todos: Sequence[Todo]) -> None:
        """Show the item that is worked on, or how many are done; nothing when none is left."""
        left = []
        for todo in todos:
            if todo.status in {TodoStatus.PENDING, TodoStatus.IN_PROGRESS}:
                left.append(todo)
        now = next((todo for todo in left if todo.status is TodoStatus.IN_PROGRESS), None)
        self.display = bool(left)
        done = sum(todo.status is TodoStatus.DONE for todo in todos)
        if now is None:
            self.update(f"◐ {done}/{len(todos)} done")
        else:
            self.update(f"◐ {done + 1}/{len(todos)} {one_line(now.content, 200)}")


class NewChip(PlainText):
    """Says that the conversation went on below; a click goes to its end."""

    ALLOW_SELECT = False

    def __init__(self, transcript: Transcript) -> None:
        super().__init__("↓ new  ctrl+end")
        self._transcript = transcript
        self.display = False

    def on_click(self) -> None:
        self._transcript.action_go_to("end")
