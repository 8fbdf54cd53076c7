"""Finds the file on disk whose name looks like a given name but has other characters.

The names may differ in Unicode forms, kinds of spaces, invisible or control characters, or undecodable
bytes. Characters that read differently are not alike: ``x²`` is not ``x2``.
"""

import os
import re
import unicodedata
from itertools import groupby, islice
from pathlib import Path

from tui_agent.lazy import LazyPattern
from tui_agent.safe_text import listed_name
from tui_agent.text_files.encodings import odd_bytes_shown

_MAX_NAMES = 100_000
"""Maximum number of names in a directory that are compared."""
_INVISIBLE = LazyPattern(
    r"[\u00ad\u034f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe0f\ufeff]"
    r"|⟨U\+(?:00AD|034F|200[B-F]|202[A-E]|206[0-4]|206[6-9]|FE0F|FEFF)⟩"
)
"""Matches invisible characters, as they are and as `listed_name` shows them."""
_READ_OTHERWISE = ("<super>", "<sub>", "<circle>", "<square>", "<fraction>")
"""Kinds of characters whose simpler forms mean something else, such as ``²``, ``①`` and ``½``."""
_BLANK = LazyPattern(r"\s")


class AlikeError(Exception):
    """Raised if a name doesn't exist, but several names exist that look the same.

    The message lists them.
    """


def folded(name: str) -> str:
    """Return a form of a name for comparison: only names that look the same have the same form.

    ``name`` may also be a name as shown in a list (see `listed_name`).
    """
    if name.isascii() and name.isprintable():
        return name
    shown = odd_bytes_shown(listed_name(name))
    plain = ""
    for reads_otherwise, characters in groupby(shown, key=_reads_otherwise):
        part = "".join(characters)
        if not reads_otherwise:
            part = unicodedata.normalize("NFKC", part)
        plain += part
    return _BLANK.sub(" ", _INVISIBLE.sub("", plain))


def _reads_otherwise(character: str) -> bool:
    return unicodedata.decomposition(character).startswith(_READ_OTHERWISE)


def escaped(name: str) -> str:
    r"""Return a name with all characters but printable ASCII as escapes, such as ``\xa0``."""
    return re.sub(
        r"[^\x20-\x7e]",
        lambda match: match[0].encode("ascii", "backslashreplace").decode("ascii"),
        name,
    )


def as_on_disk(path: Path) -> Path:
    """Return a path with each missing name replaced by the name on disk that looks the same.

    A name without such a match is kept, and a relative path is returned unchanged. Raises
    AlikeError if several names look like a missing one, unless the missing one is written like one
    of them with escapes (see `escaped`).
    """
    if os.path.lexists(path) or not path.is_absolute():
        return path
    there = next(parent for parent in path.parents if os.path.lexists(parent))
    for name in path.relative_to(there).parts:
        there /= name if os.path.lexists(there / name) else _alike(there, name)
    return there


def _alike(folder: Path, name: str) -> str:
    """Return the name in a directory that looks like ``name``, or ``name`` itself if there is none.

    ``name`` may also be written with escapes (see `escaped`), to choose among names that look the
    same. Raises AlikeError if several look like it.
    """
    wanted = folded(name)
    try:
        with os.scandir(folder) as rows:
            names = [row.name for row in islice(rows, _MAX_NAMES)]
    except OSError:
        return name
    meant = [each for each in names if "\\" in name and escaped(each) == name]
    near = meant or [each for each in names if folded(each) == wanted]
    if len(near) > 1:
        alike = " and ".join(escaped(each) for each in sorted(near))
        raise AlikeError(
            f"there is no {name}, but {alike} look the same. Use one of these names, as written here"
        )
    if near:
        return near[0]
    return name
