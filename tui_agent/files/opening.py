"""Opens files where a path has led when it was allowed: not one link is followed on the way there.

A command in the background could put a link in the place of a directory between the question and the answer, or
between the last look and the opening.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def directory(path: Path) -> Iterator[int]:
    """Give a descriptor of a directory, for as long as the block runs. ``path`` is absolute and without links.

    Raises:
        OSError: it is not there, or a link is in the way (``ELOOP``, ``ENOTDIR``).
    """
    descriptor = os.open(path.anchor, _DIRECTORY)
    try:
        for part in path.relative_to(path.anchor).parts:
            inner = os.open(part, _DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading. ``path`` is absolute and without links.

    Raises:
        OSError: it can't be opened, or a link is in the way.
    """
    with directory(path.parent) as parent:
        # Without O_NONBLOCK a pipe in the file's place would wait for somebody to write.
        descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=parent)
    return os.fdopen(descriptor, "rb")


def make_directories(path: Path) -> None:
    """Make a directory and those above it. ``path`` is absolute and without links.

    Raises:
        OSError: one can't be made, or a link is in the way.
    """
    if path == path.parent:
        return
    with suppress(FileNotFoundError), directory(path):
        return
    make_directories(path.parent)
    with directory(path.parent) as parent, suppress(FileExistsError):
        os.mkdir(path.name, dir_fd=parent)
