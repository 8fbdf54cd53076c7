"""A view as Landlock can express it, where no other sandbox works. Looks at files.

Landlock allows a process what is named, whole directories with all that is in them, and nothing else. It puts nothing
in another place and can't take a path out of a directory that is allowed: then what is beside that path is named one by
one, and nothing new can be made there. All of the network is kept away by a filter of system calls.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.sandbox.layout import Layout, Mount, MountKind

MIN_ABI = 3
"""Before this version files could be emptied that may not be written to."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_STARTER = Path(__file__).with_name("landlock_start.py")

Grant = tuple[str, str]
"""A path, and what is allowed there and below: ``list``, ``read`` or ``write``."""


@lru_cache(maxsize=1)
def abi() -> int:
    """Return the version of Landlock that the kernel has, 0 for none."""
    try:
        import landlockpy
    except ImportError:
        return 0
    try:
        return landlockpy.abi_version()
    except OSError:
        return 0


def grants(layout: Layout) -> list[Grant]:
    """Return what is allowed so that a command has the view of a layout, as far as that goes."""
    mounts = layout.ordered()
    found: list[Grant] = [(name, "write") for name in _DEVICES if Path(name).exists()]
    found.append(("/proc", "read"))
    for mount in mounts:
        if mount.put is MountKind.PRIVATE:
            found.append((str(mount.source), "write"))
        elif mount.put in {MountKind.READ, MountKind.WRITE}:
            found += _cover(mount, mounts)
    return list(dict.fromkeys(found))


def _cover(mount: Mount, mounts: Sequence[Mount]) -> Iterator[Grant]:
    """Yield a directory as a whole, or its parts beside what has fewer rights."""
    less = {MountKind.HIDDEN_FILE, MountKind.HIDDEN_DIRECTORY, MountKind.EMPTY}
    if mount.put is MountKind.WRITE:
        less.add(MountKind.READ)
    others = (other.place for other in mounts if other.put in less and other.place != mount.place)
    apart = {str(place) for place in others if place.is_relative_to(mount.place)}
    on_the_way = {str(parent) for place in apart for parent in Path(place).parents}
    yield from _beside(str(mount.place), apart, on_the_way, mount.put.value)


def _beside(path: str, apart: set[str], on_the_way: set[str], right: str) -> Iterator[Grant]:
    if path in apart:
        return
    if path not in on_the_way:
        yield path, right
        return
    yield path, "list"
    try:
        with os.scandir(path) as scanned:
            rows = list(scanned)
    except OSError:
        return
    for row in rows:
        # Where a link leads is allowed there, or not.
        if not row.is_symlink():
            yield from _beside(row.path, apart, on_the_way, right)


def start_command(specification: int, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command line that runs a command under Landlock; ``specification`` is the descriptor of its grants."""
    import landlockpy

    packages = str(Path(landlockpy.__file__).parent.parent)
    return (sys.executable, "-I", "-S", str(_STARTER), packages, f"/proc/{os.getpid()}/fd/{specification}", *command)


def specification(layout: Layout) -> int:
    """Return the descriptor of a file in memory that tells what a command with a view is allowed."""
    told = json.dumps(grants(layout)).encode("utf-8", "surrogateescape")
    descriptor = os.memfd_create("view")
    os.write(descriptor, told)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
