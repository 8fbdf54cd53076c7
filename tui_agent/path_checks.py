"""Checks and resolves paths from a user, a model or a repository, without raising OSError.

A path that can't be examined counts as missing. `pathlib` would raise an error for a directory
without permission, a name that is too long, and links that form a loop.
"""

import os
from collections.abc import Iterable
from pathlib import Path


def is_directory(path: str | os.PathLike[str]) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - pathlib's may raise


def is_file(path: str | os.PathLike[str]) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - pathlib's may raise


def is_link(path: str | os.PathLike[str]) -> bool:
    return os.path.islink(path)  # noqa: PTH114 - pathlib's may raise


def is_there(path: str | os.PathLike[str]) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - pathlib's may raise


def with_home(text: str) -> str:
    """Return a text with ``~`` or ``~name`` at its start replaced, if that user exists.

    Otherwise, and in the rest of the text, nothing changes.
    """
    return os.path.expanduser(text)  # noqa: PTH111 - pathlib's may raise, and changes the rest


def at_home(text: str) -> Path:
    """Return a text as a path, with ``~`` or ``~name`` at its beginning replaced.

    It is not replaced if there is no such user.
    """
    return Path(with_home(text))


def normal_path(folder: str | os.PathLike[str], text: str) -> str:
    """Return a path, relative to ``folder``, without ``.``, ``..`` and further slashes.

    Unlike `os.path.normpath`, also replaces two slashes at the beginning, which mean the same as
    one.
    """
    path = os.path.normpath(os.path.join(folder, text))  # noqa: PTH118 - called for every word
    if path.startswith("//"):
        return path[1:]
    return path


def is_inside(project: Path, path: str | os.PathLike[str]) -> bool:
    """Return True if a path, after resolving all links, is the project's directory or below it."""
    return real_path(path).is_relative_to(real_path(project))


def is_among(path: Path, places: Iterable[Path]) -> bool:
    """Return True if a path is one of ``places`` or below one of them. Doesn't resolve links."""
    return any(map(path.is_relative_to, places))


def folders_around(paths: Iterable[str]) -> set[str]:
    """Return all parent directories of relative paths; those of ``a/b/c`` are ``a/b`` and ``a``."""
    found = set[str]()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path with links resolved, except links that can't be read."""
    return Path(os.path.realpath(path))
