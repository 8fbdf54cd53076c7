"""The one table of commands: name, help, key, palette entry and handler of everything the user can ask for.

The prompt (``/name``), its completion, the command palette, key bindings, editors and the help page read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from tui_agent.app import (
    context_commands,
    conversation_search,
    copying,
    effort_commands,
    knowledge_commands,
    login_commands,
    permission_commands,
    planning,
    prompt_history,
    report_commands,
    reviewing,
    rewinding,
    session_commands,
    status,
    subagent_commands,
    transfer_commands,
    undo,
)
from tui_agent.app.format import one_line

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.knowledge.knowledge import CommandRow
    from tui_agent.app.desk import Desk

Handler = Callable[["Desk", str], Coroutine[Any, Any, None]]


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
    hint: str = ""
    """Label in the line of keys; empty keys are not shown there."""
    needs_screen: bool = False
    """Whether it is of no use where there is no screen of ours: in an editor, in a run without one."""

    @property
    def takes_argument(self) -> bool:
        """Whether it is useless without an argument."""
        return bool(self.argument) and not self.argument.startswith("[")


COMMANDS: tuple[Command, ...] = (
    Command("new", "begin a new session", session_commands.new, "New session", key="ctrl+n", needs_screen=True),
    Command(
        "clear",
        "begin a new session; this one is kept",
        session_commands.clear,
        "Clear the conversation",
        argument="[NAME OF THIS ONE]",
        needs_screen=True,
    ),
    Command(
        "sessions",
        "open another session",
        session_commands.sessions,
        "Sessions",
        key="ctrl+s",
        argument="[ID]",
        aliases=("resume",),
        needs_screen=True,
    ),
    Command(
        "tree",
        "show all branches of this session",
        session_commands.tree,
        "Session tree",
        key="ctrl+t",
        needs_screen=True,
    ),
    Command(
        "parent", "open the session this one came from", subagent_commands.parent, "Parent session", needs_screen=True
    ),
    Command("fork", "continue in a copy of this session", session_commands.fork, "Fork session"),
    Command("rename", "give this session a title", session_commands.rename, "Rename session", argument="[TITLE]"),
    Command(
        "export",
        "write this session to a file: md, html, jsonl",
        transfer_commands.export,
        "Export session",
        argument="[FILE]",
    ),
    Command(
        "import",
        "import sessions, including those of other agents",
        transfer_commands.import_,
        "Import sessions",
        argument="[FILE]",
        needs_screen=True,
    ),
    Command("label", "label where you are, to find it in /tree", session_commands.label, "Label", argument="[TEXT]"),
    Command("model", "use another model", session_commands.model, "Model", key="f2", argument="[ID]"),
    Command(
        "login",
        "enter a provider's key",
        login_commands.login,
        "Log in",
        argument="[PROVIDER]",
        needs_screen=True,
    ),
    Command(
        "logout",
        "remove a key that was entered with /login",
        login_commands.logout,
        "Log out",
        argument="[PROVIDER]",
        needs_screen=True,
    ),
    Command(
        "effort", "choose how much the model thinks", effort_commands.effort, "Effort", key="f9", argument="[LEVEL]"
    ),
    Command(
        "mode",
        "choose what runs without asking",
        permission_commands.mode,
        "Mode",
        key="shift+tab",
        argument="[NAME]",
    ),
    Command("plan", "carry out the plan, change it, or begin one", planning.plan, "Plan", argument="[build|auto-edit]"),
    Command(
        "permissions",
        "show what is allowed, asked and denied, and why",
        permission_commands.permissions,
        "Permissions",
        needs_screen=True,
    ),
    Command("rewind", "go back to before one of your messages", rewinding.rewind, "Rewind"),
    Command("undo", "undo the last turn, move, compaction or prune", undo.undo, "Undo", key="f5"),
    Command("redo", "undo the last /undo", undo.redo, "Redo", key="f6"),
    Command("retry", "send the last request again", session_commands.retry, "Retry", key="f8"),
    Command(
        "history",
        "find what you sent before in this project",
        prompt_history.history,
        "Earlier messages",
        key="ctrl+r",
        needs_screen=True,
    ),
    Command(
        "compact",
        "summarise the history, or what is before #N",
        context_commands.compact,
        "Compact",
        key="f4",
        argument="[#N] [FOCUS]",
    ),
    Command("prune", "replace old tool outputs by placeholders", context_commands.prune, "Prune"),
    Command(
        "context",
        "show what fills the context window",
        context_commands.context,
        "Context window",
        key="ctrl+g",
        needs_screen=True,
    ),
    Command("skills", "list the skills the agent can load", knowledge_commands.skills, "Skills"),
    Command(
        "mcp",
        "show MCP servers: state, tools, log, login",
        knowledge_commands.mcp,
        "MCP servers",
        argument="[reload]",
        needs_screen=True,
    ),
    Command(
        "agent",
        "switch to another agent",
        knowledge_commands.agent,
        "Agent",
        argument="[NAME]",
    ),
    Command(
        "init",
        "write AGENTS.md from looking at the project",
        knowledge_commands.init,
        "Write AGENTS.md",
        argument="[HINT]",
    ),
    Command(
        "panel",
        "show or hide tree, to-dos, files and jobs",
        context_commands.panel,
        "Side panel",
        key="ctrl+b",
        needs_screen=True,
    ),
    Command(
        "review",
        "have changes reviewed: uncommitted, a branch, a commit",
        reviewing.review,
        "Review",
        argument="[BRANCH|COMMIT|list]",
    ),
    Command("find", "search this conversation", conversation_search.find, "Find", key="ctrl+f", argument="[TEXT]"),
    Command("status", "show model, mode, sandbox, context and cost on one page", status.status, "Status"),
    Command("diff", "show what changed in files since the session began", status.diff, "Changes", argument="[#ENTRY]"),
    Command("jobs", "show background jobs, their output, and stop them", status.jobs, "Jobs", argument="[stop N]"),
    Command("cost", "show tokens and dollars spent", report_commands.cost, "Cost"),
    Command("todo", "show the model's plan: what is done, what is next", report_commands.todo, "To-do list"),
    Command(
        "copy",
        "copy the last answer, its code, all, or #12",
        copying.copy,
        "Copy last answer",
        key="f3",
        argument="[WHAT]",
        needs_screen=True,
    ),
    Command("theme", "change the colours", session_commands.theme, "Theme", argument="[NAME]", needs_screen=True),
    Command(
        "settings",
        "show and change every setting",
        context_commands.settings,
        "Settings",
        argument="[reload]",
        needs_screen=True,
    ),
    Command("help", "show commands and keys", report_commands.show_help, "Help", key="f1", hint="help"),
    Command("keys", "show the keys, and the names to change them by", report_commands.keys, "Keys", needs_screen=True),
    Command("doctor", "check the setup and show warnings", report_commands.doctor, "Doctor"),
    Command("quit", "quit the program", session_commands.leave, "Quit", aliases=("exit",), needs_screen=True),
)
"""In the order lists show them."""


def commands_of(agent: Agent | None) -> list[Command]:
    """Return the commands of a session: the table's, then the user's own and the skills."""
    own = _own_rows(agent.commands()) if agent is not None else ()
    return [*COMMANDS, *(row for row in own if row.name not in _NAMES)]


_NAMES = frozenset(name for row in COMMANDS for name in (row.name, *row.aliases))


@lru_cache(maxsize=2)
def _own_rows(found: tuple[CommandRow, ...]) -> tuple[Command, ...]:
    """Return rows of the table for commands of the user's own."""
    return tuple(
        Command(
            row.name,
            one_line(row.description, 100),
            partial(knowledge_commands.own_command, row.name),
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
