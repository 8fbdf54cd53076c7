"""Locks files, to give one program exclusive access and to tell which programs are running.

``flock`` locks belong to an open file and end with the process, so a crash never leaves a stale
lock. Two locks on one file conflict within one process, too.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path

_TEXT_BYTES = 100
"""Maximum number of bytes that are read from a lock file."""

_POLL = 0.01
"""Number of seconds between attempts to lock a file, because ``flock`` can't wait with a timeout.
"""


class FileLock:
    """An open lock file, which is created if it is missing.

    If the file can't be written, it is opened only for reading.
    """

    _descriptor = -1

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def take(self, *, shared: bool = False, timeout: float = 0.0) -> bool:
        """Acquire the lock, exclusively or ``shared``; return False if others still hold it.

        Waits for up to ``timeout`` seconds. A lock that is already held is converted to the other
        type.
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

    def read(self) -> str:
        """Return the text in the lock file."""
        return os.pread(self._descriptor, _TEXT_BYTES, 0).decode("ascii", "replace")

    def write(self, text: str) -> None:
        """Replace the text in the lock file with the ASCII text ``text``.

        Does nothing if the file can't be written.
        """
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode("ascii"), 0)

    def release(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the lock and close the file. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    __del__ = close


class LivenessLocks:
    """A directory that contains a locked file for each running program, named by its token.

    The lock shows whether the program whose token is in the database is still running. A program
    locks its file before it stores the token, so an unlocked file means that the program has ended.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._own: dict[str, FileLock] = {}

    def announce(self, token: str) -> None:
        """Make `alive` return True for ``token`` in all programs, until `close` is called.

        The end of this process has the same effect as `close`. Raises OSError if the lock's
        directory or file can't be created.
        """
        if token in self._own:
            return
        self._directory.mkdir(mode=0o700, exist_ok=True)
        lock = FileLock(self._directory / token)
        lock.take()
        self._own[token] = lock

    def alive(self, token: str) -> bool:
        """Return True if the program that owns this token is running.

        Deletes the lock file of a program that has ended. Returns False if the file can't be
        opened.
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
            # It is unknown whether the program is running, so the session may be opened. Two
            # programs in one session only create a branch, which is better than a session that
            # can't be opened.
            return False
        return False

    def close(self) -> None:
        for lock in self._own.values():
            with contextlib.suppress(OSError):
                lock.path.unlink(missing_ok=True)
            lock.close()
        self._own.clear()
