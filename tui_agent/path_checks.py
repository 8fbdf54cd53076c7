"""Questions about paths that a user, a model or a repository named. None of them raises OSError.

A path that can't be looked at is not there. `pathlib` would raise for a directory that may not be
entered, a name that is too long, and links in a circle.
"""

import os
from collections.abc import Iterable
from pathlib import Path


def is_directory(path: str | os.PathLike[str]) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - the one of pathlib raises


def is_file(path: str | os.PathLike[str]) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - the one of pathlib raises


def is_link(path: str | os.PathLike[str]) -> bool:
    return os.path.islink(path)  # noqa: PTH114 - the one of pathlib raises


def is_there(path: str | os.PathLike[str]) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - the one of pathlib raises


def at_home(text: str) -> Path:
    """Return the path that a text names, with ``~`` and ``~name`` expanded if the user exists."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - the one of pathlib raises


def is_inside(project: Path, path: str | os.PathLike[str]) -> bool:
    """Return True if a path, links followed, is in a project."""
    return real_path(path).is_relative_to(real_path(project))


def is_among(path: Path, places: Iterable[Path]) -> bool:
    """Return True if a path is one of ``places`` or below one; pure."""
    return any(map(path.is_relative_to, places))


def folders_around(paths: Iterable[str]) -> set[str]:
    """Return every directory above the given relative paths; pure."""
    found = set[str]()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path with its links followed, as far as they may be read."""
    return Path(os.path.realpath(path))
