"""The one table of commands: name, help, key, palette entry and handler of everything the user can ask for.

The prompt (``/name``), its completion, the command palette, key bindings and the help page all read this table.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from textual.binding import Binding

from tui_agent.ui import (
    context_handlers,
    copying,
    handlers,
    knowledge_handlers,
    page_handlers,
    permission_handlers,
    subagent_handlers,
    transfer_handlers,
    undo_handlers,
)
from tui_agent.ui.abilities import (
    CommandingAgent,
    CompactingAgent,
    InspectedAgent,
    NavigatingAgent,
    PermittingAgent,
    ServedAgent,
)
from tui_agent.ui.format import one_line

if TYPE_CHECKING:
    from tui_agent.agent.knowledge.knowledge import CommandRow
    from tui_agent.ui.screens.main import MainScreen

Handler = Callable[["MainScreen", str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table."""

    name: str
    help: str
    handler: Handler
    title: str
    """Entry in the palette."""
    key: str = ""
    """Keys as Textual names them, separated by commas."""
    argument: str = ""
    """How the argument is written in the help, in brackets when it may be left out."""
    aliases: tuple[str, ...] = ()
    needs: type | None = None
    """A protocol the agent has to satisfy for the command to exist."""
    hint: str = ""
    """Label in the line of keys; empty keys are not shown there."""

    @property
    def takes_argument(self) -> bool:
        """Whether it is useless without an argument."""
        return bool(self.argument) and not self.argument.startswith("[")


COMMANDS: tuple[Command, ...] = (
    Command("new", "begin a new session", handlers.new, "New session", key="ctrl+n"),
    Command(
        "sessions",
        "open another session",
        handlers.sessions,
        "Sessions",
        key="ctrl+s",
        argument="[ID]",
        aliases=("resume",),
    ),
    Command("tree", "all branches of this session", handlers.tree, "Session tree", key="ctrl+t", needs=NavigatingAgent),
    Command("parent", "open the session this one came from", subagent_handlers.parent, "Parent session"),
    Command("fork", "go on in a copy of this session", handlers.fork, "Fork session"),
    Command("rename", "give this session a title", handlers.rename, "Rename session", argument="[TITLE]"),
    Command(
        "export",
        "write this session to a file: md, html, jsonl",
        transfer_handlers.export,
        "Export session",
        argument="[FILE]",
    ),
    Command(
        "import",
        "take in sessions, other programs' too",
        transfer_handlers.import_,
        "Import sessions",
        argument="[FILE]",
    ),
    Command("label", "label where you are, to find it in /tree", handlers.label, "Label", argument="[TEXT]"),
    Command("model", "use another model", handlers.model, "Model", key="f2", argument="[ID]"),
    Command("effort", "how much the model thinks", handlers.effort, "Effort", key="f9", argument="[LEVEL]"),
    Command(
        "mode",
        "what runs unasked, from plan to yolo",
        permission_handlers.mode,
        "Mode",
        key="shift+tab",
        argument="[NAME]",
    ),
    Command(
        "permissions",
        "what is allowed, asked and denied, and why",
        permission_handlers.permissions,
        "Permissions",
        needs=PermittingAgent,
    ),
    Command("undo", "undo the last turn, move, compaction or prune", undo_handlers.undo, "Undo", key="f5"),
    Command("redo", "undo the last /undo", undo_handlers.redo, "Redo", key="f6"),
    Command("retry", "send the last request again", handlers.retry, "Retry", key="ctrl+r"),
    Command(
        "compact",
        "summarise the history now",
        context_handlers.compact,
        "Compact",
        key="f4",
        argument="[FOCUS]",
        needs=CompactingAgent,
    ),
    Command("prune", "turn old tool outputs into placeholders", context_handlers.prune, "Prune", needs=InspectedAgent),
    Command(
        "context",
        "what fills the context window",
        context_handlers.context,
        "Context window",
        key="ctrl+g",
        needs=InspectedAgent,
    ),
    Command("skills", "what the agent can be told to load", knowledge_handlers.skills, "Skills", needs=CommandingAgent),
    Command(
        "mcp",
        "MCP servers: state, tools, log, login",
        knowledge_handlers.mcp,
        "MCP servers",
        argument="[reload]",
        needs=ServedAgent,
    ),
    Command(
        "agent",
        "let another kind of agent go on",
        knowledge_handlers.agent,
        "Agent",
        argument="[NAME]",
        needs=CommandingAgent,
    ),
    Command(
        "init",
        "write AGENTS.md from looking at the project",
        knowledge_handlers.init,
        "Write AGENTS.md",
        argument="[HINT]",
        needs=CommandingAgent,
    ),
    Command("panel", "show or hide tree, to-dos, files and jobs", context_handlers.panel, "Side panel", key="ctrl+b"),
    Command("cost", "tokens and dollars spent", handlers.cost, "Cost"),
    Command("todo", "the model's plan: what is done, what is next", page_handlers.todo, "To-do list"),
    Command(
        "copy",
        "copy the last answer, its code, all, or #12",
        copying.copy,
        "Copy last answer",
        key="f3",
        argument="[WHAT]",
    ),
    Command("theme", "change the colours", handlers.theme, "Theme", argument="[NAME]"),
    Command(
        "settings",
        "look at and change every setting",
        context_handlers.settings,
        "Settings",
        argument="[reload]",
    ),
    Command("help", "commands and keys", handlers.show_help, "Help", key="f1", hint="help"),
    Command("keys", "the keys, and the names to change them by", page_handlers.keys, "Keys"),
    Command("doctor", "what is set up, what is missing, what was warned of", page_handlers.doctor, "Doctor"),
    Command("quit", "leave", handlers.leave, "Quit", aliases=("exit",)),
)
"""In the order lists show them."""


