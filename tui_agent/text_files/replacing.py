"""Replaces a file's content, or the file by a link.

A full disk or a crash doesn't destroy the old content.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from tui_agent.files.atomic import temporary_prefix
from tui_agent.files.descriptors import state_at
from tui_agent.files.inside import directory


def replace_file(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace the content of the file at an absolute path in one step; creates a missing file.

    ``mode`` is the file's new permission bits. If ``mode`` is None, the bits don't change; a
    missing file receives the default ones. A file that has hard links, or whose directory is not
    writable, is overwritten in place instead, which keeps the hard links intact.

    Raises:
        OSError: the file can't be written, or the path contains a symbolic link. The old content is
            kept, unless writing in place fails halfway.
    """
    with directory(path.parent) as parent:
        before = state_at(parent, path.name)
        if before and stat.S_ISLNK(before.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        if before and not os.access(path.name, os.W_OK, dir_fd=parent):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        if before and (before.st_nlink > 1 or not os.access(".", os.W_OK, dir_fd=parent)):
            descriptor = os.open(
                path.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent
            )
            with open(descriptor, "wb") as file:  # noqa: PTH123 - from a descriptor
                _make_room(descriptor, len(data))
                file.write(data)
                file.truncate()
                if mode is not None:
                    os.fchmod(descriptor, mode)
            return
        with _replacing(path.name, parent) as scratch:
            _write_new(scratch, parent, data, before, mode)


def replace_by_link(path: Path, target: str) -> None:
    """Put a link to ``target`` at an absolute path, in one step. Replaces a file or link there.

    Raises OSError if the link can't be made, or if the path leads through a symbolic link.
    """
    with directory(path.parent) as parent, _replacing(path.name, parent) as scratch:
        os.symlink(target, scratch, dir_fd=parent)


@contextlib.contextmanager
def _replacing(name: str, parent: int) -> Iterator[str]:
    """Yield the name of a temporary entry that replaces ``name`` after the ``with`` block.

    Both are in the directory with the descriptor ``parent``. The block creates the entry; if the
    block or the replacement fails, the entry is removed.
    """
    scratch = f"{temporary_prefix(name)}{secrets.token_hex(4)}.tmp"
    try:
        yield scratch
        os.replace(scratch, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch, dir_fd=parent)
        raise


def check_writable(path: Path) -> None:
    """Raise OSError if it is clear beforehand that `replace_file` can't write a file.

    ``path`` is absolute. For a missing file, the nearest directory that exists has to be writable.
    """
    if os.path.lexists(path):
        target = path
        needed = os.W_OK
    else:
        target = next(parent for parent in path.parents if os.path.lexists(parent))
        needed = os.W_OK | os.X_OK
        if not target.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(target))
    if not os.access(target, needed):
        code = errno.EACCES
        if os.statvfs(target).f_flag & os.ST_RDONLY:
            code = errno.EROFS
        raise OSError(code, os.strerror(code), str(target))


def _make_room(descriptor: int, size: int) -> None:
    """Reserve space for ``size`` bytes in a file, so that a full disk is noticed before writing.

    Raises OSError if there is no space; in that case, the file is unchanged.
    """
    before = os.fstat(descriptor).st_size
    if size <= before or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, before, size - before)
    except OSError as error:
        os.ftruncate(descriptor, before)
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP}:
            raise


def _write_new(
    name: str, parent: int, data: bytes, like: os.stat_result | None, mode: int | None
) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # If a mode is given, other users must not read the file before the mode is set.
    descriptor = os.open(name, flags, 0o666 if mode is None else 0o600, dir_fd=parent)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - from a descriptor
        file.write(data)
        if like is None:
            if mode is not None:
                os.fchmod(descriptor, mode)
            return
        if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()) and os.geteuid() == 0:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        os.fchmod(descriptor, like.st_mode & 0o7777 if mode is None else mode)
