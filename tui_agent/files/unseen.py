"""Finds files that searches skip: ignored ones, links, a repository's own data."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from tui_agent.files.inside import walk_beneath
from tui_agent.files.sensitive import is_repository
from tui_agent.lazy import frozen

MAX_NAMES = 200_000
MAX_SECONDS = 2.0
"""Maximum names seen and maximum seconds of the search for them."""
MAX_FOUND = 100


@frozen
class Unseen:
    """Paths that were skipped, each with the reason, and whether everything was looked at."""

    paths: dict[str, str]
    is_complete: bool


def unseen_files(directory: Path, takes: Callable[[str], bool]) -> Unseen:
    """Return the paths below a directory that a search there leaves out although ``takes`` is true of them.

    Paths are relative to the directory. Only for a search that found nothing: what it looks at
    counts as left out.
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
