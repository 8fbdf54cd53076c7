"""Finds files that searches skip: ignored files, links, and files in ``.git`` and the like."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from tui_agent.files.inside import walk_beneath
from tui_agent.files.sensitive import is_repository_name
from tui_agent.lazy import frozen

MAX_NAMES = 200_000
MAX_SECONDS = 2.0
"""`unseen_files` stops after this time, in seconds, or after `MAX_NAMES` directory entries."""
MAX_FOUND = 100


@frozen
class Unseen:
    """The relative paths that a search skipped, each with the reason as a phrase for the model.

    ``is_complete`` is False if a limit was reached before all directories were listed.
    """

    paths: dict[str, str]
    is_complete: bool


def unseen_files(directory: Path, takes: Callable[[str], bool]) -> Unseen:
    """Return the files below a directory that a search has skipped, with the reasons.

    The function ``takes`` receives a path relative to the directory, and returns True if the search
    could have found that file. Call `unseen_files` only after a search that found nothing, because
    it doesn't leave out files that the search has seen.
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
    if any(map(is_repository_name, start.split("/"))):
        return "in a repository's own data"
    if row.is_symlink():
        return "links"
    return "ignored by git"
