"""Messages that wait: shown above the prompt until the agent takes them or the user takes them back."""

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.agent.events import QueueChanged
from tui_agent.app.format import one_line
from tui_agent.ui.edge import Guarded

MAX_MESSAGES = 4
"""Messages shown; more are counted."""


class QueueList(Guarded, Widget):
    """One line per message. Hidden while nothing waits."""

    ALLOW_SELECT = False
    queue: reactive[QueueChanged] = reactive(QueueChanged(), layout=True)
    """What waits."""

    def watch_queue(self, queue: QueueChanged) -> None:
        """Take room only when there is something to show."""
        self.display = bool(queue.steer or queue.follow_up)

    def render(self) -> Content:
        """Draw the oldest messages; what goes in sooner stands first."""
        width = max(20, self.size.width - 12)
        lines = [f"↳ next   {one_line(text, width)}" for text in self.queue.steer]
        lines += [f"↳ later  {one_line(text, width)}" for text in self.queue.follow_up]
        if len(lines) > MAX_MESSAGES:
            lines = [*lines[: MAX_MESSAGES - 1], f"  and {len(lines) - MAX_MESSAGES + 1} more"]
        if lines:
            lines[-1] += "   alt+up takes back" if len(lines[-1]) + 20 <= self.size.width else ""
        return Content("\n".join(lines))
