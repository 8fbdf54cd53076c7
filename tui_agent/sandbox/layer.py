"""The private copy-on-write layer over a project that a command works on, and which changes go into the project.

The kernel's overlay shows the project with the command's changes over it; the changes lie in a directory of their own
until the command has ended and every process of it is gone. Then each is judged: changes that the command's view
allows are moved into the project, the rest is discarded and named. So nothing is ever written that was not judged by
its real path, and the changes are known without looking at anything else.
"""

import contextlib
import errno
import fcntl
import filecmp
import hashlib
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import count, islice
from pathlib import Path

from tui_agent.files.inside import DIRECTORY, descend
from tui_agent.files.sensitive import BARE_REPOSITORY, steers_programs
from tui_agent.lazy import dataclass
from tui_agent.sandbox.project_scan import MAX_DEPTH, NEVER_KEPT, is_output_name, is_special

_HEAD_BYTES = 16
MAX_CHANGES = 200_000
"""Changes of one command that are looked at; a command that makes more has none of them kept."""


class ChangeKind(Enum):
    """How a path changed."""

    NEW = "new"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class LayerChange:
    """One path that is different in the layer. ``path`` is relative to the project, of a new directory only its own."""

    path: str
    kind: ChangeKind
    directory: bool = False
    size: int = 0
    """Size of the previous entry in bytes."""
    regular: bool = True
    """The previous and the new entry are plain files or missing."""
    head: bytes = b""
    """The start of a new file, or of the previous version of a changed one."""
    whole: bool = False
    """A directory with all its contents; only entries marked ``inside`` are listed separately."""
    output: bool = False
    """It is in a directory that is made again, new or not."""
    inside: bool = False
    """It is in a new directory that is taken as a whole, and comes with that unless it is thrown away."""
    link: str | None = None
    """Where it leads, when it is a link now."""
    special: bool = False
    """It is a pipe, a socket or a device now, or runs as its owner: nothing of the kind is kept."""
    repository: bool = False
    """It is, or is in, a directory that git takes for a bare repository."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Where the changes of one command go. ``place`` holds ``upper`` and ``work``, as the kernel wants them."""

    project: Path
    place: Path

    @property
    def upper(self) -> Path:
        return self.place / "upper"

    @property
    def work(self) -> Path:
        return self.place / "work"

    def part(self, name: Path) -> tuple[Path, Path]:
        """Make and return directories of both kinds for a directory of the project that is on the layer alone."""
        upper, work = self.upper / name, self.work / hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        for place in (upper, work):
            place.mkdir(parents=True, exist_ok=True)
        upper.chmod(stat.S_IMODE((self.project / name).stat().st_mode))
        return upper, work


