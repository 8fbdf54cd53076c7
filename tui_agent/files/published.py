"""Recognises files of installed Python packages that are exactly as they were published.

Packages contain test keys and certificate bundles, which look like secrets. Each package has a list
of its files with digests and sizes in ``RECORD``, which is written last. A file that still matches
this list is public, so it isn't a secret of the user. This module reads the files and the lists,
and caches the lists.
"""

import base64
import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tui_agent.files.inside import read_regular

_PACKAGES = "/site-packages/"
_LIST = "RECORD"
_MAX_BYTES = 10_000_000
_MAX_PACKAGES = 2_000
_REMEMBERED = 16


class _Listed(NamedTuple):
    """A file as listed in its package's ``RECORD``.

    ``digest`` is ``sha256=`` followed by base64. ``size`` is the number of bytes as text.
    ``changed`` is the status change time of the ``RECORD``, in nanoseconds.
    """

    digest: str
    size: str
    changed: int


def is_published(path: str, state: os.stat_result) -> bool:
    """Return True if a file belongs to an installed Python package and matches the package's list.

    ``path`` is absolute, and ``state`` is the file's current status. Also returns True for a
    package's ``RECORD``. Returns False for files outside ``site-packages``.
    """
    folder, inner, name = path.rpartition(_PACKAGES)
    if not inner:
        return False
    if name.endswith(f".dist-info/{_LIST}"):
        return True
    place = Path(f"{folder}{inner}")
    try:
        listed = _listed(place, place.stat().st_mtime_ns).get(name)
    except OSError:
        return False
    if listed is None or listed.size != str(state.st_size):
        return False
    return state.st_ctime_ns <= listed.changed or listed.digest == _digest(path)


@lru_cache(maxsize=_REMEMBERED)
def _listed(place: Path, _changed: int) -> dict[str, _Listed]:
    """Return the files listed by all packages in a ``site-packages`` folder, by relative path."""
    found: dict[str, _Listed] = {}
    with os.scandir(place) as rows:
        records = [Path(row.path) / _LIST for row in rows if row.name.endswith(".dist-info")]
    for record in records[:_MAX_PACKAGES]:
        found |= dict(_rows(record))
    return found


def _rows(record: Path) -> Iterator[tuple[str, _Listed]]:
    import csv

    try:
        changed = record.lstat().st_ctime_ns
        text = (read_regular(record, _MAX_BYTES) or b"").decode("utf-8", "replace")
        for row in csv.reader(text.splitlines()):
            if len(row) == 3 and row[1].startswith("sha256="):
                yield row[0], _Listed(row[1], row[2], changed)
    except (OSError, csv.Error):
        return


def _digest(path: str) -> str:
    data = read_regular(path, _MAX_BYTES) or b""
    return f"sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')}"
