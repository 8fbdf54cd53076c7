"""Files that searches leave out: what git ignores, links, a repository's own data."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from tui_agent.files.sensitive import is_repository
from tui_agent.lazy import dataclass

MAX_NAMES = 200_000
MAX_SECONDS = 2.0
"""Names and seconds after which looking is given up."""
MAX_FOUND = 100


@dataclass(frozen=True, slots=True)
class Unseen:
    """Paths that were left out, each with why, and whether all places were looked at."""

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
    for place, folders, names in os.walk(directory):
        inside = os.path.relpath(place, directory)
        if inside == ".":
            start = ""
        else:
            start = f"{inside}/"
        links = [name for name in folders if os.path.islink(f"{place}/{name}")]  # noqa: PTH114 - many names
        for name in (*names, *links):
            if takes(f"{start}{name}"):
                found[f"{start}{name}"] = _reason(f"{place}/{name}", start)
        seen += len(names) + len(folders)
        if seen > MAX_NAMES or len(found) > MAX_FOUND or time.monotonic() > deadline:
            return Unseen(found, is_complete=False)
    return Unseen(found, is_complete=True)


def _reason(path: str, start: str) -> str:
    if any(map(is_repository, start.split("/"))):
        return "in a repository's own data"
    return "links" if os.path.islink(path) else "ignored by git"  # noqa: PTH114 - many names
