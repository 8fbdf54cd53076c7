"""Hints for a new user, over the prompt of an empty session; gone for good after a few messages."""

from collections.abc import Mapping, Sequence

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.app.commands import Command

MAX_BEGINNER_MESSAGES = 5

_TOLD = {
    "mode": "plan first, change later",
    "context": "what fills the window",
    "tree": "every branch there is",
    "help": "everything else",
}


MARGIN = ("█", "the model sees this block")


ROOM_FOR_TITLE = 18
"""Rows of the terminal from which there is a title."""


class FirstHints(Widget):
    """A few lines with keys. Hidden unless there is nobody but a newcomer to see them."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"first-hints--title", "first-hints--key"}  # noqa: RUF012 - as inherited

    lines: reactive[tuple[tuple[str, str], ...]] = reactive((), layout=True)

    title: reactive[str] = reactive("New here?", layout=True)

    def offer_demo(self) -> None:
        self.title = "This is the demo: a script plays the model, the tools are real. No key, no network."
        self.lines = (
            ("tour", "and enter: two minutes"),
            ("help", "what else it can play"),
            ("escape", "stops it"),
            ("ctrl+q", "leave; files are scratch"),
            MARGIN,
        )
        self.display = True

    def offer(self, commands: Sequence[Command], keymap: Mapping[str, str], messages: int) -> None:
        """Show the hints for commands that exist, unless so many messages were written that they are known."""
        if messages >= MAX_BEGINNER_MESSAGES:
            self.display = False
            return
        self.title = "New here?"
        known = {command.name: keymap.get(command.name, command.key) for command in commands}
        keys = [(known[name], about) for name, about in _TOLD.items() if known.get(name)]
        self.lines = (
            ("enter", "send what you want done"),
            ("/  @  !", "commands, files, shell"),
            *keys,
            MARGIN,
        )
        self.display = True

    def render(self) -> Content:
        title, key_style = (self.get_visual_style(f"first-hints--{name}", partial=True) for name in ("title", "key"))
        rows = [Content.assemble((f"  {keys:<11}", key_style), about) for keys, about in self.lines]
        if self.app.size.height >= ROOM_FOR_TITLE:
            rows.insert(0, Content.styled(self.title, title))
        return Content("\n").join(rows)
