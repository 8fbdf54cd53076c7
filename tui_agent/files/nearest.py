"""Lists the files nearest to given directories, in trees that are too large to list completely."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path


def nearest_files(
    places: Iterable[Path], enters: Callable[[str], bool], *, names: int, depth: int
) -> Iterator["os.DirEntry[str]"]:
    """Yield the entries below ``places`` that are not directories, nearest first.

    A subdirectory is entered if ``enters`` returns True for its name and it is at most ``depth``
    levels down. The search stops after the directory in which the ``names``-th entry was seen.
    Links are yielded but not followed.
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
