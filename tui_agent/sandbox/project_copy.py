"""The copy of a project that commands work on if the kernel can't make layers.

The judge makes it once and brings it up to date before each command: files that have changed in the
project since, or that the last command has changed in the copy, are copied again or removed. Copy
and original share their blocks if the file system can do that, but never a hard link, through which
a command could change the project's file. Copying 10,000 files takes a second; checking 10,000
unchanged files takes 0.15 s. The module also decides which of a command's changes conflict with
changes that others made in the project (`ProjectCopy.conflicts`).
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from tui_agent.files.descriptors import (
    DIRECTORY,
    entries,
    make_directory,
    open_beneath,
    open_directory,
    remove,
    set_times,
    state_at,
    using,
)
from tui_agent.files.inside import walk_beneath
from tui_agent.lazy import dataclass, frozen
from tui_agent.path_checks import folders_around
from tui_agent.sandbox.layer import (
    ChangeKind,
    Layer,
    LayerChange,
    Stamp,
    copy_file,
    opened,
    stamp_of,
    state_below,
)
from tui_agent.sandbox.project_scan import MAX_DEPTH, MAX_FILE_BYTES, NEVER_KEPT

MAX_FILES = 10_000
MAX_BYTES = 500 * 1024**2
"""Maximum number of files, and of bytes, in an output or ignored directory that is copied.

Larger directories are read-only.
"""

_LEFT_OUT: Stamp = ()
"""Recorded in place of an original's stamp if the copy contains only an empty placeholder."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


@dataclass
class ProjectCopy:
    """A copy of a project, with a record of the state of both at the last refresh.

    ``made`` contains the stamps of the copy's files and directories, in the form of `Made`.
    ``originals`` contains those of the project's files by relative path, which ends with a slash
    for a directory.
    """

    layer: Layer
    made: dict[str, dict[str, Stamp]] = field(default_factory=dict)
    originals: dict[str, Stamp] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    """The relative paths that are not copied because they are too large."""
    stand_ins: set[int] = field(default_factory=set)
    """Inodes of the copy's empty placeholders for files and directories that aren't copied."""

    def refresh(
        self, parts: Iterable[str] | None, left_out: Iterable[str], bounded: Iterable[str]
    ) -> None:
        """Bring the copy up to date with the project, and record the state of both.

        All paths are relative to the project. ``parts`` are the only paths to copy, None for all.
        An empty placeholder replaces the paths in ``left_out``, over which commands have a mount;
        the paths in ``bounded`` that are too large; and paths on other file systems or nested too
        deeply. Raises OSError if there is no space.
        """
        before = replace(self)
        # If this refresh fails, the next one copies everything again.
        self.made = {}
        self.originals = {}
        self.large = set()
        self.stand_ins = set()
        only = None
        if parts is not None:
            only = frozenset(parts)
        self._open_to_its_user()
        with opened(self.layer) as (root, upper):
            device = os.fstat(root).st_dev
            work = _Refresh(before, self, frozenset(left_out), frozenset(bounded), device)
            work.directory(root, upper, "", only)

    def _open_to_its_user(self) -> None:
        """Restore the owner's access to the copy's top directory if a command took it away."""
        with using(os.open(self.layer.place, DIRECTORY)) as place:
            os.close(open_directory(place, self.layer.upper.name))

    def conflicts(self, changes: Sequence[LayerChange]) -> list[LayerChange]:
        """Return those of a command's changes that must not be kept, in the given order.

        These are changes to entries that others have changed in the project since the last refresh,
        without the command's knowledge; new or changed entries made from a placeholder; and
        deletions of directories in which an entry stays.
        """
        with opened(self.layer) as (root, upper):
            return list(_Conflicts(self, root, upper).among(changes))

    def record_applied(self, changes: Sequence[LayerChange]) -> None:
        """Record the project's state after these changes were applied to it.

        Otherwise these changes would count as changes by others.
        """
        with opened(self.layer) as (root, _upper):
            for change in changes:
                for path, state in _at_and_below(root, change.path):
                    self.originals[_key(path, state)] = stamp_of(state)


