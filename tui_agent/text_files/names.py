"""Matches file names that look alike: other Unicode forms, other spaces, undecodable bytes."""

import os
import re
import unicodedata
from itertools import islice
from pathlib import Path

from tui_agent.lazy import LazyPattern
from tui_agent.text_files.encodings import odd_bytes_shown

_MAX_NAMES = 100_000
"""Maximum names of one directory that are compared."""
_UNSEEN = LazyPattern(r"[\u200b-\u200f\u2060\ufeff\u00ad\ufe0f]")
_BLANK = LazyPattern(r"\s")


class AlikeError(Exception):
    """Several names look like the given one; the message lists them."""


def folded(name: str) -> str:
    """Return a form that is the same for all names that look alike."""
    if name.isascii():
        return name
    plain = unicodedata.normalize("NFKC", odd_bytes_shown(name))
    return _BLANK.sub(" ", _UNSEEN.sub("", plain))


def escaped(name: str) -> str:
    """Return a name with escapes for characters that look like others or can't be seen."""
    return re.sub(
        r"[^\x20-\x7e]",
        lambda match: match[0].encode("ascii", "backslashreplace").decode("ascii"),
        name,
    )


def as_on_disk(path: Path) -> Path:
    """Return a path with its names as on disk; a name that nothing there looks like stays.

    Raises AlikeError if a name is not there and several look like it.
    """
    if os.path.lexists(path) or not path.is_absolute():
        return path
    there = next(parent for parent in path.parents if os.path.lexists(parent))
    for name in path.relative_to(there).parts:
        there /= name if os.path.lexists(there / name) else _alike(there, name)
    return there


def _alike(folder: Path, name: str) -> str:
    """Return the only name in a directory that looks like ``name``.

    ``name`` itself if there is none.
    """
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
