"""Finds files that searches skip: ignored ones, links, and the data of repositories."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from tui_agent.files.inside import walk_beneath
from tui_agent.files.sensitive import is_repository
from tui_agent.lazy import frozen

MAX_NAMES = 200_000
MAX_SECONDS = 2.0
"""Limits of `unseen_files`: names looked at, and seconds."""
MAX_FOUND = 100


@frozen
class Unseen:
    """Relative paths that a search skipped, each with the reason, a phrase for the model.

    ``is_complete`` is False if a limit was reached before everything was looked at.
    """

    paths: dict[str, str]
    is_complete: bool


def unseen_files(directory: Path, takes: Callable[[str], bool]) -> Unseen:
    """Return the files below a directory for which ``takes`` returns True, as skipped by a search.

    ``takes`` gets a path relative to the directory. Use it only after a search that found nothing:
    files that the search did look at would be listed, too.
    """
    found: dict[str, str] = {}
    deadline = time.monotonic() + MAX_SECONDS
    seen = 0
    for place, _descriptor, rows in walk_beneath(directory):
        start = f"{place.relative_to(directory).as_posix()}/".removeprefix("./")
        for row in rows:
            name = f"{start}{row.name}"
            if not row.is_dir(follow_symlinks=False) and takes(name):
                found[name] = _reason(row, start)
        seen += len(rows)
        if seen > MAX_NAMES or len(found) > MAX_FOUND or time.monotonic() > deadline:
            return Unseen(found, is_complete=False)
    return Unseen(found, is_complete=True)


def _reason(row: "os.DirEntry[str]", start: str) -> str:
    if any(map(is_repository, start.split("/"))):
        return "in a repository's own data"
    if row.is_symlink():
        return "links"
    return "ignored by git"
