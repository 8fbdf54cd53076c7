"""Looks at paths that a user, a model or a repository named.

A refusal to look is an answer: nothing is there.

`pathlib` raises where a directory on the way is closed to us, where a name is too long, and for a
circle of links.
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
    """Return the path a text names, ``~`` and ``~name`` expanded.

    An unknown user's ``~name`` stays.
    """
    return Path(os.path.expanduser(text))  # noqa: PTH111 - the one of pathlib raises


def is_inside(project: Path, path: str | os.PathLike[str]) -> bool:
    """Return whether a path is in a project, links followed."""
    return real_path(path).is_relative_to(real_path(project))


def is_among(path: Path, places: Iterable[Path]) -> bool:
    """Return whether a path is one of some places or below one; pure."""
    return any(map(path.is_relative_to, places))


def folders_around(paths: Iterable[str]) -> set[str]:
    """Return all directories that relative paths are in; pure."""
    found = set[str]()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return where a path leads, links followed as far as that is allowed."""
    return Path(os.path.realpath(path))
