"""Names of files that look alike: other Unicode forms or spaces, bytes that are no text."""

import os
import re
import unicodedata
from itertools import islice
from pathlib import Path

from tui_agent.lazy import LazyPattern
from tui_agent.text_files.encodings import odd_bytes_shown

_MAX_NAMES = 100_000
"""Names of one directory that are compared."""
_UNSEEN = LazyPattern(r"[\u200b-\u200f\u2060\ufeff\u00ad\ufe0f]")
_BLANK = LazyPattern(r"\s")


class AlikeError(Exception):
    """Several names look like the one that was given; the message names them."""


def folded(name: str) -> str:
    """Return what names that look alike have in common."""
    if name.isascii():
        return name
    plain = unicodedata.normalize("NFKC", odd_bytes_shown(name))
    return _BLANK.sub(" ", _UNSEEN.sub("", plain))


def escaped(name: str) -> str:
    """Return a name in which what can't be told apart from something else is written as an escape."""
    return re.sub(
        r"[^\x20-\x7e]",
        lambda match: match[0].encode("ascii", "backslashreplace").decode("ascii"),
        name,
    )


def as_on_disk(path: Path) -> Path:
    """Return a path with its names as on disk; a name with none like it there stays.

    Raises:
        AlikeError: several names are like one that is not there.
    """
    if os.path.lexists(path) or not path.is_absolute():
        return path
    there = next(parent for parent in path.parents if os.path.lexists(parent))
    for name in path.relative_to(there).parts:
        there /= name if os.path.lexists(there / name) else _alike(there, name)
    return there


def _alike(folder: Path, name: str) -> str:
    """Return a directory's only name that looks like another; that one where there is none."""
    wanted = folded(name)
    try:
        with os.scandir(folder) as rows:
            names = [row.name for row in islice(rows, _MAX_NAMES)]
    except OSError:
        return name
    near = [each for each in names if folded(each) == wanted]
    if len(near) > 1:
        alike = " and ".join(escaped(each) for each in sorted(near))
        raise AlikeError(f"there is no {name}, but {alike} look like it. Copy one of them")
    if near:
        return near[0]
    return name
