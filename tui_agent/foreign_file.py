"""Reads settings files of other coding agents (TOML or JSON); finds the line where a name occurs.

The contents of a small file are cached until the file changes.
"""

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
"""Maximum size of a user's settings file, in bytes. It is large, because Claude Code's file also
contains the history."""

MAX_PROJECT_BYTES = 256_000
"""Maximum size of a settings file in a project, in bytes. It is smaller than that of the user's
files, because a stranger may have written the file and each rule in it takes time at every tool
call."""

# The patterns also match an unclosed string or comment, up to the end of the text, so that matching
# takes linear time.
_COMMENTED = LazyPattern(r'("(?:\\.|[^"\\])*+(?:"|\\?\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = LazyPattern(r'("(?:\\.|[^"\\])*+(?:"|\\?\Z))|,(?=\s*[}\]])', re.DOTALL)


@frozen
class ForeignFile:
    """A settings file of another program, with its contents parsed (``table``) and as ``text``.

    ``shown`` is the file's path as shown to users; ``of_project`` is False for a user's file.
    ``problem`` says why the file can't be used ("can't be read: …"), "" if it can; with a problem,
    ``table`` and ``text`` are empty.
    """

    path: Path
    shown: str
    of_project: bool
    table: Mapping[str, Any]
    text: str = ""
    problem: str = ""

    def section(self, *keys: str) -> Mapping[str, Any]:
        """Return the table at the nested ``keys``; if there is none, an empty table."""
        return table_in(self.table, *keys)

    def place(self, name: str) -> str:
        """Return the place in the file where a name or text first occurs, as ``FILE:LINE``.

        Returns just ``FILE`` for "" and for a name that isn't found.
        """
        if not name:
            return self.shown
        written = json.dumps(name, ensure_ascii=False)[1:-1]
        before, found, _rest = self.text.partition(written)
        if found:
            return f"{self.shown}:{before.count(chr(10)) + 1}"
        return self.shown


def read_foreign(path: Path, shown: str, project: Path | None = None) -> ForeignFile | None:
    """Read a settings file of another program: TOML, or JSON, which may contain comments.

    Returns None if the file does not exist. A file that can't be read or parsed is returned with a
    ``problem``. Pass ``project`` for a project's file, which is not read if it is outside the
    project or larger than `MAX_PROJECT_BYTES`. A file of at most this size is read again only after
    it has changed. Codex's ``.rules`` files are not parsed.
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
        elif path.suffix == ".rules":
            # Codex's rules are no table: the caller parses ``text``.
            table = {}
        else:
            table = _json(text)
    except FileNotFoundError:
        return None
    except OutsideError as error:
        return ForeignFile(path, shown, of_project, {}, problem=f"left out, as {error.strerror}")
    except (OSError, ValueError) as error:
        return ForeignFile(path, shown, of_project, {}, problem=f"can't be read: {error}")
    if not isinstance(table, dict):
        return ForeignFile(path, shown, of_project, {}, problem="is not a JSON object")
    return ForeignFile(path, shown, of_project, table, text)


def read_of_user(home: Path, name: str) -> ForeignFile | None:
    """Read the file ``name`` below the user's home directory; return None if it doesn't exist.

    An environment variable of the program that owns the file may move it to another directory
    (`tui_agent.places.in_home`).
    """
    path = in_home(home, name)
    if not os.path.lexists(path):
        return None
    return read_foreign(path, shown_in_home(home, path))


def _text(path: Path, project: Path | None) -> str:
    if project is None:
        most = MAX_BYTES
        data, status = read_file(path, most)
    else:
        most = MAX_PROJECT_BYTES
        data, status = read_inside(project, path, most)
    if status.st_size > most:
        raise ValueError(f"it has more than {most:,} bytes")
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
