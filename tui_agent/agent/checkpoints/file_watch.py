"""Watches a project between two looks at it (Linux inotify), so that it is not listed again where nothing changed.

A watch only says which names something happened to; what happened is read from the files. Where it cannot say that for
sure (a directory came or went, too much happened at once, another system) the project is listed as without it.
"""

import asyncio
import os
import struct
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.agent.checkpoints.manifest import CACHES, Manifest, followed, manifest_of
from tui_agent.files.ignore import IgnoreRules

MAX_DIRECTORIES = 5_000
"""A project with more is listed each time: a user has some ten thousand watches for all programs together."""

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED, _CREATE, _DELETE = 0x2, 0x4, 0x8, 0xC0, 0x100, 0x200
_SELF = 0xC00
_ONLY_DIRECTORIES = 0x1000000 | 0x2000000  # and no links
_UNMOUNTED, _OVERFLOW, _OF_DIRECTORY = 0x2000, 0x4000, 0x40000000
_IGNORED = 0x8000
_MASK = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _SELF | _ONLY_DIRECTORIES
_UNSURE = _SELF | _UNMOUNTED | _OVERFLOW | _IGNORED
_PASSED_OVER = CACHES | {".git", ".hg", ".svn", ".jj"}
_EVENT = struct.Struct("iIII")
_READ = 1 << 18


class WatchedProject:
    """One project as it is now, listed again only where that is needed. One `look` at a time."""

    def __init__(self, root: Path, apart: Sequence[Path] = ()) -> None:
        """Watch a directory, but for what is in the directories ``apart``."""
        self._root = root
        self._apart = apart
        self._watch = FileWatch(root)
        self._last: Manifest | None = None

    async def look(self) -> Manifest:
        """Return what is in the project; the same object as before where nothing is different.

        Raises:
            TooLargeError: there is too much of it.
            OSError: it can't be listed.
        """
        last, self._last = self._last, None
        seen = await asyncio.to_thread(self._followed, last) if last is not None else None
        if seen is None:
            # Watched first: what happens while it is listed is looked at the next time.
            await asyncio.to_thread(self._watch.begin)
            seen = await manifest_of(self._root, self._apart)
            await asyncio.to_thread(self._watch.check, seen)
        self._last = seen
        return seen

    def _followed(self, last: Manifest) -> Manifest | None:
        touched = self._watch.touched()
        return None if touched is None else followed(self._root, last, touched)

    def close(self) -> None:
        self._watch.close()
        self._last = None


class FileWatch:
    """Watches the directories of one project. Used by one thread at a time."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._descriptor = -1
        self._places: dict[int, str] = {}

    def begin(self) -> None:
        """Watch from now on; where that can't be, `touched` says so from the beginning."""
        self.close()
        if sys.platform != "linux":
            return
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            return
        self._descriptor = descriptor
        pending = [("", IgnoreRules.above(Path(self._root)))]
        while pending:
            place, rules = pending.pop()
            path = f"{self._root}/{place}"
            watch = libc.inotify_add_watch(descriptor, os.fsencode(path), _MASK)
            if watch < 0 or len(self._places) >= MAX_DIRECTORIES:
                if watch < 0 and ctypes.get_errno() in {2, 20}:  # gone meanwhile, which its parent tells
                    continue
                self.close()
                return
            self._places[watch] = place
            with suppress(OSError):
                pending += self._inside(place, path, rules)

    def _inside(self, place: str, path: str, rules: IgnoreRules) -> list[tuple[str, IgnoreRules]]:
        rules = rules.entering(path)
        with os.scandir(path) as entries:
            return [
                (f"{place}{entry.name}/", rules)
                for entry in entries
                if entry.is_dir(follow_symlinks=False)
                and entry.name not in _PASSED_OVER
                and not rules.ignored(entry.path, directory=True)
            ]

    def check(self, names: Iterable[str]) -> None:
        """Watch nothing rather than miss something: every one of these names has to be in a watched directory."""
        if not {name[: name.rfind("/") + 1] for name in names} <= set(self._places.values()):
            self.close()

    def touched(self) -> set[str] | None:
        """Return the names something happened to since the last time, relative to the project; None when unsure."""
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
