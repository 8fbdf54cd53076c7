"""Creates and removes a race's copies of the project, without writing to the project.

A copy contains the project's present files, including uncommitted and untracked ones, and a git
repository of its own: index and references are copied, new objects stay in the copy, and existing
ones are read from the project's repository. Small ignored files and directories are copied. A large
ignored directory (``node_modules``) becomes a link if a sandbox prevents commands from writing
through it; otherwise it is copied. Caches that programs rebuild are left out.

All functions read and write many files: call them in a thread.
"""

import contextlib
import fcntl
import os
import re
import secrets
import stat
import subprocess
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from threading import Event

from tui_agent.agent.checkpoints.manifest import CACHES
from tui_agent.files.descriptors import copy_data, remove_tree
from tui_agent.files.own_git import private_repository, run_git
from tui_agent.files.sensitive import is_repository_name
from tui_agent.lazy import dataclass, frozen
from tui_agent.path_checks import folders_around, is_directory, is_there
from tui_agent.processes.own_programs import bare_environment, find_program
from tui_agent.sandbox.project_scan import MAX_FILE_BYTES

ORIGINAL = "original"
"""Name of the link in a race's directory through which the copies there reach the project."""

MAX_COPIED_IGNORED = 2_000
"""An ignored directory with more files than this is linked, if possible, instead of copied."""

_LOCK = "lock"
"""Name of a file in a race's directory that is kept locked by the program that runs the race."""
_REMOVAL_SECONDS = 1.0
"""Seconds to wait for the removal of copies. After that it continues in the background."""
_GONE = ".gone-"
"""Prefix of the name of a race's directory while the directory is being removed."""
_SECONDS_TO_CLAIM = 10
"""Number of seconds in which a new or changed race's directory might not be locked yet."""
_WORKERS = 4
"""Number of threads that copy files."""

_File = tuple[str, str, os.stat_result]
"""A file to be copied: its path, the path of the copy, and the file's ``stat`` result."""
_removals: "list[subprocess.Popen[bytes]]" = []
"""The processes that this program started to remove copies. They may outlive this program."""


@frozen
class Copy:
    """A copy of ``project`` in the directory ``root``."""

    root: Path
    project: Path
    shared: tuple[tuple[Path, Path], ...] = ()
    """Paths of the project that the copy reads. Each is a pair of the path used in the copy and the
    real path."""

    def place(self, path: Path) -> Path:
        """Return the path in the copy that corresponds to a path in the project.

        Other paths are returned unchanged.
        """
        if path.is_relative_to(self.project):
            return self.root / path.relative_to(self.project)
        return path


class GivenUpError(OSError):
    """Raised if making a copy was cancelled."""


def make_copy(
    project: Path,
    names: Iterable[str],
    home: Path,
    name: str,
    *,
    may_link: bool,
    given_up: Event | None = None,
) -> Copy:
    """Copy a project into the directory ``home/name`` and return the copy.

    ``names`` are the files that git doesn't ignore, relative to the project; tracked files are
    added. With ``may_link``, large ignored directories become links, because a sandbox prevents
    writing through them. An earlier copy there is replaced. Files that can't be read are left out.
    Raises OSError if a directory can't be read or the copy written, GivenUpError soon after
    ``given_up`` is set.
    """
    project = Path(os.path.realpath(project))
    root = home / name
    if is_there(root):
        remove_home(root)  # An earlier attempt was interrupted.
    root.mkdir(parents=True, mode=0o700)
    original = home / ORIGINAL
    if not original.is_symlink():
        with contextlib.suppress(FileExistsError):
            original.symlink_to(project)
    tracked = run_git(project, "ls-files", "-z") or b""
    listed = {*names, *map(os.fsdecode, filter(None, tracked.split(b"\0")))}
    given_up = given_up or Event()
    work = _Walk(project, root, listed, original, may_link=may_link, given_up=given_up)
    work.directory("")

    def copy(files: list[_File]) -> None:
        for source, target, state in files:
            if given_up.is_set():
                raise GivenUpError
            # The file may have been removed meanwhile, or may be unreadable.
            with contextlib.suppress(FileNotFoundError, PermissionError):
                _copy_file(source, target, state)

    # One thread per directory, because threads that make files in the same one block each other.
    with ThreadPoolExecutor(_WORKERS) as workers:
        for _done in workers.map(copy, work.files):
            pass
    shared = [(original / name, project / name) for name in work.linked]
    objects = private_repository(project, root / ".git", original)
    if objects is not None:
        shared.append(objects)
        _ignore_links(root, work.linked)
    return Copy(root, project, tuple(shared))


def _ignore_links(root: Path, names: Iterable[str]) -> None:
    """Make git ignore the links in a copy.

    This is needed because a pattern such as ``node_modules/`` in ``.gitignore`` ignores only
    directories.
    """
    excluded = root / ".git" / "info" / "exclude"
    with excluded.open("a", encoding="utf-8", errors="surrogateescape") as file:
        for name in names:
            pattern = re.sub(r"([\\\[*?]| $)", r"\\\1", name)
            file.write(f"\n/{pattern}")
        file.write("\n")


