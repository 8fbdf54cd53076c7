"""The directories that a session keeps its layers and stand-ins in, and their removal. Changes files."""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from pathlib import Path


def make_own_directory(owner: object, parent: Path) -> Path:
    """Make a directory that goes with ``owner``; those of sessions that were killed go now.

    Raises:
        OSError: it can't be made, or another user has made what the user's own directories are in.
    """
    ours = parent / f"tui-agent-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        ours.mkdir(mode=0o700)
    state = ours.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o077:
        raise OSError(errno.EPERM, "it is not a directory of this user alone", str(ours))
    for other in ours.iterdir():
        with contextlib.suppress(OSError):
            _remove_abandoned(other)
    place = Path(tempfile.mkdtemp(dir=ours)).resolve()
    lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    weakref.finalize(owner, _remove, place, lock)
    return place


def _remove_abandoned(place: Path) -> None:
    lock = os.open(place / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(place)
    finally:
        os.close(lock)


def _remove(place: Path, lock: int) -> None:
    remove_tree(place)
    os.close(lock)


def remove_tree(place: Path) -> None:
    """Remove a directory, with those in it that nobody may enter: the kernel and commands leave such."""
    shutil.rmtree(place, ignore_errors=True)
    if not place.exists():
        return
    for directory, names, _files in os.walk(place):
        for name in names:
            with contextlib.suppress(OSError):
                os.chmod(os.path.join(directory, name), 0o700, follow_symlinks=False)  # noqa: PTH101, PTH118 - as walk names it
    shutil.rmtree(place, ignore_errors=True)