class _Conflicts:
    """Finds a command's changes that conflict with changes in the project since the last refresh.

    ``root`` and ``upper`` are descriptors of the project and of its copy.
    """

    def __init__(self, copy: ProjectCopy, root: int, upper: int) -> None:
        self._copy = copy
        self._root = root
        self._upper = upper
        self._taken = set[str]()
        """Paths that both the command and others have changed since the copy's last refresh."""
        self._stay = set[str]()
        """Directories that can't be deleted because something in them has to stay."""

    def among(self, changes: Sequence[LayerChange]) -> Iterator[LayerChange]:
        for change in changes:
            if self._note_if_lost(change):
                self._stay |= folders_around([change.path])
                yield change

    def _note_if_lost(self, change: LayerChange) -> bool:
        """Return True if a change can't be kept. If others changed its path, remember the path."""
        path = change.path
        if not self._taken.isdisjoint({path, *folders_around([path])}):
            return True
        is_deleted = change.kind is ChangeKind.DELETED
        if is_deleted and change.directory and not change.whole:
            return path in self._stay
        if self._is_touched(path) or (is_deleted and change.whole and self._is_touched_in(path)):
            self._taken.add(path)
            return True
        return not is_deleted and self._stands_for_another(change)

    def _is_touched(self, path: str) -> bool:
        originals = self._copy.originals
        state = state_below(self._root, path)
        if state is None:
            return path in originals or f"{path}/" in originals
        return self._differs(path, state)

    def _is_touched_in(self, path: str) -> bool:
        below = _at_and_below(self._root, path)
        return any(self._differs(inner, state) for inner, state in below)

    def _differs(self, path: str, state: os.stat_result) -> bool:
        """Return True if a file or directory of the project has changed since it was copied.

        False in directories that are never copied.
        """
        if not NEVER_KEPT.isdisjoint(path.split("/")):
            return False
        return self._copy.originals.get(_key(path, state)) != stamp_of(state)

    def _stands_for_another(self, change: LayerChange) -> bool:
        stand_ins = self._copy.stand_ins
        if not stand_ins:
            return False
        if change.whole:
            found = _at_and_below(self._upper, change.path)
            return any(state.st_ino in stand_ins for _path, state in found)
        itself = state_below(self._upper, change.path)
        return itself is not None and itself.st_ino in stand_ins


def _key(path: str, state: os.stat_result) -> str:
    if stat.S_ISDIR(state.st_mode):
        return f"{path}/"
    return path


