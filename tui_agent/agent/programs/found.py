"""Items found in other programs' files: each with its place, and whether it is used.

The readers of the programs (``claude_code``, ``codex``, ``opencode``) produce them.
"""

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.permissions import Action, Rule
from tui_agent.foreign_file import ForeignFile, read_foreign, read_of_user
from tui_agent.lazy import frozen

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
"""The group of each kind of item, by which the user's settings can exclude it."""
_WEAK_TO_FIRM = (Action.ALLOW, Action.ASK, Action.DENY)
"""The actions of rules in the order in which they must be applied."""


class ItemState(StrEnum):
    """Whether an item is used by this program."""

    ACTIVE = "in use"
    HELD_BACK = "waits until you trust the project"
    LEFT_OUT = "left out by your settings"
    WITHOUT_EFFECT = "no effect here"


@frozen
class FoundItem:
    """One item in a file of another program.

    ``kind`` is a word for screens (``deny rule``), ``place`` the file and line. ``why`` is the
    reason why it has no effect, or how to get its effect; "" for none.
    """

    program: str
    kind: str
    name: str
    place: str
    state: ItemState
    why: str = ""

    @property
    def group(self) -> str:
        """The group by which the user's settings can exclude it; "" for none."""
        return _GROUPS.get(self.kind, "")


@frozen
class ForeignSettings:
    """Settings of other programs, converted to ours, with a list of all ``items``.

    ``environment`` holds variables for commands. ``instructions`` are paths and globs, as in our
    setting of that name.
    """

    rules: tuple[Rule, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    instructions: tuple[str, ...] = ()
    items: tuple[FoundItem, ...] = ()


def settings_files(
    folders: Folders, of_user: Iterable[str], of_project: Sequence[str]
) -> Iterator[ForeignFile]:
    """Yield the settings files of a program that exist, those with precedence last.

    First come the user's, then the project's, from its root to the working directory. ``of_user``
    and ``of_project`` are paths relative to home and to a directory.
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
    """Return an item in the state ``WITHOUT_EFFECT``; ``why`` may be ""."""
    return FoundItem(program, kind, name, place, state=ItemState.WITHOUT_EFFECT, why=why)


def unreadable(program: str, file: ForeignFile) -> Iterator[FoundItem]:
    """Yield an item for a settings file if it can't be read."""
    if file.problem:
        yield without_effect(program, "settings", file.shown, place=file.shown, why=file.problem)


def unused_settings(
    program: str, file: ForeignFile, read: Container[str], *, instead: Mapping[str, str]
) -> Iterator[FoundItem]:
    """Yield an item for each setting of a file that is not in ``read``.

    ``instead`` says, by setting, how to get its effect in this program.
    """
    for key in file.table:
        if key not in read:
            why = instead.get(key, "")
            yield without_effect(program, "setting", key, place=file.place(key), why=why)


def joined(settings: Sequence[ForeignSettings]) -> ForeignSettings:
    """Return the settings of several programs as one; a later variable replaces an earlier one.

    Rules are sorted so that denials come last and decide, whichever program they are from.
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
