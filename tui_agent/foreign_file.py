"""Reads another program's settings file, and finds the line of a name in it."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tui_agent.files.inside import OutsideError, read_file, read_inside
from tui_agent.files.stamps import Stamp, settled_stamp
from tui_agent.json_text import loads, table_in
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.places import in_home, shown_in_home
from tui_agent.text_files.encodings import settings_text

MAX_BYTES = 20_000_000
"""Maximum size of a user's file, in bytes: Claude Code's has its history beside its servers."""

MAX_PROJECT_BYTES = 256_000
"""Maximum size of a project's file, in bytes: anybody may have written it, and each of its rules takes
time at each call."""

# What is never closed goes to the end, so that each character is looked at once.
_COMMENTED = LazyPattern(r'("(?:\\.|[^"\\])*+(?:"|\\?\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = LazyPattern(r'("(?:\\.|[^"\\])*+(?:"|\\?\Z))|,(?=\s*[}\]])', re.DOTALL)


@frozen
class ForeignFile:
    """The contents of a settings file.

    ``shown`` is the file's name for people; ``problem`` says why it can't be read, "" if it can.
    """

    path: Path
    shown: str
    of_project: bool
    table: Mapping[str, Any]
    text: str = ""
    problem: str = ""

    def section(self, *keys: str) -> Mapping[str, Any]:
        """Return the table that nested keys lead to, or an empty one if there is none."""
        return table_in(self.table, *keys)

    def place(self, name: str) -> str:
        """Return ``FILE:LINE`` of the first place where a name or text is written in the file.

        Returns the file alone for "" and for a name that isn't found.
        """
        if not name:
            return self.shown
        written = json.dumps(name, ensure_ascii=False)[1:-1]
        before, found, _rest = self.text.partition(written)
        if found:
            return f"{self.shown}:{before.count(chr(10)) + 1}"
        return self.shown


def read_foreign(path: Path, shown: str, project: Path | None = None) -> ForeignFile | None:
    """Read a TOML file, or a JSON file, which may have comments; returns None if there is no file.

    A file that hasn't changed is not read again. ``project`` is given for a project's file, which
    is not read if a link leads out of the project.
    """
    if not os.path.lexists(path):
        return None
    stamp = settled_stamp(path)
    if stamp is None or stamp.size > MAX_PROJECT_BYTES:
        return _read(path, shown, project)
    return _read_once(path, shown, project, stamp)


@lru_cache(maxsize=200)
def _read_once(path: Path, shown: str, project: Path | None, _stamp: Stamp) -> ForeignFile | None:
    return _read(path, shown, project)


def _read(path: Path, shown: str, project: Path | None) -> ForeignFile | None:
    of_project = project is not None
    try:
        text = _text(path, project)
        if path.suffix == ".toml":
            table = _toml(text)
        else:
            table = _json(text)
    except FileNotFoundError:
        return None
    except OutsideError as error:
        return ForeignFile(path, shown, of_project, {}, problem=f"left out, as {error.strerror}")
    except (OSError, ValueError) as error:
        return ForeignFile(path, shown, of_project, {}, problem=f"can't be read: {error}")
    if not isinstance(table, dict):
        return ForeignFile(path, shown, of_project, {}, problem="holds no table")
    return ForeignFile(path, shown, of_project, table, text)


def read_of_user(home: Path, name: str) -> ForeignFile | None:
    """Read the user's file whose usual place in the home directory is ``name``; None if there is none."""
    path = in_home(home, name)
    if not os.path.lexists(path):
        return None
    return read_foreign(path, shown_in_home(home, path))


def _text(path: Path, project: Path | None) -> str:
    if project is None:
        return settings_text(read_file(path, MAX_BYTES)[0])
    data, status = read_inside(project, path, MAX_PROJECT_BYTES)
    if status.st_size > MAX_PROJECT_BYTES:
        raise ValueError(f"it has more than {MAX_PROJECT_BYTES:,} bytes")
    return settings_text(data)


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _json(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        plain = _COMMENTED.sub(lambda found: found[1] or " ", text)
        return loads(_TRAILING_COMMA.sub(lambda found: found[1] or "", plain))
