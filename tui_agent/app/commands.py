"""The table of commands: name, help, default key and handler of each slash command.

Each handler is a function decorated with its row, a `Command`, in a module ``*_commands`` of this
package; there is no other list of commands. The table is read by the prompt (``/name``) and its
completion, the command palette, key bindings, editors, runs without a screen and the help page.
`commands_of` adds the user's own commands and skills. The controller runs the handlers. A file
keeps count of how often each command was used.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tui_agent.app.format import one_line
from tui_agent.files.atomic import write_atomically
from tui_agent.lazy import frozen

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.knowledge.knowledge import CommandRow
    from tui_agent.session.session import Session

log = logging.getLogger(__name__)

Handler = Callable[..., Coroutine[Any, Any, None]]
"""Type of a command's handler: a coroutine function that runs the command.

It is called with the controller and the text after the command's name.
"""

_USES = "commands-used.json"
"""Name of the file that counts the uses of each command; the counts order the help page."""
_ROWS: list[Command] = []
"""Rows of the command table that the modules imported so far have added."""


async def _no_handler(*_given: Any) -> None:
    raise NotImplementedError


@frozen
class Command:
    """A row of the command table.

    Used as a decorator, it adds itself to the table, with the decorated function as its handler.
    """

    name: str
    help: str
    key: str = ""
    """Default keys in Textual's names, separated by commas; "" for none."""
    argument: str = ""
    """The argument as shown in the help, in brackets if it is optional; "" for none."""
    aliases: tuple[str, ...] = ()
    words: str = ""
    """Other words by which to find the command, separated by commas.

    For example, these are purposes, or the command's name in other programs.
    """
    hint: str = ""
    """Label in the footer that lists keys; "" leaves the command out of the footer."""
    needs_screen: bool = False
    """Whether the command needs the full screen; editors and other runs then don't offer it."""
    is_early: bool = False
    """Whether the command works before the session store is open."""
    changes_files: bool = False
    """Whether the command itself can change the project's files, without a run of the agent."""
    is_replaceable: bool = False
    """Whether the user can replace this command by defining one of the same name."""
    now: Callable[[Session], str] = lambda _session: ""
    """Returns the help text for a session's current state; "" to show ``help`` instead."""
    place: int = 1_000
    """Number by which commands are sorted in lists, lowest first.

    Commands without a number of their own come last, sorted by module.
    """
    handler: Handler = _no_handler

    def __call__(self, handler: Handler) -> Handler:
        _ROWS.append(replace(self, handler=handler))
        return handler

    @property
    def needs_argument(self) -> bool:
        """Whether the command requires an argument."""
        return bool(self.argument) and not self.argument.startswith("[")


@cache
def command_table() -> tuple[Command, ...]:
    """Import all modules ``*_commands``, and return the built-in commands, sorted for lists."""
    package = __name__.rpartition(".")[0]
    for path in sorted(Path(__file__).parent.glob("*_commands.py")):
        import_module(f"{package}.{path.stem}")
    return tuple(sorted(_ROWS, key=lambda row: (row.place, row.handler.__module__)))


def key_of(name: str, keymap: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the first key of a command, or ``/name`` if it has no key.

    The user's keys in ``keymap`` replace the default ones.
    """
    command = find(name, command_table())
    keys = keymap.get(name, command.key if command is not None else "")
    return keys.partition(",")[0] or f"/{name}"


def remedy_of(name: str, keymap: Mapping[str, str], label: str = "") -> tuple[str, str, str]:
    """Return a `Remedy`, which offers with a message to run a command by the key from `key_of`.

    If ``label`` is "", the label is the command's name if it has a key, otherwise "".
    """
    key = key_of(name, keymap)
    action = f"screen.command('{name}')"
    if key.startswith("/"):
        return key, label, action
    return key, label or name, action


def is_reserved(name: str) -> bool:
    """Return whether the name is that of a built-in command that users' commands can't replace."""
    return any(row.name == name and not row.is_replaceable for row in command_table())


def commands_of(agent: Agent | None) -> list[Command]:
    """Return the built-in commands, then the user's own commands and skills of the agent's session.

    A user's command replaces a built-in command of the same name only if the built-in one
    ``is_replaceable``. Without an agent, returns only the built-in commands.
    """
    table = command_table()
    if agent is not None:
        own = _own_rows(agent.commands())
    else:
        own = ()
    names = {row.name for row in own}
    kept: list[Command] = []
    for row in table:
        if not (row.is_replaceable and row.name in names):
            kept.append(_without_aliases(_with_current_help(row, agent), names))
    taken = {row.name for row in kept}
    return kept + [row for row in own if row.name not in taken]


def _without_aliases(row: Command, names: AbstractSet[str]) -> Command:
    """Return ``row`` without the aliases in ``names``, the names of the user's own commands."""
    left = tuple(name for name in row.aliases if name not in names)
    if left == row.aliases:
        return row
    return replace(row, aliases=left)


def _with_current_help(row: Command, agent: Agent | None) -> Command:
    """Return ``row`` with the help text that fits the session's current state, if it has one."""
    from tui_agent.session.errors import StoreError

    try:
        if agent is None:
            help_now = ""
        else:
            help_now = row.now(agent.session)
    except StoreError:
        help_now = ""
    if help_now:
        return replace(row, help=help_now)
    return row


@lru_cache(maxsize=2)
def _own_rows(found: tuple[CommandRow, ...]) -> tuple[Command, ...]:
    return tuple(map(_own_row, found))


def _own_row(row: CommandRow) -> Command:
    complaint = f"There is no command /{row.name} any more."
    return Command(
        row.name,
        one_line(row.description, 100),
        argument=row.argument,
        handler=lambda controller, arguments: controller.outbox.send_command(
            row.name, arguments, complaint
        ),
    )


def find(name: str, commands: Iterable[Command]) -> Command | None:
    for command in commands:
        if name == command.name or name in command.aliases:
            return command
    return None


async def built_in(name: str, agent: Agent | None) -> Command | None:
    """Return the built-in command with this name or alias.

    Returns None if there is no such command, or if one of the user's own commands replaces it in
    the agent's session.
    """
    command = find(name, command_table())
    if command is None or agent is None:
        return command
    if not command.is_replaceable and name == command.name:
        return command
    await asyncio.to_thread(agent.ports.knowledge.load)
    if any(row.name == name for row in agent.commands()):
        return None
    return command


def command_uses(folder: Path) -> Counter[str]:
    """Return how often each command was used, by name; empty if the file can't be read."""
    try:
        found = json.loads((folder / _USES).read_text(encoding="utf-8"))
        return Counter({str(name): int(count) for name, count in found.items()})
    except (OSError, ValueError, AttributeError, TypeError):
        return Counter()


def count_use(folder: Path, name: str) -> None:
    """Count one use of a command; a failure to write the count is only logged."""
    found = command_uses(folder)
    found[name] += 1
    try:
        write_atomically(folder / _USES, json.dumps(found).encode())
    except OSError as error:
        log.info("the use of /%s can't be counted: %s", name, error)
