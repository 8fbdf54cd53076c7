"""Tells whether a file is as it was, without reading it."""

import time
from pathlib import Path
from typing import NamedTuple

_SETTLED_NS = 2_000_000_000
"""Nanoseconds after which a file system's clock shows any further change."""


class Stamp(NamedTuple):
    """What differs whenever a file differs. Times are in nanoseconds."""

    modified: int
    changed: int
    size: int
    inode: int


def settled_stamp(path: Path) -> Stamp | None:
    """Return what differs whenever the file differs.

    None where it can't be looked at, or changed so lately that its times may not show the next
    change.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    if time.time_ns() - status.st_ctime_ns < _SETTLED_NS:
        return None
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
