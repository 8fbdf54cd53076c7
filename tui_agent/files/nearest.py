"""The nearest files below some directories, where a look at all of them would take too long."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path


def nearest_files(
    places: Iterable[Path], enters: Callable[[str], bool], *, names: int, depth: int
) -> Iterator["os.DirEntry[str]"]:
    """Yield what is no directory, nearest first, until some number of names was looked at.

    Of directories those are gone into that ``enters`` takes by their names, no deeper than
    ``depth``; no link is followed.
    """
    pending = deque((str(place), 0) for place in places)
    looked_at = 0
    while pending and looked_at < names:
        folder, at = pending.popleft()
        try:
            with os.scandir(folder) as rows:
                found = list(rows)
        except OSError:
            continue
        looked_at += len(found)
        for row in found:
            if not row.is_dir(follow_symlinks=False):
                yield row
            elif at < depth and enters(row.name):
                pending.append((row.path, at + 1))
