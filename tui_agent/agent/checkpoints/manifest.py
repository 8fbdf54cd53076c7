"""Lists a project's files and their stamps (its manifest), to find changes without reading files.

Between two listings the project is watched (Linux inotify), and only files that were touched are
examined. The project is listed again if the watch can't tell which files were touched: after
directories were added or deleted, after too many events, and on systems other than Linux.
`Recorder` compares the manifests and reads the files.
"""

import asyncio
import errno
import os
import stat
import struct
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_agent.agent.checkpoints.file_snapshots import Stamp
from tui_agent.files.ignore import IgnoreRules, walk_links
from tui_agent.files.ripgrep import shared_files
from tui_agent.lazy import cached_property

MAX_FILES = 30_000
"""Maximum number of files in a project. In a larger one, changes by commands aren't recorded."""

LIST_SECONDS = 2.0
"""Timeout for listing a project, in seconds.

Without a listing, changes by commands are not recorded.
"""

IGNORE_FILES = frozenset({".gitignore", ".ignore"})

CLOCK_TOLERANCE_NS = 2_000_000_000
"""Possible difference, in nanoseconds, between a file system's clock and the program's."""

CACHES = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "node_modules"}
)
"""Names of directories that programs can rebuild, so changes in them are never recorded."""

MAX_DIRECTORIES = 5_000
"""Maximum number of directories that are watched. A project with more is listed each time.

In such a project, directories that commands create or remove aren't recorded.

The system limits the number of watches of all programs together.
"""

_MODIFY = 0x2
_ATTRIB = 0x4
_CLOSE_WRITE = 0x8
_MOVED = 0xC0
_CREATE = 0x100
_DELETE = 0x200
_SELF = 0xC00
_ONLY_DIRECTORIES = 0x1000000 | 0x2000000  # don't follow links
_UNMOUNTED = 0x2000
_OVERFLOW = 0x4000
_OF_DIRECTORY = 0x40000000
_IGNORED = 0x8000
_MASK = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _SELF | _ONLY_DIRECTORIES
_UNSURE = _SELF | _UNMOUNTED | _OVERFLOW | _IGNORED
_PASSED_OVER = CACHES | {".git", ".hg", ".svn", ".jj"}
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})
"""Errors if a directory was deleted meanwhile, which the watch of its parent reports."""
_EVENT = struct.Struct("iIII")
_READ = 1 << 18


class Manifest(dict[str, Stamp]):
    """Maps the path of each file in a project, relative to the project, to the file's stamp."""

    began = 0
    """Time when the listing of the project began, in nanoseconds since the epoch."""
    linked: tuple[str, ...] = ()
    """Paths of files that have more than one hard link, so they can be changed unnoticed."""
    directories: dict[str, int] | None = None
    """Permission bits of each directory by relative path, as listed by `WatchedProject`.

    Leaves out directories like the ones that `manifest_of` leaves out. None if there are too many.
    """
    left_out: tuple[str, ...] = ()
    """Prefixes of the paths that are left out although they are not ignored."""

    def had(self, stamp: Stamp) -> bool:
        """Return True if a file with this stamp was listed, or if the stamp is newer.

        The listed file may have any path; its inode, modification time and size must match. Newer
        means modified since the listing began, or shortly before (`CLOCK_TOLERANCE_NS`).
        """
        if stamp.modified >= self.began - CLOCK_TOLERANCE_NS:
            return True
        return (stamp.inode, stamp.modified, stamp.size) in self._contents

    @cached_property
    def _contents(self) -> set[tuple[int, int, int]]:
        return {(stamp.inode, stamp.modified, stamp.size) for stamp in self.values()}


class TooLargeError(Exception):
    """Raised if a project is too large to list; the message is a sentence for the user.

    ``for_good`` is True if trying again would fail, too.
    """

    def __init__(self, why: str, *, for_good: bool) -> None:
        super().__init__(
            f"This project {why}: edits can be undone in it, but changes by shell commands can't."
        )
        self.for_good = for_good


async def manifest_of(root: Path, apart: Sequence[Path] = ()) -> Manifest:
    """List the files and links of a project and return its manifest.

    Leaves out ignored ones, caches, git's own files and the directories ``apart``.

    Raises:
        TooLargeError: the project has too many files or takes too long to list.
        OSError: the project can't be listed.
    """
    began = time.time_ns()
    try:
        async with asyncio.timeout(LIST_SECONDS):
            names = await shared_files(root, MAX_FILES)
            links = await asyncio.to_thread(_links, root)
    except TimeoutError:
        raise TooLargeError(
            f"takes longer than {LIST_SECONDS:.0f} s to list", for_good=False
        ) from None
    for what, found_names in (("files", names), ("links", links)):
        if len(found_names) > MAX_FILES:
            raise TooLargeError(f"has more than {MAX_FILES:,} {what}", for_good=True)
    found = await asyncio.to_thread(_stamped, root, names + links, apart)
    found.began = began
    return found


def followed(root: Path, last: Manifest, touched: set[str]) -> Manifest | None:
    """Return the current manifest, given that only the ``touched`` paths may differ from ``last``.

    Returns ``last`` itself if nothing changed; None if the project has to be listed, because a file
    is new (git may ignore it) or an ignore file was touched.
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
        stamp = None
        if state is not None and _is_recorded(state):
            stamp = Stamp.of(state)
        if name not in last and stamp is not None:
            return None
        if stamp != last.get(name):
            different[name] = stamp
    if different:
        kept = Manifest(last)
        kept.linked = last.linked
        kept.directories = last.directories
        kept.left_out = last.left_out
        for name, stamp in different.items():
            if stamp is not None:
                kept[name] = stamp
            else:
                del kept[name]
        last = kept
    last.began = began
    return last


def _links(root: Path) -> list[str]:
    """Return the relative paths of a project's links, at most one more than `MAX_FILES`."""
    return list(walk_links(root, limit=MAX_FILES + 1))


