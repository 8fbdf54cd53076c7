"""Creates stamps of files without reading them.

If two stamps are equal, the file hasn't changed.
"""

import time
from pathlib import Path
from typing import NamedTuple

_SETTLED_NS = 2_000_000_000
"""A stamp is returned only if the file's last change is at least this old, in nanoseconds.

Any later change then has a different time.
"""


class Stamp(NamedTuple):
    """Values that describe a file's state. After any change, at least one of them differs.

    ``modified`` and ``changed`` (status change) are times in nanoseconds, and ``size`` is in bytes.
    """

    modified: int
    changed: int
    size: int
    inode: int


def settled_stamp(path: Path) -> Stamp | None:
    """Return the stamp of a file, which shows later whether it has changed. Links are followed.

    Returns None if the file doesn't exist, or if it was changed less than 2 s ago. In that case,
    another change right now might leave its times as they are.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    if time.time_ns() - status.st_ctime_ns < _SETTLED_NS:
        return None
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
