"""The copy of a project that commands work on where the kernel makes no layers.

The judge makes it once and brings it up to date before each command: what has changed in the
project since, and what the last command has left in the copy, is copied again or removed. Blocks
are shared where the file system can do that; a second name (hard link) never stands for a copy,
since a command could change the project's file by it. Takes a second for 10,000 files that are
copied, and 0.15 s for as many that are as they were.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from tui_agent.files.descriptors import (
    DIRECTORY,
    entries,
    make_directory,
    open_beneath,
    open_directory,
    remove,
    set_times,
    state_at,
)
from tui_agent.files.inside import walk_beneath
from tui_agent.lazy import dataclass, frozen
from tui_agent.sandbox.layer import (
    ChangeKind,
    Layer,
    LayerChange,
    Stamp,
    copy_file,
    opened,
    stamp_of,
)
from tui_agent.sandbox.project_scan import MAX_DEPTH, MAX_FILE_BYTES, NEVER_KEPT

MAX_FILES = 10_000
MAX_BYTES = 500 * 1024**2
"""Size of an output or ignored directory that is copied; commands see larger ones where they are, read-only."""

_LEFT_OUT: Stamp = ()
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


@dataclass(slots=True)
class ProjectCopy:
    """A copy, and what it holds.

    ``made`` has the stamps of its entries by directory, ``originals`` those of the project's files
    by path, and of its directories by path with a slash.
    """

    layer: Layer
    made: dict[str, dict[str, Stamp]] = field(default_factory=dict)
    originals: dict[str, Stamp] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    """What is not copied for its size."""

    def refresh(
        self, parts: Iterable[str] | None, left_out: Iterable[str], bounded: Iterable[str]
    ) -> None:
        """Make the copy what the project is now.

        Args:
            parts: directories that alone are copied; None for all.
            left_out: places where a command finds something else; of those only the name is there.
            bounded: places that are not copied when they are large.

        Raises:
            OSError: there is no room.
        """
        before = ProjectCopy(self.layer, self.made, self.originals, self.large)
        # What fails on the way is copied anew by the next one.
        self.made = {}
        self.originals = {}
        self.large = set()
        only = None
        if parts is not None:
            only = frozenset(parts)
        self._open_to_its_user()
        with opened(self.layer) as (root, upper):
            device = os.fstat(root).st_dev
            work = _Refresh(before, self, frozenset(left_out), frozenset(bounded), device)
            work.directory(root, upper, "", only)

    def _open_to_its_user(self) -> None:
        """Give back what a command took from the copy's own permissions."""
        place = os.open(self.layer.place, DIRECTORY)
        try:
            os.close(open_directory(place, self.layer.upper.name))
        finally:
            os.close(place)

    def conflicts(self, changes: Sequence[LayerChange]) -> list[LayerChange]:
        """Return the changes of what somebody else changed in the project since the copy was brought up to date.

        Theirs stays: the command did not know of it. What stands for a file that was left out is
        among them, too.
        """
        with opened(self.layer) as (root, upper):
            return list(_Conflicts(self, root, upper).among(changes))

    def took(self, changes: Sequence[LayerChange]) -> None:
        """Note that these changes are in the project now."""
        with opened(self.layer) as (root, _upper):
            for change in changes:
                for path, state in _at_and_below(root, change.path):
                    self.originals[_key(path, state)] = stamp_of(state)

    def stand_ins(self) -> set[int]:
        """Return the inodes of what stands for files and directories that were left out."""
        found = set()
        for path, original in self.originals.items():
            directory, _, name = path.removesuffix("/").rpartition("/")
            made = self.made.get(f"{directory}/" if directory else "", {}).get(name)
            if original == _LEFT_OUT and made is not None:
                found.add(made[0])
        return found


class _Conflicts:
    """Compares what a command changed on a copy with what has changed in the project meanwhile.

    ``root`` and ``upper`` are descriptors of the project and of its copy.
    """

    def __init__(self, copy: ProjectCopy, root: int, upper: int) -> None:
        self._copy = copy
        self._root = root
        self._upper = upper
        self._stand_ins = copy.stand_ins()
        self._taken = set[str]()
        """Paths where there is something else in the project now."""
        self._stay = set[str]()
        """Directories in which something stays."""

    def among(self, changes: Sequence[LayerChange]) -> Iterator[LayerChange]:
        for change in changes:
            if self._is_lost(change):
                above = _above(change.path)
                self._stay.update(above)
                yield change

    def _is_lost(self, change: LayerChange) -> bool:
        path = change.path
        if not self._taken.isdisjoint([path, *_above(path)]):
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
        with contextlib.suppress(OSError), _parent_of(self._root, path) as (parent, name):
            state = state_at(parent, name)
            if state is not None:
                return originals.get(_key(path, state)) != stamp_of(state)
        return path in originals or f"{path}/" in originals

    def _is_touched_in(self, path: str) -> bool:
        originals = self._copy.originals
        below = _at_and_below(self._root, path)
        return any(originals.get(_key(inner, state)) != stamp_of(state) for inner, state in below)

    def _stands_for_another(self, change: LayerChange) -> bool:
        if not self._stand_ins:
            return False
        if change.whole:
            found = _at_and_below(self._upper, change.path)
        else:
            found = _at(self._upper, change.path)
        return any(state.st_ino in self._stand_ins for _path, state in found)