def _is_recorded(state: os.stat_result) -> bool:
    return stat.S_ISREG(state.st_mode) or stat.S_ISLNK(state.st_mode)


def _stamped(root: Path, names: list[str], apart: Sequence[Path]) -> Manifest:
    found = Manifest()
    linked = []
    prefix = f"{root}{os.sep}"
    inside = [place.relative_to(root) for place in apart if place.is_relative_to(root)]
    without = (*[f"{place.as_posix()}/" for place in inside], *_bare_repositories(names))
    for name in names:
        if name.startswith(without) or not CACHES.isdisjoint(name.split("/")[:-1]):
            continue
        try:
            state = os.lstat(prefix + name)
        except OSError:
            continue
        if _is_recorded(state):
            found[name] = Stamp.of(state)
            if state.st_nlink > 1:
                linked.append(name)
    found.linked = tuple(linked)
    found.left_out = without
    return found


def _bare_repositories(names: list[str]) -> Iterator[str]:
    places = [name.removesuffix("HEAD") for name in names if f"/{name}".endswith("/HEAD")]
    if not places:
        return
    known = set(names)
    for place in places:
        has_more = f"{place}description" in known or f"{place}packed-refs" in known
        if f"{place}config" in known and has_more:
            yield place


def _without(
    directories: dict[str, int] | None, prefixes: tuple[str, ...]
) -> dict[str, int] | None:
    if directories is None or not prefixes:
        return directories
    return {path: mode for path, mode in directories.items() if not f"{path}/".startswith(prefixes)}


class WatchedProject:
    """Keeps the manifest of one project current, and examines only files that may have changed."""

    def __init__(self, root: Path, apart: Sequence[Path] = ()) -> None:
        self._root = root
        self._apart = apart
        self._watch = FileWatch(root)
        self._last: Manifest | None = None

    async def look(self) -> Manifest:
        """Return the current manifest, which is the same object as the last one if nothing changed.

        The caller may correct stamps in it; the next manifest is made from it. Calls must not
        overlap. Raises TooLargeError and OSError, as `manifest_of` does.
        """
        last = self._last
        self._last = None
        seen = None
        if (
            last is not None
            and (touched := await asyncio.to_thread(self._watch.touched)) is not None
        ):
            seen = await asyncio.to_thread(followed, self._root, last, touched)
        if seen is None:
            # The watch begins before the listing, so that no change is missed.
            directories = await asyncio.to_thread(self._watch.begin)
            seen = await manifest_of(self._root, self._apart)
            seen.directories = _without(directories, seen.left_out)
            await asyncio.to_thread(self._watch.check, seen)
        self._last = seen
        return seen

    def close(self) -> None:
        self._watch.close()
        self._last = None


class FileWatch:
    """Watches the directories of one project for changes with inotify. Not thread-safe."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._descriptor = -1
        self._places: dict[int, str] = {}
        self._libc: Any = None
        """The C library, whose inotify functions Python lacks; None if there is no watch."""

    def begin(self) -> dict[str, int] | None:
        """Start watching; return the permission bits of each directory that is not ignored.

        The directories are named by their paths relative to the project. None is returned if there
        are more than `MAX_DIRECTORIES`. If watching is impossible, `touched` returns None.
        """
        self.close()
        self._open()
        modes: dict[str, int] = {}
        pending = [("", IgnoreRules.above(Path(self._root)))]
        while pending:
            place, rules = pending.pop()
            if len(modes) >= MAX_DIRECTORIES:
                self.close()
                return None
            path = f"{self._root}/{place}"
            self._add(place, path)
            with suppress(OSError):
                modes[place.removesuffix("/")] = stat.S_IMODE(os.lstat(path).st_mode)
                pending += self._inside(place, path, rules)
        modes.pop("", None)
        return modes

    def _open(self) -> None:
        if sys.platform != "linux":
            return
        import ctypes

        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)

    def _add(self, place: str, path: str) -> None:
        """Watch a directory; if that is impossible, end the watch of all directories."""
        if self._descriptor < 0:
            return
        import ctypes

        watch = self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), _MASK)
        if watch >= 0:
            self._places[watch] = place
        elif ctypes.get_errno() not in _GONE:
            self.close()

    def _inside(self, place: str, path: str, rules: IgnoreRules) -> list[tuple[str, IgnoreRules]]:
        rules = rules.entering(path)
        found: list[tuple[str, IgnoreRules]] = []
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False) or entry.name in _PASSED_OVER:
                    continue
                if not rules.ignored(entry.path, directory=True):
                    found.append((f"{place}{entry.name}/", rules))
        return found

    def check(self, names: Iterable[str]) -> None:
        """End the watch unless the directories of all these files (relative paths) are watched."""
        if not {name[: name.rfind("/") + 1] for name in names} <= set(self._places.values()):
            self.close()

    def touched(self) -> set[str] | None:
        """Return the paths touched since the last call, relative to the project.

        None if they aren't known for certain, which also means that the watch has ended.
        """
        if self._descriptor < 0:
            return None
        names: set[str] = set()
        while True:
            try:
                data = os.read(self._descriptor, _READ)
            except BlockingIOError:
                return names
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
                at += _EVENT.size + length
                if os.fsdecode(name) in _PASSED_OVER and mask & _OF_DIRECTORY:
                    continue
                if mask & (_UNSURE | _OF_DIRECTORY):
                    self.close()
                    return None
                names.add(self._places[watch] + os.fsdecode(name))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._places = {}
