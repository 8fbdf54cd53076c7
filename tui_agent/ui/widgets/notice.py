"""The line above the prompt that shows notices, warnings and errors.

A message can come with a remedy, which is a key or command that helps the user.
"""

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.app.format import visible
from tui_agent.app.frontend import Remedy, Severity
from tui_agent.ui.later import Later
from tui_agent.ui.widgets.clickable import clickable

MARKS: dict[str, str] = {"information": "·", "warning": "▲", "error": "✗"}

MAX_WARNINGS = 3
"""Maximum number of warnings that are shown together."""
BRIEF_SECONDS = 5
"""Seconds after which a message shown by `NoticeLine.say_briefly` disappears."""


class NoticeLine(Widget):
    """Shows a message until it is replaced or cleared.

    The widget is hidden while it has no message.
    """

    COMPONENT_CLASSES = {"notice--mark", "notice--key"}

    message: reactive[str] = reactive("", layout=True)
    severity: reactive[Severity] = reactive("information")
    remedy: reactive[Remedy | None] = reactive(None)
    """How the user can fix the problem: a key, its label, and the action that a click runs."""

    def __init__(self) -> None:
        super().__init__()
        self.warnings = 0
        """Number of warnings and errors that `add` put into the current message; 0 after `say`."""
        self._clearing = Later(self, self.clear)

    def say(
        self,
        message: str,
        severity: Severity = "information",
        remedy: Remedy | None = None,
    ) -> None:
        """Show a message in place of the current message."""
        self._clearing.stop()
        self.warnings = 0
        self.severity = severity
        self.set_classes(f"-{severity}")
        self.remedy = remedy
        self.message = message

    def add(
        self,
        message: str,
        severity: Severity = "information",
        remedy: Remedy | None = None,
    ) -> None:
        """Show a message in place of the current message, or below it if both are warnings.

        If several warnings are shown, only the last `MAX_WARNINGS` lines stay.
        """
        if not (self.message and self.severity == severity == "warning"):
            self.say(message, severity, remedy)
            self.warnings = int(severity != "information")
            return
        self.remedy = remedy or self.remedy
        self.warnings += 1
        self.message = "\n".join([*self.message.split("\n"), message][-MAX_WARNINGS:])

    def say_briefly(self, message: str) -> None:
        """Show a message, and remove it after `BRIEF_SECONDS`."""
        self.say(message)
        self._clearing.after(BRIEF_SECONDS)

    def clear(self) -> None:
        self.warnings = 0
        self.message = ""

    def watch_message(self, message: str) -> None:
        self.display = bool(message)

    def render(self) -> Content:
        mark = f"{MARKS[self.severity]} "
        lines = []
        for line in self.message.split("\n"):
            lines.append(Content.assemble((mark, ".notice--mark"), visible(line)))
        if self.remedy:
            key, label, action = self.remedy
            lines[-1] += Content("  ") + clickable(f"{key} {label}".strip(), ".notice--key", action)
        return Content("\n").join(lines)
