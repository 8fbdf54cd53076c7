"""Opens files without being led elsewhere by a link.

A repository can hold a link to a file of its user's (``AGENTS.md -> ../.ssh/id_rsa``): a project's
files are read only where they really are in the project. A command in the background could put a
link in the place of a directory between a question and its answer: `directory` and its users follow
no link on a path that was allowed.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tui_agent.files.descriptors import (
    FOLLOWED_DIRECTORY,
    REGULAR,
    descend,
    entries,
    open_beneath,
    open_path,
    open_regular,
    parent_beneath,
    using,
)

_FOLLOWED = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""Flags to open a file that may be a link."""


class OutsideError(OSError):
    """A path in the project leads out of it; ``strerror`` says where to."""


def read_inside(
    project: Path, path: Path, limit: int | None = None
) -> tuple[bytes, os.stat_result]:
    """Return the first bytes of a file of a project, all of them without a limit, and its state.

    Opens the place the path led to when it was looked at: if a link is put in the way meanwhile,
    opening fails.

    Raises:
        OutsideError: it leads out of the project.
        OSError: it can't be read, or it is no regular file.
    """
    with using(open_inside(project, path)) as descriptor:
        return _read(descriptor, path, limit)


def open_inside(project: Path, path: Path) -> int:
    """Return a descriptor of a project's file, links followed inside it.

    Raises as `read_inside`.
    """
    root = Path(os.path.realpath(project))
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(root):
        raise OutsideError(errno.EXDEV, f"it leads out of the project, to {real}", str(path))
    *folders, name = real.relative_to(root).parts or (".",)
    with using(descend(os.open(root, FOLLOWED_DIRECTORY), folders)) as parent:
        return os.open(name, REGULAR, dir_fd=parent)


def read_file(path: Path, limit: int | None = None) -> tuple[bytes, os.stat_result]:
    """Return the first bytes of any regular file, links followed, and its state.

    Raises:
        OSError: it can't be read, or it is no regular file.
    """
    with using(os.open(path, _FOLLOWED)) as descriptor:
        return _read(descriptor, path, limit)


def read_regular(path: str | Path, limit: int) -> bytes | None:
    """Return a regular file's first bytes; None for a link, or if it can't be read."""
    try:
        with using(os.open(path, REGULAR)) as descriptor:
            return _read(descriptor, path, limit)[0]
    except OSError:
        return None


def read_known(path: str, size: int) -> bytes:
    """Return the bytes of a file of known size, b"" if it can't be read."""
    try:
        with using(os.open(path, REGULAR)) as descriptor:
            return os.read(descriptor, size)
    except OSError:
        return b""


def _read(descriptor: int, path: str | Path, limit: int | None) -> tuple[bytes, os.stat_result]:
    state = os.fstat(descriptor)
    if stat.S_ISDIR(state.st_mode):
        raise OSError(errno.EISDIR, "it is a directory", str(path))
    if not stat.S_ISREG(state.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    if limit is not None and state.st_size < limit:
        # Most files are small: two calls of the system. One of ``/proc`` says nothing of its size.
        pieces = [os.read(descriptor, state.st_size + 1)]
        if state.st_size and len(pieces[0]) == state.st_size:
            return pieces[0], state
        while pieces[-1] and sum(map(len, pieces)) < limit:
            pieces.append(os.read(descriptor, limit - sum(map(len, pieces))))
        return b"".join(pieces), state
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(-1 if limit is None else limit), state


@contextmanager
def directory(path: Path) -> Iterator[int]:
    """Give a descriptor of a directory, for as long as the block runs.

    ``path`` is absolute and without links.

    Raises:
        OSError: it is not there, or a link is in the way (``ELOOP``, ``ENOTDIR``).
    """
    with using(open_path(path)) as descriptor:
        yield descriptor


@contextmanager
def file_beneath(root: int, path: str) -> Iterator[BinaryIO]:
    """Give a regular file below a directory for reading, for as long as the block runs.

    Raises:
        OSError: it is not there, it is no regular file, or a link is in the way.
    """
    with parent_beneath(root, path) as (parent, name):
        descriptor, _state = open_regular(parent, name)
    with os.fdopen(descriptor, "rb") as file:
        yield file


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading. ``path`` is absolute; raises OSError if it contains a link."""
    with directory(path.parent) as parent:
        return os.fdopen(os.open(path.name, REGULAR, dir_fd=parent), "rb")


def make_directories(path: Path) -> None:
    """Create a directory and its parents.

    ``path`` is absolute; raises OSError if it contains a link.
    """
    os.close(open_path(path, make=True))


def _everything(_place: Path, _name: str) -> bool:
    return True


def walk_beneath(
    top: Path, enters: Callable[[Path, str], bool] = _everything
) -> Iterator[tuple[Path, int, list["os.DirEntry[str]"]]]:
    """Yield a directory and those below it, with descriptor and entries; follow no link.

    Of a directory those are gone into that ``enters`` takes, from its path and their names.
    """
    with suppress(OSError), directory(top) as root:
        pending = [""]
        while pending:
            inner = pending.pop()
            place = top / inner
            try:
                descriptor = open_beneath(root, inner)
            except OSError:
                continue
            with using(descriptor):
                rows = entries(descriptor)
                yield place, descriptor, rows
                for row in rows:
                    if row.is_dir(follow_symlinks=False) and enters(place, row.name):
                        pending.append(f"{inner}/{row.name}".removeprefix("/"))
