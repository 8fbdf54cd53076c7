"""The manifest of a project: every file that searches see, with its stamp. Making one reads no file."""

import asyncio
import os
import stat
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from tui_agent.agent.checkpoints.file_snapshots import Stamp
from tui_agent.files.ignore import walk_files
from tui_agent.files.ripgrep import NoRipgrepError, list_files

MAX_FILES = 30_000
"""A project with more is not watched."""

LIST_SECONDS = 2.0
"""A project that takes longer to list is not watched."""

IGNORE_FILES = frozenset({".gitignore", ".ignore"})

CLOCK_TOLERANCE_NS = 2_000_000_000
"""Nanoseconds by which the clock of a file system may differ from that of the program."""


class Manifest(dict[str, Stamp]):
    """Stamps by path, relative to the project."""

    began = 0
    """When it was begun to be made."""
    linked: tuple[str, ...] = ()
    """Files that have other names too, by which they may be changed unseen."""

    def had(self, stamp: Stamp) -> bool:
        """Whether a file that is new since was among these under another name, or has been written since."""
        if stamp.modified >= self.began - CLOCK_TOLERANCE_NS:
            return True
        return (stamp.inode, stamp.modified, stamp.size) in self._contents

    @cached_property
    def _contents(self) -> set[tuple[int, int, int]]:
        return {(stamp.inode, stamp.modified, stamp.size) for stamp in self.values()}


CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "node_modules"})
"""Directories that programs make anew by themselves: nobody wants them back, whether or not they are ignored."""


class TooLargeError(Exception):
    """The project can't be watched; the message is one sentence for a person.

    ``for_good`` is false where it may go better the next time.
    """

    def __init__(self, why: str, *, for_good: bool) -> None:
        super().__init__(f"This project {why}: what shell commands change in it can't be taken back, only edits can.")
        self.for_good = for_good


async def manifest_of(root: Path, apart: Sequence[Path] = ()) -> Manifest:
    """Return what is in a project now: ignored files, caches, links and repositories' own data are left out.

    Args:
        root: the project.
        apart: directories that are none of the project's business.

    Raises:
        TooLargeError: there is too much of it.
        OSError: it can't be listed.
    """
    began = time.time_ns()
    try:
        async with asyncio.timeout(LIST_SECONDS):
            names = await _names(root)
    except TimeoutError:
        raise TooLargeError(f"takes longer than {LIST_SECONDS:.0f} s to look through", for_good=False) from None
    found = await asyncio.to_thread(_stamped, root, names, apart)
    found.began = began
    return found


def followed(root: Path, last: Manifest, touched: set[str]) -> Manifest | None:
    """Return what is in a project where something happened to these names only since the last manifest.

    That is the last one itself where nothing is different, and None where only a listing tells: a file is new, and an
    ignore file may be about it.
    """
    began = time.time_ns()
    different: dict[str, Stamp | None] = {}
    for name in touched.union(last.linked):
        if name.rpartition("/")[2] in IGNORE_FILES:
            return None
        try:
            state = os.lstat(root / name)
        except OSError:
            state = None
        stamp = Stamp.of(state) if state is not None and stat.S_ISREG(state.st_mode) else None
        if name not in last and stamp is not None:
            return None
        if stamp != last.get(name):
            different[name] = stamp
    if different:
        kept = Manifest((name, stamp) for name, stamp in last.items() if different.get(name, stamp) is not None)
        kept.update((name, stamp) for name, stamp in different.items() if stamp is not None)
        kept.linked = last.linked
        last = kept
    last.began = began
    return last


async def _names(root: Path) -> list[str]:
    names: list[str] = []

    def sink(found: list[bytes]) -> None:
        if len(names) <= MAX_FILES:
            names.extend(map(os.fsdecode, found))

    try:
        await list_files(root, sink)
    except NoRipgrepError:
        return await asyncio.to_thread(
            lambda: [path.relative_to(root).as_posix() for path in walk_files(root, limit=MAX_FILES + 1)]
        )
    return names


def _stamped(root: Path, names: list[str], apart: Sequence[Path]) -> Manifest:
    if len(names) > MAX_FILES:
        raise TooLargeError(f"has more than {MAX_FILES:,} files", for_good=True)
    found = Manifest()
    linked = []
    prefix = f"{root}{os.sep}"
    without = tuple(f"{place.relative_to(root).as_posix()}/" for place in apart if place.is_relative_to(root))
    without += tuple(_bare_repositories(names))
    for name in names:
        if name.startswith(without) or not CACHES.isdisjoint(name.split("/")[:-1]):
            continue
        try:
            state = os.lstat(prefix + name)
        except OSError:
            continue
        if stat.S_ISREG(state.st_mode):
            found[name] = Stamp.of(state)
            if state.st_nlink > 1:
                linked.append(name)
    found.linked = tuple(linked)
    return found


def _bare_repositories(names: list[str]) -> Iterator[str]:
    """Yield the directories that are repositories without files of their own, with a slash at the end."""
    places = [name.removesuffix("HEAD") for name in names if f"/{name}".endswith("/HEAD")]
    known = set(names) if places else set()
    for place in places:
        if f"{place}config" in known and not known.isdisjoint((f"{place}description", f"{place}packed-refs")):
            yield place
