"""Reads Claude Code's ``settings.json`` files; ``agent/programs`` decides how the settings apply here.

Yields one `ClaudeSettings` for each file, from weakest to strongest: the machine's, the user's, the
project's, and the project's local file. (In Claude Code itself, the machine's file is the
strongest.) The callers combine them, and ask `tui_agent.trust` whether a project's files may be
used.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from tui_agent.foreign_file import ForeignFile, read_foreign, read_of_user
from tui_agent.json_text import as_list, objects
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.places import MANAGED

USER_FILE = ".claude/settings.json"
PROJECT_FILES = (".claude/settings.json", ".claude/settings.local.json")

_UNSETTABLE = LazyPattern("[\0\ud800-\udfff]")
"""Matches characters that an environment variable can't contain."""

ListName = Literal["allow", "ask", "deny"]


@frozen
class ClaudeSettings:
    """A ``settings.json`` file of Claude Code. The properties are the settings used here."""

    file: ForeignFile

    def rules(self, name: ListName) -> Iterator[str]:
        """Yield the permission rules in the list ``name``, as unparsed text."""
        return _texts(self.file.section("permissions").get(name))

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables to set for commands, except those that the system doesn't accept."""
        given = {str(name): str(value) for name, value in self.file.section("env").items()}
        return {name: value for name, value in given.items() if _is_settable(name, value)}

    @property
    def hooks(self) -> Mapping[str, Any]:
        """The hook groups by event; empty if the file disables all hooks."""
        if self.file.table.get("disableAllHooks") is True:
            return {}
        return self.file.section("hooks")

    @property
    def switched_off(self) -> list[str]:
        """Names of the MCP servers in ``.mcp.json`` that this file disables."""
        return list(_texts(self.file.table.get("disabledMcpjsonServers")))

    @property
    def directories(self) -> list[str]:
        return list(_texts(self.file.section("permissions").get("additionalDirectories")))

    def acting(self) -> Iterator[tuple[str, str, str]]:
        """Yield the settings that need the user's trust if they are in a project's file.

        Each is a tuple of kind, name and effect, which are texts for the user. These settings are
        the allow rules, additional directories, environment variables and hooks.
        """
        for rule in self.rules("allow"):
            yield "permission rule", rule, "allow"
        for directory in self.directories:
            yield "permission rule", directory, "the agent may read this directory"
        for name, value in self.environment.items():
            yield "environment variable", name, value
        for event, groups in self.hooks.items():
            for row in hook_rows(groups):
                yield "hook", event, effect_of_hook(row)


def user_settings(home: Path) -> Iterator[ClaudeSettings]:
    """Yield the settings for all users of the machine, then the user's own; skip missing files."""
    managed = Path(MANAGED, "managed-settings.json")
    for file in (read_foreign(managed, managed.as_posix()), read_of_user(home, USER_FILE)):
        if file is not None:
            yield ClaudeSettings(file)


def project_settings(project: Path, folder: Path) -> Iterator[ClaudeSettings]:
    """Yield the settings files in ``folder``, a directory of the project; the local one comes last.

    Missing files are skipped.
    """
    for name in PROJECT_FILES:
        path = folder / name
        file = read_foreign(path, path.relative_to(project).as_posix(), project)
        if file is not None:
            yield ClaudeSettings(file)


def effect_of_hook(row: Mapping[str, Any]) -> str:
    """Return a phrase that tells the user what a hook does.

    The phrase is ``runs COMMAND`` or ``asks the small model: QUESTION``.
    """
    if question := row.get("prompt"):
        return f"asks the small model: {question}"
    return f"runs {row.get('command') or row.get('url') or row.get('type')}"


def _is_settable(name: str, value: str) -> bool:
    """Return True if the system accepts an environment variable with this name and value."""
    return bool(name) and "=" not in name and not _UNSETTABLE.search(name + value)


def _texts(value: object) -> Iterator[str]:
    return map(str, as_list(value))


def hook_rows(groups: object) -> Iterator[Mapping[str, Any]]:
    """Yield the hooks for one event; ``groups`` is the event's value in Claude Code's settings.

    Anything that is not an object is skipped.
    """
    for group in objects(groups):
        yield from objects(group.get("hooks"))