def _key(path: str, state: os.stat_result) -> str:
    if stat.S_ISDIR(state.st_mode):
        return f"{path}/"
    return path


def _above(path: str) -> list[str]:
    """Return the directories that a path is in."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


@contextlib.contextmanager
def _parent_of(top: int, path: str) -> Iterator[tuple[int, str]]:
    directory, _, name = path.rpartition("/")
    parent = open_beneath(top, directory)
    try:
        yield parent, name
    finally:
        os.close(parent)


def _at(top: int, path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield an entry and its state, nothing where there is none."""
    with contextlib.suppress(OSError), _parent_of(top, path) as (parent, name):
        state = state_at(parent, name)
        if state is not None:
            yield path, state


def _at_and_below(top: int, path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield an entry and all that are below it, each with its state."""
    pending = [path]
    while pending:
        for inner, state in _at(top, pending.pop()):
            yield inner, state
            if not stat.S_ISDIR(state.st_mode) or inner.count("/") > MAX_DEPTH:
                continue
            with contextlib.suppress(OSError):
                directory = open_beneath(top, inner)
                try:
                    pending.extend(f"{inner}/{row.name}" for row in entries(directory))
                finally:
                    os.close(directory)


@frozen
class _Refresh:
    """One pass over a project and its copy."""

    before: ProjectCopy
    now: ProjectCopy
    left_out: frozenset[str]
    bounded: frozenset[str]
    device: int

    def directory(self, lower: int, upper: int, prefix: str, only: frozenset[str] | None) -> None:
        """Bring one directory up to date, and all below it; ``only`` are the paths in it that are copied."""
        made: dict[str, Stamp] = {}
        for row in entries(lower):
            below = _below(only, row.name)
            was = state_at(lower, row.name)
            if was is None or row.name in NEVER_KEPT or below == frozenset():
                continue
            try:
                if stat.S_ISDIR(was.st_mode):
                    made[row.name] = self._inner(lower, upper, prefix + row.name, was, below)
                elif stat.S_ISREG(was.st_mode) or stat.S_ISLNK(was.st_mode):
                    made[row.name] = self._file(lower, upper, prefix + row.name, was)
            except OSError as error:
                # It may be gone or another by now, and what nobody may read is not there for commands.
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
            os.close(open_directory(upper, name))  # a command may have closed it to its own user
        copy = make_directory(upper, name, was.st_mode | stat.S_IRWXU)
        try:
            self.now.originals[f"{path}/"] = stamp_of(was)
            if self._is_left_out(path, was):
                self.now.originals[f"{path}/"] = _LEFT_OUT
                for row in entries(copy):
                    remove(copy, row.name)
            else:
                original = os.open(name, DIRECTORY, dir_fd=lower)
                try:
                    self.directory(original, copy, f"{path}/", only)
                finally:
                    os.close(original)
            # Build tools compare times of directories, too.
            set_times(copy, was)
            return stamp_of(os.fstat(copy))
        finally:
            os.close(copy)

    def _file(self, lower: int, upper: int, path: str, was: os.stat_result) -> Stamp:
        directory, _, name = path.rpartition("/")
        original = stamp_of(was)
        if self._is_left_out(path, was):
            original = _LEFT_OUT
        known = self.before.made.get(f"{directory}/" if directory else "", {}).get(name)
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
        return stamp_of(mine)

    def _is_left_out(self, path: str, was: os.stat_result) -> bool:
        is_far = was.st_dev != self.device or path.count("/") > MAX_DEPTH
        if is_far or path in self.left_out:
            return True
        if path in self.bounded and self._is_large(path, was):
            self.now.large.add(path)
            return True
        return False

    def _is_large(self, path: str, was: os.stat_result) -> bool:
        """Whether something is too large to be copied; what is there already is not looked at again."""
        if not stat.S_ISDIR(was.st_mode):
            return was.st_size > MAX_FILE_BYTES
        if path in self.before.large or f"{path}/" in self.before.made:
            return path in self.before.large
        files = 0
        size = 0
        for _place, _descriptor, rows in walk_beneath(
            self.now.layer.project / path, lambda _place, _name: True
        ):
            files += len(rows)
            size += sum(row.stat(follow_symlinks=False).st_size for row in rows)
            if files > MAX_FILES or size > MAX_BYTES:
                return True
        return False


def _below(only: frozenset[str] | None, name: str) -> frozenset[str] | None:
    """Return the paths in a directory of this name that are copied: None for all, none where it is not."""
    if only is None or name in only:
        return None
    begin = f"{name}/"
    return frozenset(path.removeprefix(begin) for path in only if path.startswith(begin))
