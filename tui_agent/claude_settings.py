"""Claude Code's ``settings.json``: what stands in it, and where. What it means here is for ``agent/programs``.

The layers, weak to strong: the user's, the project's, and the project's local one. Lists are joined; of single values
the strongest counts.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from tui_agent.files.inside import OutsideError, read_file, read_inside
from tui_agent.lazy import dataclass

MAX_BYTES = 1_000_000
USER_FILE = ".claude/settings.json"
PROJECT_FILES = (".claude/settings.json", ".claude/settings.local.json")

ListName = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class ClaudeSettings:
    """One settings file. ``shown`` is its name for people; ``problem`` says why nothing could be read."""

    path: Path
    shown: str
    of_project: bool
    table: Mapping[str, Any]
    text: str = ""
    problem: str = ""

    def rules(self, name: ListName) -> Iterator[str]:
        """Yield the rules of a list of permissions."""
        listed = self.permissions.get(name)
        yield from (str(rule) for rule in listed) if isinstance(listed, list) else ()

    @property
    def permissions(self) -> Mapping[str, Any]:
        return _table(self.table.get("permissions"))

    @property
    def environment(self) -> dict[str, str]:
        return {str(name): str(value) for name, value in _table(self.table.get("env")).items()}

    @property
    def hooks(self) -> Mapping[str, Any]:
        return {} if self.table.get("disableAllHooks") is True else _table(self.table.get("hooks"))

    @property
    def directories(self) -> list[str]:
        listed = self.permissions.get("additionalDirectories")
        return [str(name) for name in listed] if isinstance(listed, list) else []

    def place(self, value: str) -> str:
        """Return the file and the line in which a text stands."""
        written = json.dumps(value, ensure_ascii=False)[1:-1]
        before, found, _rest = self.text.partition(written)
        return f"{self.shown}:{before.count(chr(10)) + 1}" if found else self.shown

    def acting(self) -> Iterator[tuple[str, str, str]]:
        """Yield what acts only once the project is trusted: its kind, name and effect."""
        for rule in self.rules("allow"):
            yield "permission rule", rule, "allow"
        for directory in self.directories:
            yield "permission rule", directory, "a further directory may be read"
        for name, value in self.environment.items():
            yield "environment variable", name, value
        for event, groups in self.hooks.items():
            for command in _commands(groups):
                yield "hook", event, f"runs {command}"


def user_settings(home: Path) -> ClaudeSettings | None:
    path = home / USER_FILE
    return _read(path, f"~/{USER_FILE}", None) if os.path.lexists(path) else None


def project_settings(project: Path, folder: Path) -> Iterator[ClaudeSettings]:
    """Yield the settings files of a directory of the project, weak to strong."""
    for name in PROJECT_FILES:
        path = folder / name
        if os.path.lexists(path):
            found = _read(path, path.relative_to(project).as_posix(), project)
            if found is not None:
                yield found


def _read(path: Path, shown: str, project: Path | None) -> ClaudeSettings | None:
    """Return a settings file, None where there is none; with ``project`` one that leads out of it is not read."""
    try:
        data, _status = read_file(path, MAX_BYTES) if project is None else read_inside(project, path, MAX_BYTES)
        text = data.decode("utf-8-sig")
        table = json.loads(text)
    except FileNotFoundError:
        return None
    except OutsideError as error:
        return ClaudeSettings(path, shown, project is not None, {}, problem=f"left out, as {error.strerror}")
    except (OSError, ValueError, RecursionError) as error:
        return ClaudeSettings(path, shown, project is not None, {}, problem=f"can't be read: {error}")
    if not isinstance(table, dict):
        return ClaudeSettings(path, shown, project is not None, {}, problem="is not a JSON object")
    return ClaudeSettings(path, shown, project is not None, table, text)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _commands(groups: object) -> Iterator[str]:
    for group in groups if isinstance(groups, list) else ():
        hooks = _table(group).get("hooks")
        for hook in hooks if isinstance(hooks, list) else ():
            command = _table(hook).get("command") or _table(hook).get("url") or _table(hook).get("prompt")
            if command:
                yield str(command)