@dataclass
class RaceHome:
    """The directory of one race's copies, locked by this program until the directory is removed.

    ``lock`` is the descriptor of the lock file. A directory that isn't locked was abandoned by a
    killed program; the next race or ``doctor --clean`` removes it.
    """

    path: Path
    lock: int

    @classmethod
    def make(cls, parent: Path) -> "RaceHome":
        """Create and lock a directory for a new race in ``parent``, and remove abandoned ones.

        Raises OSError if the directory can't be created or locked.
        """
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in abandoned_homes(parent):
            remove_left(left)
        path = parent / secrets.token_hex(6)
        path.mkdir(mode=0o700)
        held = cls.claim(path)
        if held is None:
            raise OSError(f"another program has locked {path}")
        return held

    @classmethod
    def claim(cls, path: Path) -> "RaceHome | None":
        """Lock the directory of a race and return the locked directory.

        Returns None if another program has locked the directory, or if it doesn't exist.
        """
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        return cls(path, lock)

    def release(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.lock)

    def remove(self) -> None:
        remove_home(self.path)
        self.release()


def abandoned_homes(parent: Path) -> list[Path]:
    """Return the directories in ``parent`` of races whose program no longer runs, sorted by name.

    Directories changed in the last 10 seconds are left out, because they might not be locked yet.
    """
    found = []
    with contextlib.suppress(OSError):
        for path in sorted(parent.iterdir()):
            if not is_directory(path) or path.is_symlink():
                continue
            is_new = time.time() - path.stat().st_mtime <= _SECONDS_TO_CLAIM
            held = None if is_new else RaceHome.claim(path)
            if held is not None:
                held.release()
                found.append(path)
    return found


def remove_left(path: Path) -> bool:
    """Remove an abandoned race's directory, unless a program has locked it.

    Returns True if the directory no longer exists.
    """
    held = RaceHome.claim(path)
    if held is not None:
        held.remove()
    return not is_there(path)


def remove_home(home: Path) -> None:
    """Remove a race's directory with its copies. A long removal continues in the background.

    Tries again as long as the directory exists, because a runner's command that is just starting
    may create it again.
    """
    while is_there(home):
        apart = home.with_name(f"{_GONE}{secrets.token_hex(6)}")
        try:
            home.rename(apart)
        except OSError:
            remove_tree(home)
            return
        _remove_behind(apart)


def _remove_behind(place: Path) -> None:
    """Remove a directory with ``rm``, and wait up to `_REMOVAL_SECONDS` for its end.

    After that the removal continues in the background; the next race removes anything left. If
    there is no ``rm``, or it leaves files, this process removes them.
    """
    rm = find_program("rm")
    if rm is not None:
        with contextlib.suppress(OSError):
            removal = subprocess.Popen(
                [rm, "-rf", "--", place],
                env=bare_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            _removals.append(removal)
            try:
                removal.wait(_REMOVAL_SECONDS)
            except subprocess.TimeoutExpired:
                return
    remove_tree(place)  # rm can't empty directories without write permission.


class _Walk:
    """Walks through a project to create the copy's directories and links, and to list its files."""

    def __init__(
        self,
        project: Path,
        root: Path,
        listed: set[str],
        original: Path,
        *,
        may_link: bool,
        given_up: Event,
    ) -> None:
        self._given_up = given_up
        self._project = str(project)
        self._root = str(root)
        self._listed = listed
        self._directories = folders_around(listed)
        self._original = original
        self._may_link = may_link
        self.files: list[list[_File]] = []
        """The files to copy, in one list per directory."""
        self.linked: list[str] = []
        """The directories that are links in the copy, as paths relative to the project."""

    def directory(self, name: str, *, ignored: bool = False) -> None:
        """Create a directory's subdirectories and links in the copy; add its files to ``files``.

        Descends into its subdirectories. ``name`` is the directory's path relative to the project,
        with a slash at the end, "" for the project. If it is ``ignored`` by git, all its files are
        copied; otherwise large files that git doesn't list are left out. Raises OSError and
        GivenUpError as `make_copy` does.
        """
        if self._given_up.is_set():
            raise GivenUpError
        files: list[_File] = []
        with os.scandir(f"{self._project}/{name}") as rows:
            for row in rows:
                below = f"{name}{row.name}"
                if is_repository_name(row.name) and not ignored:
                    continue
                if row.is_symlink():
                    os.symlink(os.readlink(row.path), f"{self._root}/{below}")  # noqa: PTH115, PTH211 - faster for thousands
                elif row.is_dir(follow_symlinks=False):
                    self._subdirectory(row, below, ignored=ignored)
                elif row.is_file(follow_symlinks=False):
                    state = row.stat(follow_symlinks=False)
                    if ignored or below in self._listed or state.st_size <= MAX_FILE_BYTES:
                        files.append((row.path, f"{self._root}/{below}", state))
        if files:
            self.files.append(files)

    def _subdirectory(self, row: "os.DirEntry[str]", below: str, *, ignored: bool) -> None:
        sizes = accumulate(len(files) for _place, _directories, files in os.walk(row.path))
        has_listed = not ignored and below in self._directories
        if not has_listed and row.name in CACHES - {"node_modules"}:
            return
        if (
            not (has_listed or ignored)
            and self._may_link
            and any(size > MAX_COPIED_IGNORED for size in sizes)
        ):
            os.symlink(self._original / below, f"{self._root}/{below}")  # noqa: PTH211 - as above
            self.linked.append(below)
            return
        mode = stat.S_IMODE(row.stat(follow_symlinks=False).st_mode)
        os.mkdir(f"{self._root}/{below}", mode | 0o700)  # noqa: PTH102 - as above
        self.directory(f"{below}/", ignored=not has_listed)


def _copy_file(source: str, target: str, state: os.stat_result) -> None:
    """Copy a file with its permission bits and times, sharing blocks if the file system can."""
    mode = state.st_mode & 0o777
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            copy_data(reading, writing, state.st_size)
            if stat.S_IMODE(os.fstat(writing).st_mode) != mode:  # The umask removed some bits.
                os.fchmod(writing, mode)
            os.utime(writing, ns=(state.st_atime_ns, state.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)
