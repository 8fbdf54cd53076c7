"""Operating-system locks that end with the process: who is alive, and who may change the file's schema.

``flock`` locks belong to an open file and vanish with the process however it ends, so that a crash
never leaves a stale lock behind. Locking twice conflicts within one process, too.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path

_POLL = 0.01
"""Seconds between tries while waiting for a lock; ``flock`` itself can't wait for a bounded
time."""


class FileLock:
    """An open lock file.

    It is created when missing, and opened for reading where it can't be written.
    """

    _descriptor = -1

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def take(self, *, shared: bool = False, timeout: float = 0.0) -> bool:
        """Take the lock, alone or (also instead of alone) ``shared``.

        Return whether it came within so many seconds.
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
        """Give the lock up and close the file. Closing twice is harmless."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    __del__ = close


class LivenessLocks:
    """One locked file per running program, named by a token that the database may mention.

    Whoever reads a token can tell whether the program behind it still lives. The file is locked
    before its token is published, so that a lock that can be had means that its owner is gone.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._own: dict[str, FileLock] = {}

    def announce(self, token: str) -> None:
        """Be alive under ``token`` until `close` or the end of the process.

        Raises:
            OSError: the lock's directory or file can't be created.
        """
        if token in self._own:
            return
        self._directory.mkdir(mode=0o700, exist_ok=True)
        lock = FileLock(self._directory / token)
        lock.take()
        self._own[token] = lock

    def alive(self, token: str) -> bool:
        """Whether the program behind ``token`` lives.

        The file of a dead one is removed where possible.
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
