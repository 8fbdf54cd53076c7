"""What another program's files hold: each thing with its place, and whether it counts here."""

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
"""The group of each kind."""
_WEAK_TO_FIRM = (Action.ALLOW, Action.ASK, Action.DENY)


class ItemState(StrEnum):
    """Whether something counts here."""

    ACTIVE = "in use"
    HELD_BACK = "waits until you trust the project"
    LEFT_OUT = "left out by your settings"
    WITHOUT_EFFECT = "no effect here"


@frozen
class FoundItem:
    """One thing in a file of another program.

    ``kind`` is a word for it (``permission rule``), ``place`` its file and line, ``why`` the reason
    it has no effect or the way to get one.
    """

    program: str
    kind: str
    name: str
    place: str
    state: ItemState
    why: str = ""

    @property
    def group(self) -> str:
        """The group by which the user may leave it out, "" for none."""
        return _GROUPS.get(self.kind, "")


@frozen
class ForeignSettings:
    """Settings of other programs in our forms.

    ``environment`` is for commands. ``instructions`` are files and globs, as in the setting of that
    name.
    """

    rules: tuple[Rule, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    instructions: tuple[str, ...] = ()
    items: tuple[FoundItem, ...] = ()


def settings_files(
    folders: Folders, of_user: Iterable[str], of_project: Sequence[str]
) -> Iterator[ForeignFile]:
    """Yield a program's settings files that are there, weak to strong: those nearest to where one works last."""
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
    """Return something that does not count here; ``why`` may be ""."""
    return FoundItem(program, kind, name, place, state=ItemState.WITHOUT_EFFECT, why=why)


def unreadable(program: str, file: ForeignFile) -> Iterator[FoundItem]:
    """Yield a settings file that can't be read; nothing where it can."""
    if file.problem:
        yield without_effect(program, "settings", file.shown, place=file.shown, why=file.problem)


def unused_settings(
    program: str, file: ForeignFile, read: Container[str], *, instead: Mapping[str, str]
) -> Iterator[FoundItem]:
    """Yield the settings of a file that are not among those ``read``.

    ``instead`` says the way here.
    """
    for key in file.table:
        if key not in read:
            why = instead.get(key, "")
            yield without_effect(program, "setting", key, place=file.place(key), why=why)


def joined(settings: Sequence[ForeignSettings]) -> ForeignSettings:
    """Return several programs' settings as one; of two variables with one name the last counts.

    The last rule that matches decides: one program's question must not overrule another's denial.
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
