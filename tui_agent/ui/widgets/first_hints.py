"""The first screen: where one is, what is contained, the last sessions by a key, and hints while one is new here."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line
from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.clickable import clickable
from tui_agent.version import __version__

MAX_BEGINNER_MESSAGES = 5
MAX_SESSIONS = 3

_TOLD = {
    "mode": "plan first, change later",
    "context": "what fills the window",
    "tree": "every branch there is",
    "help": "everything else",
}
_TIPS = (
    ("undo", "takes the last turn back, its files too"),
    ("find", "finds any text of the conversation"),
    ("history", "finds what you wrote before, in all sessions"),
    ("race", "has several attempts at one task"),
    ("compact", "shows what a summary keeps before it counts"),
)
"""One of them is shown to those who know the rest."""

MARGIN = ("█", "the model sees this block")


ROOM_FOR_TITLE = 18
"""Rows of the terminal from which there is a title."""
ROOM_FOR_FACTS = 23
"""Rows from which model, directory and sandbox are told."""
ROOM_FOR_ALL = 30
"""Rows from which hints for a newcomer stand beside sessions."""


@dataclass(frozen=True, slots=True)
class Recent:
    """A session that can be opened: its id, name and age."""

    id: str
    name: str
    age: str


class FirstHints(Widget, can_focus=True):
    """What an empty session shows above the prompt. Tab gives it the keys, which open a session."""

    ALLOW_SELECT = False
    FOCUS_ON_CLICK = False
    COMPONENT_CLASSES = {"first-hints--title", "first-hints--key"}  # noqa: RUF012 - as inherited
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "open(0)", "open", show=False),
        Binding("2", "open(1)", "open", show=False),
        Binding("3", "open(2)", "open", show=False),
        Binding("enter", "open(0)", "open the last session"),
    ]

    title: reactive[str] = reactive("", layout=True)
    facts: reactive[tuple[tuple[str, str], ...]] = reactive((), layout=True)
    """Model, directory, and what is contained."""
    recent: reactive[tuple[Recent, ...]] = reactive((), layout=True)
    lines: reactive[tuple[tuple[str, str], ...]] = reactive((), layout=True)
    """Keys, and what they do."""

    is_brief: reactive[bool] = reactive(default=False, layout=True)
    """Whether a question below needs the room."""

    class Chosen(Message):
        """A session shall be opened."""

        def __init__(self, session_id: str) -> None:
            super().__init__()
            self.session_id = session_id

    def watch_recent(self) -> None:
        self.can_focus = bool(self.recent)

    def action_open(self, place: int) -> None:
        if place < len(self.recent):
            self.post_message(self.Chosen(self.recent[place].id))

    def offer_demo(self) -> None:
        self.title = (
            "This is the demo: a script plays the model, the tools are real. No key, no network."
        )
        self.facts = self.recent = ()
        self.lines = (
            ("tour", "and enter: two minutes"),
            ("help", "what else it can play"),
            ("escape", "stops it"),
            ("ctrl+q", "leave; files are scratch"),
            MARGIN,
        )
        self.display = True

    def offer(self, commands: Sequence[Command], keymap: Mapping[str, str], messages: int) -> None:
        """Show hints for commands that exist; after so many messages they are known, and one tip is left."""
        self.title = f"tui-agent {__version__}"
        known = {command.name: keymap.get(command.name, command.key) for command in commands}
        if messages >= MAX_BEGINNER_MESSAGES:
            tips = [(known[name], about) for name, about in _TIPS if known.get(name)]
            if tips:
                self.lines = (tips[messages % len(tips)],)
            else:
                self.lines = ()
        else:
            keys = [(known[name], about) for name, about in _TOLD.items() if known.get(name)]
            self.lines = (
                ("enter", "send what you want done"),
                ("/  @  !", "commands, files, shell"),
                *keys,
                MARGIN,
            )
        self.display = True

    def render(self) -> Content:
        rows = self.app.size.height
        parts = []
        if rows >= ROOM_FOR_TITLE:
            parts = [[Content.styled(self.title, ".first-hints--title")]]
        if rows >= ROOM_FOR_FACTS:
            parts[0] += [Content.assemble(f"  {name:<11}", text) for name, text in self.facts]
        if self.is_brief:
            return Content("\n").join(parts[0] if parts else [])
        if self.recent:
            parts.append(self._sessions())
        if not self.recent or len(self.lines) == 1 or rows >= ROOM_FOR_ALL:
            parts.append([_key_line(keys, about) for keys, about in self.lines])
        gap = "\n"
        if rows >= ROOM_FOR_FACTS:
            gap = "\n\n"
        return Content(gap).join(Content("\n").join(part) for part in parts)

    def _sessions(self) -> list[Content]:
        rows = []
        for place, session in enumerate(self.recent):
            action = f"open({place})"
            key = clickable(f"  tab {place + 1:<7}", ".first-hints--key", action)
            name = one_line(session.name, max(20, self.size.width - 30))
            rows.append(Content.assemble(key, clickable(name, "", action), f"  {session.age}"))
        return rows


def _key_line(keys: str, about: str) -> Content:
    return Content.assemble((f"  {keys:<11}", ".first-hints--key"), about)
