"""Records the state of each file that was read, so that an edit notices later changes."""

import hashlib
import os
from pathlib import Path

from tui_agent.lazy import frozen

HASHED_BYTES = 8 * 1024 * 1024
"""Maximum size, in bytes, of a file that is compared by content. Larger files are compared only by
modification time and size."""

_ALWAYS_HASHED_BYTES = 256 * 1024
"""Maximum size, in bytes, of a file that is compared by content even if its time and size are the
same."""


@frozen
class _State:
    modified_ns: int
    size: int
    digest: bytes | None


class FileReads:
    """Remembers the state that each file had when it was last read, written or edited.

    A file counts as changed only if its content changed, and not if its modification time was set
    or the same bytes were written again. A file larger than `HASHED_BYTES` counts as changed if its
    modification time or size changed.
    """

    def __init__(self) -> None:
        self._states: dict[str, _State] = {}

    def note(self, path: Path) -> None:
        """Record the current state of a file; forget the recorded state if the file can't be read.

        This must be called before the file is read, so that a change during the read is noticed
        later.
        """
        real = os.path.realpath(path)
        try:
            status = os.stat(real)  # noqa: PTH116 - a text, the key of its state
            # Files that the kernel generates, some of which never end, have the size 0 and are not
            # hashed.
            digest = None
            if 0 < status.st_size <= HASHED_BYTES:
                digest = _digest(real)
        except OSError:
            self._states.pop(real, None)
            return
        self._states[real] = _State(status.st_mtime_ns, status.st_size, digest)

    def changed_since(self, path: Path) -> bool | None:
        """Return True if a file has changed or vanished since ``note``, False if it hasn't.

        Returns None if no state of the file is recorded. May read the file: call it in a thread.
        """
        real = os.path.realpath(path)
        known = self._states.get(real)
        if known is None:
            return None
        try:
            status = os.stat(real)  # noqa: PTH116 - a text, the key of its state
        except OSError:
            return True
        if status.st_size != known.size:
            return True
        if not known.size:
            return False
        same_time = status.st_mtime_ns == known.modified_ns
        # The contents of small files are always compared, because two writes within one tick of the
        # file system's clock have the same modification time.
        if known.digest is None or (same_time and known.size > _ALWAYS_HASHED_BYTES):
            return not same_time
        return _digest(real) != known.digest


def _digest(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - a text, the key of its state
        return hashlib.file_digest(file, "blake2b").digest()
