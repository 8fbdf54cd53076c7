"""File locks that end with the process, for: which programs are alive, and who may change the schema.

``flock`` locks belong to an open file and end with the process, however that ends, so a crash never
leaves a stale lock. Two locks conflict within one process, too.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path

_POLL = 0.01
"""Seconds between attempts to lock, because ``flock`` itself can't wait with a time limit."""


class FileLock:
    """An open lock file, created if missing, and opened for reading if it can't be written."""

    _descriptor = -1

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def take(self, *, shared: bool = False, timeout: float = 0.0) -> bool:
        """Take the lock exclusively or ``shared``; returns False if that fails within ``timeout`` seconds.

        An exclusive lock may be turned into a shared one.
        """
        operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(self._descriptor, operation | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_POLL)
            else:
                return True

    def release(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the lock and close the file. Closing twice is harmless."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    __del__ = close


class LivenessLocks:
    """A locked file for each running program, named by a token that the database may contain.

    A token's reader can so find out whether its program still runs. The file is locked before the
    token is published; so if it can be locked by others, the program is gone.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._own: dict[str, FileLock] = {}

    def announce(self, token: str) -> None:
        """Count as alive under ``token`` until `close` or the end of the process.

        Raises OSError if the lock's directory or file can't be created.
        """
        if token in self._own:
            return
        self._directory.mkdir(mode=0o700, exist_ok=True)
        lock = FileLock(self._directory / token)
        lock.take()
        self._own[token] = lock

    def alive(self, token: str) -> bool:
        """Return True if the program behind ``token`` still runs.

        Removes the file of one that doesn't.
        """
        if token in self._own:
            return True
        path = self._directory / token
        if not path.exists():
            return False
        try:
            with contextlib.closing(FileLock(path)) as lock:
                if not lock.take(shared=True):
                    return True
                path.unlink(missing_ok=True)
        except OSError:
            # Unreadable: nobody can tell, and a session that can't be opened is worse than a
            # branch.
            return False
        return False

    def close(self) -> None:
        for lock in self._own.values():
            with contextlib.suppress(OSError):
                lock.path.unlink(missing_ok=True)
            lock.close()
        self._own.clear()
