"""Opens files in such a way that a link can't lead to a file other than the one that was checked.

A repository can contain a link to a private file of the user (``AGENTS.md -> ../.ssh/id_rsa``). For
this reason, `read_inside` and `open_inside` refuse paths that lead out of the project. In addition,
a background command could replace a directory on a path with a link after the user has allowed the
path. For this reason, `directory` and the functions that use it don't follow any links.
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
"""Flags for opening a file that may be a link."""


class OutsideError(OSError):
    """Raised when a path leads out of the project through a link.

    ``strerror`` says where it leads.
    """


def read_inside(
    project: Path, path: Path, limit: int | None = None
) -> tuple[bytes, os.stat_result]:
    """Return the first ``limit`` bytes of a file in a project, and the file's status.

    If ``limit`` is None, returns all bytes. Links inside the project are followed. If a link is
    changed after the check and before the file is opened, opening fails.

    Raises:
        OutsideError: the path leads out of the project.
        OSError: the file can't be read, or isn't a regular file.
    """
    with using(open_inside(project, path)) as descriptor:
        return _read(descriptor, path, limit)


def open_inside(project: Path, path: Path) -> int:
    """Open a file in a project for reading, and return its descriptor.

    Links inside the project are followed. Raises OutsideError if the path leads out of the project,
    and OSError if it can't be opened.
    """
    root = Path(os.path.realpath(project))
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(root):
        raise OutsideError(errno.EXDEV, f"it leads out of the project, to {real}", str(path))
    *folders, name = real.relative_to(root).parts or (".",)
    with using(descend(os.open(root, FOLLOWED_DIRECTORY), folders)) as parent:
        return os.open(name, REGULAR, dir_fd=parent)


def read_file(path: Path, limit: int | None = None) -> tuple[bytes, os.stat_result]:
    """Return the first ``limit`` bytes of any regular file, and the file's status.

    If ``limit`` is None, returns all bytes. Links are followed.

    Raises:
        OSError: the file can't be read, or isn't a regular file.
    """
    with using(os.open(path, _FOLLOWED)) as descriptor:
        return _read(descriptor, path, limit)


def read_regular(path: str | Path, limit: int) -> bytes | None:
    """Return the first ``limit`` bytes of a regular file.

    Returns None if the path is anything else, such as a link, or can't be read. Links to
    directories on the way to the file are followed.
    """
    try:
        with using(os.open(path, REGULAR)) as descriptor:
            return _read(descriptor, path, limit)[0]
    except OSError:
        return None


def read_known(path: str, size: int) -> bytes:
    """Return the first ``size`` bytes of a file that is known to be regular.

    Returns b"" if the file is a link or can't be read. This is faster than `read_regular`, because
    it makes fewer checks.
    """
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
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    if limit is not None and state.st_size < limit:
        # Most files are small, so one read is enough. Files in ``/proc`` report the size 0.
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
    """Yield a descriptor of the directory at an absolute path for a ``with`` block, then close it.

    Raises:
        OSError: the directory doesn't exist, or the path contains a link (``ELOOP``, ``ENOTDIR``).
    """
    with using(open_path(path)) as descriptor:
        yield descriptor


@contextmanager
def file_beneath(root: int, path: str) -> Iterator[BinaryIO]:
    """Open a regular file for reading, and close it after the ``with`` block.

    ``path`` is relative to the directory whose descriptor is ``root``.

    Raises:
        OSError: the file doesn't exist or isn't a regular file, or the path contains a link.
    """
    with parent_beneath(root, path) as (parent, name):
        descriptor, _state = open_regular(parent, name)
    with os.fdopen(descriptor, "rb") as file:
        yield file


def open_file(path: Path) -> BinaryIO:
    """Open the file at an absolute path for reading.

    Raises OSError if the file can't be opened, or if the path contains a link.
    """
    with directory(path.parent) as parent:
        return os.fdopen(os.open(path.name, REGULAR, dir_fd=parent), "rb")


def make_directories(path: Path) -> None:
    """Create the directory at an absolute path and its parents, unless they exist.

    Raises OSError if a directory can't be created, or if the path contains a link.
    """
    os.close(open_path(path, make=True))


def _everything(_place: Path, _name: str) -> bool:
    return True


def walk_beneath(
    top: Path, enters: Callable[[Path, str], bool] = _everything
) -> Iterator[tuple[Path, int, list["os.DirEntry[str]"]]]:
    """Yield the path, descriptor and entries of ``top`` and of the directories below it.

    ``enters`` takes the path of a directory and the name of a subdirectory, and returns True if the
    subdirectory should be entered. Links are not followed. A descriptor is closed when the next
    directory is requested. Directories that can't be opened, including ``top``, are skipped.
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