def _at_and_below(top: int, path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and status of a file or directory, and of everything below it.

    The paths are relative to ``top``.
    """
    pending = [path]
    while pending:
        inner = pending.pop()
        state = state_below(top, inner)
        if state is None:
            continue
        yield inner, state
        if not stat.S_ISDIR(state.st_mode) or inner.count("/") > MAX_DEPTH:
            continue
        with contextlib.suppress(OSError), using(open_beneath(top, inner)) as directory:
            pending += [f"{inner}/{row.name}" for row in entries(directory)]


@frozen
class _Refresh:
    """One walk over a project that updates the project's copy.

    ``before`` is the record of the last walk, and ``now`` receives the new record. ``device`` is
    the project's file system; directories on other file systems are not copied.
    """

    before: ProjectCopy
    now: ProjectCopy
    left_out: frozenset[str]
    bounded: frozenset[str]
    device: int

    def directory(self, lower: int, upper: int, prefix: str, only: frozenset[str] | None) -> None:
        """Update the copy's directory ``upper`` and everything in it from the original ``lower``.

        Both are descriptors. ``prefix`` is the directory's path in the project, with a slash at the
        end, and ``only`` are the paths in it to copy, None for all.
        """
        before = self.before.made.get(prefix, {})
        made: dict[str, Stamp] = {}
        for row in entries(lower):
            below = _below(only, row.name)
            was = state_at(lower, row.name)
            if was is None or row.name in NEVER_KEPT or below == frozenset():
                continue
            try:
                if stat.S_ISDIR(was.st_mode):
                    path = prefix + row.name
                    made[row.name] = self._inner(lower, upper, path, was, below)
                elif stat.S_ISREG(was.st_mode) or stat.S_ISLNK(was.st_mode):
                    known = before.get(row.name)
                    made[row.name] = self._file(lower, upper, prefix + row.name, was, known)
            except OSError as error:
                # An entry that has changed meanwhile, or can't be read, isn't copied.
                if error.errno in _NO_ROOM:
                    raise
        for row in entries(upper):
            if row.name not in made:
                remove(upper, row.name)
        self.now.made[prefix] = made

    def _inner(
        self,
        lower: int,
        upper: int,
        path: str,
        was: os.stat_result,
        only: frozenset[str] | None,
    ) -> Stamp:
        name = path.rpartition("/")[2]
        mine = state_at(upper, name)
        if mine is not None and not stat.S_ISDIR(mine.st_mode):
            remove(upper, name)
        elif mine is not None:
            os.close(open_directory(upper, name))  # restores the owner's access if it was removed
        with using(make_directory(upper, name, was.st_mode | stat.S_IRWXU)) as copy:
            state = os.fstat(copy)
            if self._leave_out(path, was):
                self.now.originals[f"{path}/"] = _LEFT_OUT
                self.now.stand_ins.add(state.st_ino)
                for row in entries(copy):
                    remove(copy, row.name)
            else:
                self.now.originals[f"{path}/"] = stamp_of(was)
                with using(os.open(name, DIRECTORY, dir_fd=lower)) as original:
                    self.directory(original, copy, f"{path}/", only)
            # Set the directory's times, too, because build tools compare them.
            set_times(copy, was)
            return stamp_of(state)

    def _file(
        self, lower: int, upper: int, path: str, was: os.stat_result, known: Stamp | None
    ) -> Stamp:
        """Update a file or link in the copy and return its stamp. ``known`` is the old stamp."""
        name = path.rpartition("/")[2]
        original = stamp_of(was)
        if self._leave_out(path, was):
            original = _LEFT_OUT
        mine = state_at(upper, name)
        is_known = self.before.originals.get(path) == original
        if mine is None or not is_known or stamp_of(mine) != known:
            remove(upper, name)
            if original == _LEFT_OUT:
                os.mknod(name, 0o600 | stat.S_IFREG, dir_fd=upper)
            elif stat.S_ISLNK(was.st_mode):
                os.symlink(os.readlink(name, dir_fd=lower), name, dir_fd=upper)
            else:
                copy_file(lower, upper, name, name)
            mine = os.stat(name, dir_fd=upper, follow_symlinks=False)
        self.now.originals[path] = original
        if original == _LEFT_OUT:
            self.now.stand_ins.add(mine.st_ino)
        return stamp_of(mine)

    def _leave_out(self, path: str, was: os.stat_result) -> bool:
        """Return True if a path is not copied. Adds a path that is too large to ``now.large``."""
        is_far = was.st_dev != self.device or path.count("/") > MAX_DEPTH
        if is_far or path in self.left_out:
            return True
        if path in self.bounded and self._is_large(path, was):
            self.now.large.add(path)
            return True
        return False

    def _is_large(self, path: str, was: os.stat_result) -> bool:
        """Return True if a path is too large to copy. A directory is measured only once."""
        if not stat.S_ISDIR(was.st_mode):
            return was.st_size > MAX_FILE_BYTES
        if path in self.before.large or f"{path}/" in self.before.made:
            return path in self.before.large
        files = 0
        size = 0
        for _place, _descriptor, rows in walk_beneath(self.now.layer.project / path):
            files += len(rows)
            size += sum(row.stat(follow_symlinks=False).st_size for row in rows)
            if files > MAX_FILES or size > MAX_BYTES:
                return True
        return False


def _below(only: frozenset[str] | None, name: str) -> frozenset[str] | None:
    """Return the part of ``only`` below the directory ``name``, as paths relative to it.

    None if everything in the directory should be copied, an empty set if nothing should.
    """
    if only is None or name in only:
        return None
    begin = f"{name}/"
    return frozenset(path.removeprefix(begin) for path in only if path.startswith(begin))