def make_own_directory(owner: object, parent: Path) -> Path:
    """Make a directory that goes with ``owner``; those of killed sessions go. OSError if another user made ours."""
    ours = parent / f"tui-agent-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        ours.mkdir(mode=0o700)
    state = ours.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o077:
        raise OSError(errno.EPERM, "it is not a directory of this user alone", str(ours))
    for other in ours.glob("[!.]*"):
        with contextlib.suppress(OSError):
            lock = os.open(other / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(other)
            finally:
                os.close(lock)
    # Until it is locked nobody may take it for an abandoned one.
    unlocked = Path(tempfile.mkdtemp(dir=ours, prefix=".")).resolve()
    lock = os.open(unlocked / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    place = unlocked.rename(unlocked.with_name(unlocked.name[1:]))
    weakref.finalize(owner, os.close, lock)
    weakref.finalize(owner, remove_tree, place)  # the last one made is called first
    return place


def remove_tree(place: Path) -> None:
    """Remove a file or tree, with directories that nobody may enter: the kernel and commands leave such."""
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
        return
    with contextlib.suppress(RecursionError):
        shutil.rmtree(place, ignore_errors=True)
    # The rest is closed or nested too deeply: it is moved up, a directory at a time.
    pending, numbers = [str(place)] if place.exists() else [], count()
    while pending:
        directory = pending.pop()
        with contextlib.suppress(OSError):
            os.chmod(directory, 0o700)  # noqa: PTH101 - as scandir names it
            with os.scandir(directory) as rows:
                for row in rows:
                    if row.is_dir(follow_symlinks=False):
                        os.chmod(row.path, 0o700)  # noqa: PTH101 - as above
                        pending.append(f"{place}.{next(numbers)}")
                        os.rename(row.path, pending[-1])  # noqa: PTH104 - as above
                    else:
                        os.unlink(row.path)  # noqa: PTH108 - as above
            os.rmdir(directory)  # noqa: PTH106 - as above


def make_layer(project: Path, parent: Path) -> Layer:
    """Make an empty layer for a command; raises OSError where there is no room for it."""
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place = Path(tempfile.mkdtemp(prefix="layer-", dir=parent))
    layer = Layer(project, place)
    layer.upper.mkdir(mode=stat.S_IMODE(project.stat().st_mode))
    layer.work.mkdir()
    return layer


def changes_in(layer: Layer, outputs: frozenset[str]) -> list[LayerChange]:
    """Return the differences from the project; files only touched or copied don't count, except in outputs.

    A directory that is new in an output directory, or gone from it, is one change, so that the list stays short.
    ``outputs`` are the project's output directories, relative to it.

    Raises:
        RecursionError: directories are nested too deeply to be looked into.
    """
    # filecmp remembers files by size and time, which a command sets as it likes.
    filecmp.clear_cache()
    return list(islice(_changes(str(layer.upper), str(layer.project), "", outputs), MAX_CHANGES + 1))


def _changes(
    upper: str, lower: str, prefix: str, outputs: frozenset[str], *, output: bool = False, opaque: bool = False
) -> Iterator[LayerChange]:
    """Yield the changes below a directory of the layer, where the project has ``lower``, "" for no directory.

    ``prefix`` is its path in the project. ``opaque``: it is in a directory that was recreated.
    """
    if prefix.count("/") > MAX_DEPTH:
        raise RecursionError(prefix)
    try:
        with os.scandir(upper) as scanned:
            rows = sorted(scanned, key=lambda row: row.name)
    except OSError:
        return
    opaque = opaque or _is_opaque(upper)
    names = {row.name for row in rows}
    if lower and opaque:
        yield from _deleted_beside(lower, names, prefix)
    found = (change for row in rows for change in _change(row, lower, prefix, outputs, output=output, opaque=opaque))
    if prefix and not names.isdisjoint(BARE_REPOSITORY):
        missing = BARE_REPOSITORY - names
        if not missing or (lower and not opaque and all(os.path.lexists(f"{lower}/{name}") for name in missing)):
            found = (replace(change, repository=True) for change in found)
    yield from found


def _change(
    row: "os.DirEntry[str]", lower: str, prefix: str, outputs: frozenset[str], *, output: bool, opaque: bool
) -> Iterator[LayerChange]:
    """Yield the changes to one directory entry and everything below it; the rest is as for ``_changes``."""
    path, original = prefix + row.name, f"{lower}/{row.name}" if lower else ""
    was, now = _state(original), row.stat(follow_symlinks=False)
    made_again = output or path in outputs
    if stat.S_ISCHR(now.st_mode) and now.st_rdev == 0:
        if was is not None:
            yield from _gone(original, was, path, output=made_again)
    elif stat.S_ISDIR(now.st_mode):
        was_directory = was is not None and stat.S_ISDIR(was.st_mode)
        is_new = not was_directory or (made_again and (opaque or _is_opaque(row.path)))
        if was is not None and is_new:
            yield from _gone(original, was, path, output=made_again)
        named = row.name not in NEVER_KEPT and is_output_name(row.name, directory=True)
        if is_new and (made_again or named):
            yield from _whole(row.path, path)
            return
        if is_new:
            yield LayerChange(path, ChangeKind.NEW, directory=True)
        below = "" if is_new else original
        yield from _changes(row.path, below, f"{path}/", outputs, output=made_again, opaque=opaque)
    else:
        yield from _file(row.path, now, original, was, path=path, output=made_again)


def _whole(written: str, path: str) -> Iterator[LayerChange]:
    """Yield a new directory as one change, and the entries in it that must be judged separately."""
    yield LayerChange(path, ChangeKind.NEW, directory=True, whole=True, output=True)
    pending = [(written, path)]
    while pending:
        directory, prefix = pending.pop()
        if prefix.count("/") > MAX_DEPTH:
            raise RecursionError(prefix)
        mode = stat.S_IMODE(os.lstat(directory).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            # A directory that can't be read could not be judged.
            os.chmod(directory, mode | stat.S_IRWXU)  # noqa: PTH101 - as scandir names it
        with os.scandir(directory) as scanned:
            rows = list(scanned)
        is_bare = {row.name for row in rows} >= BARE_REPOSITORY
        for row in rows:
            name = f"{prefix}/{row.name}"
            now = row.stat(follow_symlinks=False)
            is_directory = stat.S_ISDIR(now.st_mode)
            if is_bare or steers_programs(row.name):
                yield LayerChange(
                    name, ChangeKind.NEW, directory=is_directory, output=True, inside=True, repository=is_bare
                )
            elif is_directory:
                pending.append((row.path, name))
            elif is_special(now.st_mode) or stat.S_ISLNK(now.st_mode):
                yield LayerChange(
                    name, ChangeKind.NEW, regular=False, output=True, inside=True, link=_target(row.path, now),
                    special=is_special(now.st_mode),
                )  # fmt: skip


def _target(written: str, now: os.stat_result) -> str | None:
    return os.readlink(written) if stat.S_ISLNK(now.st_mode) else None  # noqa: PTH115 - as scandir names it


def _file(
    written: str, now: os.stat_result, original: str, was: os.stat_result | None, *, path: str, output: bool
) -> Iterator[LayerChange]:
    """Yield the change to a file. In outputs the time counts too: build tools compare times."""
    regular = stat.S_ISREG(now.st_mode)
    new = LayerChange(
        path, ChangeKind.NEW, regular=regular, head=_head(written) if regular else b"", output=output,
        link=_target(written, now), special=is_special(now.st_mode),
    )  # fmt: skip
    if was is None:
        yield new
    elif stat.S_ISDIR(was.st_mode):
        yield from _gone(original, was, path, output=output)
        yield new
    elif (output and was.st_mtime_ns != now.st_mtime_ns) or not _same(original, was, written, now):
        both = regular and stat.S_ISREG(was.st_mode)
        head = _head(original) if both else b""
        yield replace(new, kind=ChangeKind.CHANGED, size=was.st_size, regular=both, head=head)


def _gone(original: str, was: os.stat_result, path: str, *, output: bool = False) -> Iterator[LayerChange]:
    """Yield the deletion of an entry; an output directory is one change."""
    directory = stat.S_ISDIR(was.st_mode)
    if directory and not output:
        yield from _deleted_beside(original, set(), f"{path}/")
    regular, whole = directory or stat.S_ISREG(was.st_mode), directory and output
    yield LayerChange(path, ChangeKind.DELETED, directory, was.st_size, regular, whole=whole, output=output)


def _deleted_beside(lower: str, kept: set[str], prefix: str) -> Iterator[LayerChange]:
    try:
        with os.scandir(lower) as rows:
            gone = sorted((row for row in rows if row.name not in kept), key=lambda row: row.name)
    except OSError:
        return
    for row in gone:
        yield from _gone(row.path, row.stat(follow_symlinks=False), prefix + row.name)


def _is_opaque(directory: str) -> bool:
    for name in ("user.overlay.opaque", "trusted.overlay.opaque"):
        with contextlib.suppress(OSError):
            if os.getxattr(directory, name, follow_symlinks=False) == b"y":
                return True
    return False


def _state(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _same(original: str, was: os.stat_result, written: str, now: os.stat_result) -> bool:
    if was.st_mode != now.st_mode or was.st_size != now.st_size:
        return False
    if stat.S_ISLNK(was.st_mode):
        return os.readlink(original) == os.readlink(written)  # noqa: PTH115 - called for every file of a layer
    try:
        same_time = was.st_mtime_ns == now.st_mtime_ns
        return stat.S_ISREG(was.st_mode) and (same_time or filecmp.cmp(original, written, shallow=False))
    except OSError:
        return False


def _head(path: str) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - as above
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def keep(layer: Layer, changes: Sequence[LayerChange]) -> list[LayerChange]:
    """Move changes into the project and return those that failed because another process interfered.

    No link is ever followed on the way: a process that runs beside may have put one there.
    """
    # Deletions first, innermost first; then new entries, outermost first.
    gone = [change for change in changes if change.kind is ChangeKind.DELETED]
    new = [change for change in changes if change.kind is not ChangeKind.DELETED]
    with _opened(layer) as (root, upper):
        failed = [change for change in gone if not _delete(root, change)]
        return failed + [change for change in new if not _bring(root, upper, change)]


def publish(layer: Layer, changes: Sequence[LayerChange]) -> None:
    """Copy files and directories into the project while a command still works on the layer.

    It may replace an entry at any moment: files that steer programs, links and repositories wait for the end.
    """
    with _opened(layer) as (root, upper):
        for change in changes:
            if change.kind is not ChangeKind.DELETED and change.link is None and not change.inside:
                _bring(root, upper, change, ended=False)


def discard(layer: Layer, changes: Sequence[LayerChange]) -> None:
    """Discard entries that may not be kept with the new directory they are in."""
    with _opened(layer) as (_root, upper):
        for change in changes:
            with _directory_of(upper, change.path) as (here, name):
                if change.directory:
                    shutil.rmtree(name, dir_fd=here)
                else:
                    os.unlink(name, dir_fd=here)


@contextlib.contextmanager
def _opened(layer: Layer) -> Iterator[tuple[int, int]]:
    root, upper = os.open(layer.project, DIRECTORY), os.open(layer.upper, DIRECTORY)
    try:
        yield root, upper
    finally:
        os.close(root)
        os.close(upper)


@contextlib.contextmanager
def _directory_of(root: int, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the directory that a path is in, below another, without following links; gives the last name too."""
    *parts, name = path.split("/")
    here = descend(os.dup(root), parts, make=make)
    try:
        yield here, name
    finally:
        os.close(here)


def _delete(root: int, change: LayerChange) -> bool:
    try:
        with _directory_of(root, change.path) as (here, name):
            if change.whole:
                shutil.rmtree(name, dir_fd=here)
            elif change.directory:
                os.rmdir(name, dir_fd=here)
            else:
                os.unlink(name, dir_fd=here)
    except FileNotFoundError:
        return True
    except (OSError, RecursionError):
        return False
    return True


def _bring(root: int, upper: int, change: LayerChange, *, ended: bool = True) -> bool:
    try:
        with (
            _directory_of(root, change.path, make=True) as (here, name),
            _directory_of(upper, change.path) as (there, _),
        ):
            if change.directory and not change.whole:
                _make_like(there, here, name)
            elif ended:
                _move(there, here, name)
            else:
                _copy(there, here, name, ended=False)
    except OSError:
        return False
    return True


def _make_like(there: int, here: int, name: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=here)
    os.chmod(name, stat.S_IMODE(os.stat(name, dir_fd=there, follow_symlinks=False).st_mode), dir_fd=here)


def _move(there: int, here: int, name: str) -> None:
    if is_special(os.stat(name, dir_fd=there, follow_symlinks=False).st_mode):
        raise OSError(errno.EINVAL, "neither a plain file, a link nor a directory", name)
    try:
        os.replace(name, name, src_dir_fd=there, dst_dir_fd=here)
    except OSError as error:
        if error.errno != errno.EXDEV:  # the layer is on another file system
            raise
        _copy(there, here, name)


def _copy(there: int, here: int, name: str, *, ended: bool = True) -> None:
    """Copy a file or directory; until the command ends, skip entries that wait for that or are already copied."""
    state = os.stat(name, dir_fd=there, follow_symlinks=False)
    waits = steers_programs(name) or name == "HEAD" or stat.S_ISLNK(state.st_mode)
    if not ended and (waits or _is_copied(state, here, name)):
        return
    if stat.S_ISDIR(state.st_mode):
        _make_like(there, here, name)
        inner, outer = os.open(name, DIRECTORY, dir_fd=there), os.open(name, DIRECTORY, dir_fd=here)
        try:
            for entry in os.listdir(inner):  # noqa: PTH208 - a descriptor
                # To open a pipe would wait for whoever writes to it, for ever.
                if not is_special(os.stat(entry, dir_fd=inner, follow_symlinks=False).st_mode):
                    _copy(inner, outer, entry, ended=ended)
        finally:
            os.close(inner)
            os.close(outer)
        return
    beside = f".{name}.{os.getpid()}.part"
    if stat.S_ISLNK(state.st_mode):
        os.symlink(os.readlink(name, dir_fd=there), beside, dir_fd=here)
    else:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=there)
        target = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=here)
        with open(source, "rb") as reading, open(target, "wb") as writing:  # noqa: PTH123 - descriptors
            _copy_data(reading.fileno(), writing.fileno(), state.st_size)
            os.fchmod(writing.fileno(), stat.S_IMODE(state.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
            os.utime(writing.fileno(), ns=(state.st_atime_ns, state.st_mtime_ns))
    os.replace(beside, name, src_dir_fd=here, dst_dir_fd=here)


def _is_copied(state: os.stat_result, here: int, name: str) -> bool:
    """Whether a file with the same size and time is there already."""
    try:
        there = os.stat(name, dir_fd=here, follow_symlinks=False)
    except OSError:
        return False
    same = (there.st_mode, there.st_size, there.st_mtime_ns) == (state.st_mode, state.st_size, state.st_mtime_ns)
    return same and stat.S_ISREG(state.st_mode)


def _copy_data(reading: int, writing: int, size: int) -> None:
    """Copy the data of a file without its holes: a terabyte of nothing takes no room."""
    os.ftruncate(writing, size)
    at = 0
    while at < size:
        try:
            at = os.lseek(reading, at, os.SEEK_DATA)
        except OSError:  # a hole to the end
            return
        end = os.lseek(reading, at, os.SEEK_HOLE)
        os.lseek(writing, at, os.SEEK_SET)
        while at < end and (sent := os.sendfile(writing, reading, at, end - at)):
            at += sent
