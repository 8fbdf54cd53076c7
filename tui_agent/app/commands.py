"""The one table of commands: name, help, key, palette entry and handler of everything the user can ask for.

A command is a handler with its row over it, in a module ``…_commands`` of this package; nothing
else lists it. The prompt (``/name``), its completion, the command palette, key bindings, editors,
runs without a screen and the help page read the table.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
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
"""Called with the controller and the text after the name."""

_USES = "commands-used.json"
"""A file of its own, so that lists begin with this user's commands."""


async def _no_handler(*_given: Any) -> None:
    raise NotImplementedError


@frozen
class Command:
    """One row of the table; as a decorator it takes its handler."""

    name: str
    help: str
    key: str = ""
    """Keys as Textual names them, separated by commas."""
    argument: str = ""
    """How the argument is written in the help, in brackets when it may be left out."""
    aliases: tuple[str, ...] = ()
    words: str = ""
    """Other words it is looked for by, separated by commas: what one wants, or calls it elsewhere."""
    hint: str = ""
    """Label in the line of keys; empty keys are not shown there."""
    needs_screen: bool = False
    """Whether it is of no use where there is no screen of ours: in an editor, in a run without
    one."""
    is_early: bool = False
    """Whether it works before the store is open, in the first moments of the program."""
    yields: bool = False
    """Whether a command of the user's own with its name counts instead."""
    now: Callable[[Session], str] = lambda _session: ""
    """Describes its effect in the session as it is, in place of ``help``; "" for nothing more
    exact."""
    place: int = 1_000
    """Lists show commands by ascending place; those without one come last, by their module."""
    handler: Handler = _no_handler

    def __call__(self, handler: Handler) -> Handler:
        _ROWS.append(replace(self, handler=handler))
        return handler

    @property
    def takes_argument(self) -> bool:
        """Whether it is useless without an argument."""
        return bool(self.argument) and not self.argument.startswith("[")


_ROWS: list[Command] = []
"""The rows of the modules that are imported."""


@cache
def command_table() -> tuple[Command, ...]:
    """Return every command of the program: those of the modules of this package named ``…_commands``."""
    package = __name__.rpartition(".")[0]
    for path in sorted(Path(__file__).parent.glob("*_commands.py")):
        import_module(f"{package}.{path.stem}")
    return tuple(sorted(_ROWS, key=lambda row: (row.place, row.handler.__module__)))


def remedy_of(name: str, keymap: Mapping[str, str], label: str = "") -> tuple[str, str, str]:
    """Return key, label and action of a remedy that is a command; one without a key is named."""
    command = find(name, command_table())
    key = keymap.get(name, command.key if command is not None else "")
    action = f"screen.command('{name}')"
    if key:
        return key, label or name, action
    return f"/{name}", label, action


def commands_of(agent: Agent | None) -> list[Command]:
    """Return the commands of a session: the table's, then the user's own and the skills."""
    table = command_table()
    if agent is not None:
        own = _own_rows(agent.commands())
    else:
        own = ()
    names = {row.name for row in own}
    kept: list[Command] = []
    for row in table:
        if not (row.yields and row.name in names):
            kept.append(_without_aliases(_as_now(row, agent), names))
    taken = {row.name for row in kept}
    return kept + [row for row in own if row.name not in taken]


def _without_aliases(row: Command, names: AbstractSet[str]) -> Command:
    """Return a row without the other names that the user gave to commands of their own."""
    left = tuple(name for name in row.aliases if name not in names)
    if left == row.aliases:
        return row
    return replace(row, aliases=left)


def _as_now(row: Command, agent: Agent | None) -> Command:
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


def command_uses(folder: Path) -> Counter[str]:
    """Return how often each command was used; nothing where that is not known."""
    try:
        found = json.loads((folder / _USES).read_text(encoding="utf-8"))
        return Counter({str(name): int(count) for name, count in found.items()})
    except (OSError, ValueError, AttributeError, TypeError):
        return Counter()


def count_use(folder: Path, name: str) -> None:
    """Count a use of a command; one that can't be written down costs nothing else."""
    found = command_uses(folder)
    found[name] += 1
    try:
        write_atomically(folder / _USES, json.dumps(found).encode())
    except OSError as error:
        log.info("The use of /%s is not counted: %s", name, error)
