"""The widget above the prompt of an empty session: model, directory, recent sessions and hints.

`FirstHints.greet` decides what the widget shows. This depends on the session (demo, empty,
read-only) and on how many messages the user has sent in all sessions. On terminals with few rows,
`render` leaves out parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from textual import work
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.app.commands import Command, key_of
from tui_agent.app.format import age, one_line, short_path
from tui_agent.app.status_marks import GLYPHS
from tui_agent.context.context_status import Standing
from tui_agent.lazy import frozen
from tui_agent.model.demo import DEMO_MODEL
from tui_agent.ui.bindings import hidden
from tui_agent.ui.widgets.clickable import clickable
from tui_agent.version import __version__

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller
    from tui_agent.session.store import Store

MAX_BEGINNER_MESSAGES = 5
"""Number of sent messages from which on the user sees a single tip, instead of the hints for
beginners."""
MAX_SESSIONS = 3
MAX_WRITTEN = 100
"""Maximum number of sent messages that are counted, over all sessions."""

_BEGINNER_HINTS = {
    "mode": "plan first, change later",
    "context": "what fills the context window",
    "tree": "all branches of the session",
    "help": "everything else",
}
_TIPS = (
    ("undo", "undoes the last turn and its file changes"),
    ("find", "finds text in the conversation"),
    ("history", "finds what you wrote before, in all sessions"),
    ("race", "runs several attempts at one task"),
    ("compact", "shows a summary before it replaces the history"),
)
"""Commands and their descriptions. One of them is shown as a tip to a user who knows the basics."""

MARGIN = (GLYPHS[Standing.SENT], "the model sees this block")
"""A symbol in the margin of the conversation, and the hint that explains it."""


ROOM_FOR_TITLE = 18
"""Minimum number of terminal rows at which the title is shown."""
ROOM_FOR_FACTS = 23
"""Minimum number of terminal rows at which the model, the directory and the sandbox are shown."""
ROOM_FOR_ALL = 30
"""Minimum number of terminal rows at which the beginner's hints are shown below the recent
sessions."""


@frozen
class Recent:
    """A recent session in the same directory. ``age`` is a text such as ``2 h``."""

    id: str
    name: str
    age: str


class FirstHints(Widget, can_focus=True):
    """Shows how to begin, above the prompt of an empty session.

    Tab moves the focus to the recent sessions; Enter or a number then opens one of them.
    """

    ALLOW_SELECT = False
    FOCUS_ON_CLICK = False
    COMPONENT_CLASSES = {"first-hints--title", "first-hints--key"}
    BINDINGS = [
        hidden("1", "open(0)", "open"),
        hidden("2", "open(1)", "open"),
        hidden("3", "open(2)", "open"),
        Binding("enter", "open(0)", "open the last session"),
    ]

    title: reactive[str] = reactive("", layout=True)
    facts: reactive[tuple[tuple[str, str], ...]] = reactive((), layout=True)
    """Names and values of the facts that are shown: the model, the directory and the sandbox."""
    recent: reactive[tuple[Recent, ...]] = reactive((), layout=True)
    lines: reactive[tuple[tuple[str, str], ...]] = reactive((), layout=True)
    """The hints, each as a key and a text that says what the key does."""

    is_brief: reactive[bool] = reactive(default=False, layout=True)
    """Whether to show only the title and facts, to leave room for a question above the prompt."""

    is_demo = False
    """Whether the hints are shown in an empty session of the demo."""

    class Chosen(Message):
        """Posted when the user chooses a recent session to open."""

        def __init__(self, session_id: str) -> None:
            super().__init__()
            self.session_id = session_id

    def __init__(self) -> None:
        super().__init__()
        self._agent: Agent | None = None

    def watch_recent(self) -> None:
        self.can_focus = bool(self.recent)

    def action_open(self, place: int) -> None:
        if place < len(self.recent):
            self.post_message(self.Chosen(self.recent[place].id))

    def greet(self, agent: Agent, controller: Controller, keymap: Mapping[str, str]) -> None:
        """Show the hints for the agent's session, or hide them if it has entries or is read-only.

        For an empty session of the demo, show the demo's hints, even if it is read-only.
        """
        self._agent = agent
        is_empty = agent.session.leaf is None
        self.is_demo = is_empty and agent.model == DEMO_MODEL
        self.display = self.is_demo or (is_empty and not agent.session.read_only)
        if self.is_demo:
            self._offer_demo()
        elif self.display:
            store = controller.services.store
            written = len(store.typed_in(None, MAX_WRITTEN))
            self._offer(controller.commands, keymap, written)
            self.recent = tuple(_others(store, agent, controller.clock()))
            self._show_facts(agent)

    @work(exclusive=True, group="first-facts")
    async def _show_facts(self, agent: Agent) -> None:
        """Show the model, the directory and the sandbox.

        Examining the sandbox is slow, so it is done in a thread.
        """
        from tui_agent.app.status_commands import sandbox_words

        contained = await asyncio.to_thread(sandbox_words, agent)
        if agent is self._agent:
            self.facts = (
                ("model", agent.model or "none yet"),
                ("directory", short_path(agent.session.info.cwd)),
                ("sandbox", contained),
            )

    def _offer_demo(self) -> None:
        self.title = "This is the demo: a scripted model, but real tools. No API key, no network."
        self.facts = self.recent = ()
        self.lines = (
            ("tour", "then enter: a two-minute tour"),
            ("help", "lists everything the demo can show"),
            ("escape", "stops the demo's answer"),
            ("ctrl+q", "quit; the demo's files are in a scratch directory"),
            MARGIN,
        )

    def _offer(self, commands: Sequence[Command], keymap: Mapping[str, str], messages: int) -> None:
        """Show the hints for beginners, or one tip if the user has sent enough ``messages``.

        Commands without a key are left out. ``keymap`` contains the user's keys by action id.
        """
        self.title = f"tui-agent {__version__}"
        known = {}
        for command in commands:
            key = key_of(command.name, keymap)
            if not key.startswith("/"):
                known[command.name] = key
        if messages >= MAX_BEGINNER_MESSAGES:
            tips = [(known[name], about) for name, about in _TIPS if known.get(name)]
            if tips:
                self.lines = (tips[messages % len(tips)],)
            else:
                self.lines = ()
        else:
            keys = [
                (known[name], about) for name, about in _BEGINNER_HINTS.items() if known.get(name)
            ]
            self.lines = (
                ("enter", "send what you want done"),
                ("/  @  !", "commands, files, shell"),
                *keys,
                MARGIN,
            )

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


def _others(store: Store, agent: Agent, now: float) -> Iterator[Recent]:
    """Yield up to `MAX_SESSIONS` recent sessions of the agent's directory.

    The agent's own session and sessions without entries are left out.
    """
    found = store.sessions(cwd=agent.session.info.cwd, limit=MAX_SESSIONS + 1)
    others = (info for info in found if info.id != agent.session.id and info.entry_count)
    for info in islice(others, MAX_SESSIONS):
        yield Recent(info.id, info.title or info.first_message, age(info.updated_at, now))


def _key_line(keys: str, about: str) -> Content:
    return Content.assemble((f"  {keys:<11}", ".first-hints--key"), about)