class Offer:
    """The commands that work with an agent: the table's, then the user's own and the skills.

    What an agent can do is looked at once: a millisecond, and Textual asks for each key whenever anything changes.
    """

    def __init__(self, agent: object | None) -> None:
        self.agent = agent
        self._rows = tuple(row for row in COMMANDS if row.needs is None or isinstance(agent, row.needs))
        self._commanding = agent if isinstance(agent, CommandingAgent) else None
        self._taken = frozenset(name for row in self._rows for name in (row.name, *row.aliases))

    def commands(self) -> list[Command]:
        """Return the commands there are now."""
        own = _own_rows(self._commanding.commands()) if self._commanding is not None else ()
        return [*self._rows, *(row for row in own if row.name not in self._taken)]


@lru_cache(maxsize=2)
def _own_rows(found: "tuple[CommandRow, ...]") -> tuple[Command, ...]:
    """Return rows of the table for commands of the user's own."""
    return tuple(
        Command(
            row.name,
            one_line(row.description, 100),
            partial(knowledge_handlers.own_command, row.name),
            f"/{row.name}",
            argument=row.argument,
        )
        for row in found
    )


def find(name: str, commands: Iterable[Command]) -> Command | None:
    """Return the command with a name or alias."""
    return next((command for command in commands if name == command.name or name in command.aliases), None)


def close_names(name: str, commands: Iterable[Command]) -> list[str]:
    """Return up to three names that look like one that does not exist."""
    names = [known for command in commands for known in (command.name, *command.aliases)]
    begins = [known for known in names if known.startswith(name[:3])] if len(name) >= 2 else []
    return list(dict.fromkeys([*get_close_matches(name, names, 3, 0.6), *begins]))[:3]


def key_bindings() -> list[Binding]:
    """Return the bindings of the commands that have a key."""
    return [
        Binding(
            command.key,
            f"command('{command.name}')",
            command.hint or command.title,
            show=bool(command.hint),
            id=command.name,
        )
        for command in COMMANDS
        if command.key
    ]
