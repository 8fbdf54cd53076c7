"""Recognises an unchanged file without reading it."""

import time
from pathlib import Path
from typing import NamedTuple

_SETTLED_NS = 2_000_000_000
"""Age of a change, in nanoseconds, after which the next one surely has another time."""


class Stamp(NamedTuple):
    """A file's size and times, which change with every change of the file; in nanoseconds."""

    modified: int
    changed: int
    size: int
    inode: int


def settled_stamp(path: Path) -> Stamp | None:
    """Return a file's stamp.

    None if it can't be read, or if it changed so recently that the next change might not show in
    its times.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    if time.time_ns() - status.st_ctime_ns < _SETTLED_NS:
        return None
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
