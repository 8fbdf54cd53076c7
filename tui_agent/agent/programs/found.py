"""Types and helpers for the modules that read other programs' settings (``codex``, ``pi``, …).

Every setting found becomes an item that says which file it is in and whether this program uses it.
Each program's module decides the state of its items; this module reads files and combines their
results.
"""

import json
import os
import shlex
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any

from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.permissions import Action, Rule
from tui_agent.foreign_file import ForeignFile, read_foreign, read_of_user
from tui_agent.lazy import frozen
from tui_agent.session.effort import Effort

_GROUPS = {
    "allow rule": "permissions",
    "ask rule": "permissions",
    "deny rule": "permissions",
    "directory": "permissions",
    "environment variable": "environment",
    "MCP server": "servers",
    "hook": "hooks",
    "instructions": "instructions",
    "command": "commands",
    "agent": "agents",
    "output style": "output-styles",
    "skill": "skills",
}
"""The group of each kind of item. The setting ``leave_out`` excludes items by group."""
_WEAK_TO_FIRM = (Action.ALLOW, Action.ASK, Action.DENY)
"""The order in which rules are sorted by their actions. A later rule overrides earlier ones."""


class ItemState(StrEnum):
    """Says whether this program uses an item and, if not, why."""

    ACTIVE = "in use"
    HELD_BACK = "waits until you trust the project"
    LEFT_OUT = "left out by your settings"
    WITHOUT_EFFECT = "no effect here"


@frozen
class FoundItem:
    """One setting or file of another program, and whether this program uses it.

    ``kind`` is a word for screens ("deny rule"), ``place`` the file and perhaps the line. ``why`` is a
    reason or advice, such as how to get the effect in this program; "" if there is none.
    """

    program: str
    kind: str
    name: str
    place: str
    state: ItemState
    why: str = ""

    @property
    def group(self) -> str:
        """The group by which the setting ``leave_out`` can exclude the item; "" if it has none."""
        return _GROUPS.get(self.kind, "")


@frozen
class ForeignSettings:
    """Settings of other programs, converted to settings of this program.

    ``environment`` holds variables for commands. ``instructions`` are paths and globs, as in this
    program's setting of that name. ``items`` lists every setting found, including those without
    effect.
    """

    rules: tuple[Rule, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    instructions: tuple[str, ...] = ()
    items: tuple[FoundItem, ...] = ()


@frozen
class ModelOffer:
    """A model or provider that another program uses, and the setting that would set it up here.

    ``key`` is the setting's name, ``table`` its value. ``leaves_key`` is True if the file contains
    an API key, which is not copied.
    """

    program: str
    kind: str
    name: str
    key: str
    table: Mapping[str, Any]
    leaves_key: bool = False

    @classmethod
    def of(
        cls, program: str, model: str, table: Mapping[str, Any], *, key_written: object = ""
    ) -> "ModelOffer":
        """Return the offer to set up a model; ``model`` is the id that it has in this program.

        ``key_written`` is the API key in the file.
        """
        return cls(
            program,
            "model",
            model.partition("/")[2],
            f"models.{quoted_key(model)}",
            table,
            leaves_key=bool(key_written) and "api_key_env" not in table,
        )

    @property
    def model(self) -> str:
        """This program's id of the model, such as ``openai/NAME``."""
        return str(json.loads(self.key.partition(".")[2]))

    def item(self, file: ForeignFile) -> FoundItem:
        """Return an item that lists this offer and names the command that sets up the model."""
        why = set_table_command(self.key, self.table)
        if self.leaves_key:
            why += "; its API key is not copied: add api_key_env, if the server needs one"
        place = file.place(self.name)
        return without_effect(self.program, self.kind, self.name, place=place, why=why)


def settings_files(
    folders: Folders, of_user: Iterable[str], of_project: Sequence[str]
) -> Iterator[ForeignFile]:
    """Yield a program's existing settings files. Later files override earlier ones.

    The user's files come first, then the project's files, from its root to the working directory.
    ``of_user`` are paths relative to the home directory, ``of_project`` paths relative to each of
    the project's directories.
    """
    for name in of_user:
        if (file := read_of_user(folders.home, name)) is not None:
            yield file
    for folder in reversed(folders.upward()):
        for name in of_project:
            path = folder / name
            if os.path.lexists(path):
                file = read_foreign(path, folders.name(path), folders.project)
                if file is not None:
                    yield file


def without_effect(program: str, kind: str, name: str, *, place: str, why: str) -> FoundItem:
    """Return a `FoundItem` in the state ``WITHOUT_EFFECT``; ``why`` may be ""."""
    return FoundItem(program, kind, name, place, state=ItemState.WITHOUT_EFFECT, why=why)


def effort_command(level: Any) -> str:
    """Return the command that sets another program's effort here; "" for an unknown level."""
    try:
        return set_command("effort", str(Effort(level)))
    except ValueError:
        return ""


def set_command(key: str, value: str) -> str:
    """Return the shell command that changes a setting of this program."""
    return f"tui-agent config set {shlex.quote(key)} {shlex.quote(value)}"


def set_table_command(key: str, row: Mapping[str, Any]) -> str:
    """Return the shell command that sets a table of this program's settings."""
    return set_command(key, _inline_table(row))


def quoted_key(name: str) -> str:
    """Return a part of a setting's name, in quotes if TOML needs them."""
    if name.isascii() and name.isidentifier():
        return name
    return json.dumps(name, ensure_ascii=False)


def _inline_table(row: Mapping[str, Any]) -> str:
    parts = []
    for name, value in row.items():
        if isinstance(value, Mapping):
            written = _inline_table(value)
        else:
            written = json.dumps(value, ensure_ascii=False)
        parts.append(f"{quoted_key(name)} = {written}")
    return "{ " + ", ".join(parts) + " }"


def unreadable(program: str, file: ForeignFile) -> Iterator[FoundItem]:
    """Yield an item without effect if a settings file can't be read, otherwise no item."""
    if file.problem:
        yield without_effect(program, "settings", file.shown, place=file.shown, why=file.problem)


def unused_settings(
    program: str, file: ForeignFile, read: Container[str], *, instead: Mapping[str, str]
) -> Iterator[FoundItem]:
    """Yield an item without effect for each top-level setting of a file that is not in ``read``.

    ``instead`` maps settings to advice on how to get their effect in this program.
    """
    for key in file.table:
        if key not in read:
            why = instead.get(key, "")
            yield without_effect(program, "setting", key, place=file.place(key), why=why)


def joined(settings: Sequence[ForeignSettings]) -> ForeignSettings:
    """Return several settings combined; of variables with the same name, the last one is kept.

    Rules are sorted by action (allow, ask, deny), so that a denial overrides the others.
    """
    rules: list[Rule] = []
    environment: dict[str, str] = {}
    instructions: list[str] = []
    items: list[FoundItem] = []
    for one in settings:
        rules += one.rules
        environment |= one.environment
        instructions += one.instructions
        items += one.items
    rules.sort(key=_firmness)
    return ForeignSettings(tuple(rules), environment, tuple(instructions), items=tuple(items))


def _firmness(rule: Rule) -> int:
    return _WEAK_TO_FIRM.index(rule.action)
