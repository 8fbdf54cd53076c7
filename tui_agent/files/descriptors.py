"""Opens, copies and removes files relative to directory descriptors.

This is safe in directory trees that other processes may change. If a file is named by its path, the
kernel looks up the path again in each call, and another process may meanwhile have replaced a part
of the path with a link. A descriptor, however, always refers to the same directory. The functions
in this module take a directory's descriptor. They follow no link below that directory, and don't
wait for a pipe.
"""

import contextlib
import errno
import fcntl
import itertools
import os
import platform
import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags for opening a directory that must not be a link."""
FOLLOWED_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags for opening a directory that may be a link."""
REGULAR = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags for opening a file for reading. If the file is a link, opening it fails.

Without ``O_NONBLOCK``, opening a pipe would wait until another process writes to it.
"""
_PASSED = DIRECTORY | getattr(os, "O_PATH", 0)
"""Flags for opening a directory that is used only to open files below it.

The directory need not be readable.
"""
PERMISSIONS = 0o777
"""Mask of the permission bits, without setuid, setgid and the sticky bit."""

_OPENAT2 = 437
"""Number of the openat2 system call, the same on every machine (Linux's unistd.h)."""
_NO_MAGICLINKS = 0x02
_NO_SYMLINKS = 0x04
_BENEATH = 0x08
_PATH_MAX = 4096
"""Maximum length of a path in a system call, in bytes, including the final NUL (see limits.h)."""
_FICLONE = 0x40049409
"""A Linux ioctl that makes a file share the data blocks of another file."""
_CURRENT = -100
"""The value AT_FDCWD, which stands for the current directory in system calls."""


def descend(descriptor: int, folders: Iterable[str], *, make: bool = False) -> int:
    """Open the named folders, each inside the one before, and return the last one's descriptor.

    ``descriptor`` is the directory to start from. It is closed, even after an error. If there are
    no folders, it is returned instead. If ``make`` is True, missing directories are created. Raises
    OSError if a directory doesn't exist or is a link (``ELOOP``, ``ENOTDIR``).
    """
    names = list(folders)
    try:
        for at, folder in enumerate(names, 1):
            how = DIRECTORY if at == len(names) else _PASSED
            try:
                inner = os.open(folder, how, dir_fd=descriptor)
            except FileNotFoundError:
                if not make:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=descriptor)
                inner = os.open(folder, how, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_path(path: Path, *, make: bool = False) -> int:
    """Open the directory at an absolute path and return its descriptor.

    If ``make`` is True, missing directories are created.

    Raises:
        OSError: it doesn't exist, or the path contains a link (``ELOOP``, ``ENOTDIR``).
    """
    parts = path.relative_to(path.anchor).parts
    return descend(os.open(path.anchor, _PASSED if parts else DIRECTORY), parts, make=make)


@contextlib.contextmanager
def using(descriptor: int) -> Iterator[int]:
    """Yield ``descriptor``, and close it after the ``with`` block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_beneath(root: int, path: str, *, make: bool = False) -> int:
    """Return a new descriptor of the directory ``path`` below ``root``; "" means ``root``.

    If ``make`` is True, missing directories are created. Raises OSError if the directory doesn't
    exist, or if the path contains a link.
    """
    if not path:
        return os.dup(root)
    opened = _openat2()
    if make or opened is None or len(os.fsencode(path)) >= _PATH_MAX:
        return descend(os.dup(root), path.split("/"), make=make)
    return opened(root, path)


@contextlib.contextmanager
def parent_beneath(root: int, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the descriptor of the directory that contains ``path``, and the path's last name.

    ``path`` is relative to the directory whose descriptor is ``root``. The yielded descriptor is
    closed after the ``with`` block. Raises OSError in the same cases as `open_beneath`.
    """
    folder, _, name = path.rpartition("/")
    with using(open_beneath(root, folder, make=make)) as parent:
        yield parent, name


@lru_cache(maxsize=1)
def _openat2() -> Callable[[int, str], int] | None:
    """Return a function that opens a path below a directory with openat2(2), which refuses links.

    The function takes the directory's descriptor and the relative path. Returns None if the kernel
    or the container lacks this call, and on systems other than Linux on x86-64 and ARM64.
    """
    if sys.platform != "linux" or platform.machine() not in {"x86_64", "aarch64"}:
        return None
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    how = (ctypes.c_uint64 * 3)(DIRECTORY, 0, _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH)

    def opened(root: int, path: str) -> int:
        descriptor = libc.syscall(_OPENAT2, root, os.fsencode(path), how, ctypes.sizeof(how))
        if descriptor < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return int(descriptor)

    try:
        os.close(opened(_CURRENT, "."))
    except OSError:
        return None  # The kernel is too old, or the container forbids the call.
    return opened


def state_at(parent: int, name: str) -> os.stat_result | None:
    """Return the status of a file in a directory; None if it isn't available. Follows no link."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None


def entries(descriptor: int) -> list["os.DirEntry[str]"]:
    """Return a directory's entries; an empty list if it was removed or can't be listed."""
    try:
        with os.scandir(descriptor) as rows:
            return list(rows)
    except OSError:
        return []


def open_regular(parent: int, name: str) -> tuple[int, os.stat_result]:
    """Open a regular file in a directory for reading, and return its descriptor and status.

    Raises OSError if the file doesn't exist, can't be read, or is anything else, such as a link.
    """
    descriptor = os.open(name, REGULAR, dir_fd=parent)
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", name)
    return descriptor, state


def set_mode(parent: int, name: str, mode: int) -> None:
    """Set the permission bits of a file in a directory, even if the file can't be opened.

    Raises OSError if the file doesn't exist, and on Linux also if it is a link.
    """
    if sys.platform != "linux":
        os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
        return
    with using(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)) as itself:
        if stat.S_ISLNK(os.fstat(itself).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        # Use the descriptor, not the path, because another process may have replaced the file
        # meanwhile.
        os.chmod(f"/proc/self/fd/{itself}", mode)  # noqa: PTH101 - a descriptor


def open_directory(parent: int, name: str) -> int:
    """Open a subdirectory and return its descriptor.

    If the directory's owner has no permission to read, write or search it, that permission is added
    first, if possible. Raises OSError if the entry isn't a directory or can't be opened.
    """
    state = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        with contextlib.suppress(PermissionError):  # The directory belongs to another user.
            set_mode(parent, name, state.st_mode & PERMISSIONS | stat.S_IRWXU)
    return os.open(name, DIRECTORY, dir_fd=parent)


def make_directory(parent: int, name: str, mode: int) -> int:
    """Create a directory, or use the existing one, and return its descriptor.

    The permissions of the directory are set to those in ``mode``. A setgid bit that it inherited
    stays. Raises OSError if this fails, for example because ``name`` is a file.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    descriptor = os.open(name, DIRECTORY, dir_fd=parent)
    try:
        inherited = os.fstat(descriptor).st_mode & stat.S_ISGID
        os.fchmod(descriptor, mode & PERMISSIONS | inherited)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def set_times(descriptor: int, state: os.stat_result) -> None:
    """Set the access and modification times of a file or directory to those in ``state``."""
    os.utime(descriptor, ns=(state.st_atime_ns, state.st_mtime_ns))


def copy_data(reading: int, writing: int, size: int) -> None:
    """Copy the file ``reading``, which has ``size`` bytes, to the empty file ``writing``.

    Both are file descriptors. If the file system supports it, the files share their data blocks.
    Holes are kept. Raises OSError if, for example, the disk is full.
    """
    with contextlib.suppress(OSError):
        fcntl.ioctl(writing, _FICLONE, reading)
        return
    os.ftruncate(writing, size)
    at = 0
    while at < size:
        try:
            at = os.lseek(reading, at, os.SEEK_DATA)
        except OSError:  # The rest of the file is a hole, so there is nothing to copy.
            return
        end = os.lseek(reading, at, os.SEEK_HOLE)
        os.lseek(writing, at, os.SEEK_SET)
        while at < end and (sent := os.sendfile(writing, reading, at, end - at)):
            at += sent


def remove(parent: int, name: str) -> None:
    """Remove a file, or a directory and everything in it. Does nothing if it doesn't exist.

    Nested directories are moved to the top directory and emptied there. Therefore, at most two
    directories are open at a time, no matter how deep the tree is. Raises OSError if something
    can't be removed.
    """
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        with using(open_directory(parent, name)) as top:
            _empty(top)
        os.rmdir(name, dir_fd=parent)


def _empty(top: int) -> None:
    mark = secrets.token_hex(8)
    numbers = itertools.count()
    pending = list(_clear(top, top, ()))
    while pending:
        name = pending.pop()
        with using(open_directory(top, name)) as inner:
            pending += _clear(inner, top, (f"{mark}{number}" for number in numbers))
        os.rmdir(name, dir_fd=top)


def _clear(here: int, top: int, names: Iterable[str]) -> Iterator[str]:
    """Remove the files in the directory ``here``, and move its subdirectories to ``top``.

    Yields the new name of each moved subdirectory, which is taken from ``names``. If ``here`` is
    ``top``, its subdirectories stay, and their names are yielded.
    """
    free = iter(names)
    for row in entries(here):
        if not row.is_dir(follow_symlinks=False):
            os.unlink(row.name, dir_fd=here)
        elif here == top:
            yield row.name
        else:
            # Open the directory first, because this makes it writable, and otherwise it couldn't be
            # moved.
            os.close(open_directory(here, row.name))
            name = next(free)
            os.rename(row.name, name, src_dir_fd=here, dst_dir_fd=top)
            yield name


def remove_tree(place: Path) -> None:
    """Remove a file or directory tree that this program created.

    Stop silently at the first error.
    """
    with contextlib.suppress(OSError), using(os.open(place.parent, FOLLOWED_DIRECTORY)) as parent:
        remove(parent, place.name)
