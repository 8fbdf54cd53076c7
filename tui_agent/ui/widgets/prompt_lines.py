"""The lines above the prompt: the queued messages, the current to-do, and the “new text” chip.

Screens other than the main screen show another chip when a question is waiting. `SessionView`
updates all of these widgets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from tui_agent.tools.todo import (
    Todo,
    TodoStatus,
    current_todos,
    done_of,
    is_of_newest_turn,
    progress,
)
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.transcript.transcript import Transcript
from tui_agent.ui.widgets.waiting_questions import ToolCallQuestion, WaitingQuestion

if TYPE_CHECKING:
    from textual.screen import Screen

MAX_MESSAGES = 4
"""Maximum number of lines in the list of queued messages."""
SENDS_NOW = "enter sends now"
"""The hint shown after the messages queued for the next step, when Enter sends them at once."""
ROOM_FOR_QUEUE_KEYS = 60
"""Minimum width of the message queue, in cells, at which it shows key hints.

A long message is cut to leave room for the hints.
"""


class QuestionChip(PlainText):
    """Says, on any other screen, that a question is waiting on the main screen.

    A click returns to the main screen.
    """

    ALLOW_SELECT = False

    def __init__(self, main: Screen[Any], asked: WaitingQuestion) -> None:
        super().__init__()
        self._main = main
        self.ask(asked)

    def ask(self, asked: WaitingQuestion) -> None:
        words = one_line(asked.what, 200)
        if isinstance(asked, ToolCallQuestion):
            request = asked.request
            title = one_line(request.title, 200)
            words = f"The agent asks about {request.tool} (esc shows the question): {title}"
        self.update(f"▲ {words}")

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self._main.run_worker(self._go(), group="question")

    async def _go(self) -> None:
        app = self._main.app
        while app.screen is not self._main and len(app.screen_stack) > 1:
            await app.pop_screen()


class QueueList(Widget):
    """Lists the queued messages, one per line. The widget is hidden if there are none."""

    ALLOW_SELECT = False
    queue: reactive[QueueChanged] = reactive(QueueChanged(), layout=True)
    has_draft: reactive[bool] = reactive(default=False)
    """Whether the prompt contains text. If so, Enter sends the text and not the queue."""
    has_question: reactive[bool] = reactive(default=False)
    """Whether a question to the user is waiting. If so, Enter answers the question."""
    is_settled: reactive[bool] = reactive(default=True)
    """Whether Enter may send the queue. False for a moment after the user has sent a message.

    A second Enter in that moment was probably pressed by mistake, so it sends nothing.
    """

    def __init__(self, key_of: Callable[[str], str]) -> None:
        """``key_of`` returns the text to display for an action's key, or "" if it has none."""
        super().__init__()
        self._key_of = key_of

    @property
    def sends_now(self) -> bool:
        """Whether Enter immediately sends the messages that are queued for the next step."""
        is_free = not self.has_draft and not self.has_question
        return bool(self.queue.steer) and is_free and self.is_settled

    def watch_queue(self, queue: QueueChanged) -> None:
        self.display = bool(queue.checked or queue.steer or queue.follow_up)

    def render(self) -> Content:
        messages = [("hook ", text) for text in self.queue.checked]
        messages += [("next ", text) for text in self.queue.steer]
        messages += [("later", text) for text in self.queue.follow_up]
        more = 0
        if len(messages) > MAX_MESSAGES:
            more = len(messages) - MAX_MESSAGES + 1
            messages = messages[:-more]
        width = max(20, self.size.width - 12)
        lines = [f"↳ {when}  {one_line(text, width)}" for when, text in messages]
        if more:
            lines.append(f"  and {more} more")
        checked = len(self.queue.checked)
        steers = min(checked + len(self.queue.steer), len(messages))
        for place, line in enumerate(lines):
            keys = []
            if place == steers - 1 and self.sends_now:
                keys.append(SENDS_NOW)
            is_last = place == len(lines) - 1 and place >= checked
            if is_last and (key := self._key_of("take_back")):
                keys.append(f"{key} takes back")
            lines[place] = self._with_keys(line, keys)
        return Content("\n".join(lines))

    def _with_keys(self, line: str, keys: Sequence[str]) -> str:
        shown = ""
        if keys and self.size.width >= ROOM_FOR_QUEUE_KEYS:
            shown = f"   {' · '.join(keys)}"
        cut = Content(line).truncate(self.size.width - len(shown), ellipsis=True)
        return f"{cut.plain}{shown}"


class TodoLine(PlainText):
    """Shows the to-do that the agent is working on, above the prompt.

    The line is hidden while the agent isn't running. To-dos of an earlier turn are not shown
    either, because the model may never mark them as done.
    """

    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__("")
        self.display = False

    def follow(self, agent: Agent, entry: Entry | None) -> None:
        """Update the line after ``entry`` was appended, or after the leaf has moved.

        In the latter case, ``entry`` is None.
        """
        if entry is None or (
            isinstance(entry, ToolResultEntry) and tool_traits()[entry.tool].state == "list"
        ):
            path = agent.session.active_path()
            is_current = agent.running and is_of_newest_turn(path)
            self._show(current_todos(path) if is_current else ())

    def _show(self, todos: Sequence[Todo]) -> None:
        """Show how many to-dos are done, and the one that is in progress.

        If all are done, hide the line.
        """
        now = next((todo for todo in todos if todo.status is TodoStatus.IN_PROGRESS), None)
        done, count = done_of(todo.status for todo in todos)
        self.display = done < count
        text = f"◐ {progress(todos)}"
        if now is not None:
            text = f"{text} · {one_line(now.content, 200)}"
        self.update(text)


class NewChip(PlainText):
    """Says that there is new text below the visible part of the conversation.

    A click scrolls to the new text.
    """

    ALLOW_SELECT = False

    def __init__(self, transcript: Transcript, key_of: Callable[[str], str]) -> None:
        """``key_of`` returns the text to display for an action's key, or "" if it has none."""
        super().__init__("")
        self._transcript = transcript
        self._key_of = key_of
        self.display = False

    def show(self, *, shown: bool) -> None:
        self.update(f"↓ new  {self._key_of('newest')}".rstrip())
        self.display = shown

    def on_click(self) -> None:
        self._transcript.action_go_to("end")
