"""Makes copy-on-write layers for commands, finds their changes, and keeps or discards them.

The kernel's overlay shows the project with the command's changes over it. The changes go into a
separate directory. When all processes of the command have ended, ``change_policy`` judges each
change by its real path: allowed ones are moved into the project, unless somebody else has changed
the file since; the rest are discarded, with a note if the command probably meant to keep them.
While a command still runs, only its build outputs are judged and copied. The main process makes
layers; the judge process runs the rest.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from tui_agent.files.atomic import temporary_prefix
from tui_agent.files.descriptors import (
    DIRECTORY,
    PERMISSIONS,
    REGULAR,
    copy_data,
    entries,
    make_directory,
    open_beneath,
    open_directory,
    open_regular,
    parent_beneath,
    remove,
    remove_tree,
    set_mode,
    set_times,
    state_at,
    using,
)
from tui_agent.files.sensitive import is_bare_repository, is_repository_part, steers_programs
from tui_agent.lazy import frozen
from tui_agent.sandbox.project_scan import (
    MAX_DEPTH,
    NEVER_KEPT,
    is_output_directory,
    is_special,
)

_HEAD_BYTES = 16
_PIECE = 1 << 18
MAX_CHANGES = 200_000
"""Maximum number of changes of one command. If a command makes more, none is kept."""


IsIgnored = Callable[[str], bool]
"""Takes a directory's path relative to the project, and returns True if git ignores it."""

Stamp = tuple[int, ...]
"""Values from a file's status that change if the file is changed or the directory recreated."""

Made = Mapping[str, Mapping[str, Stamp]]
"""The entries of a copy of the project when a command began, by directory and by name.

The directory is a relative path that ends with a slash, "" for the top.
"""


class ChangeKind(Enum):
    """How the command changed a path."""

    NEW = "new"
    CHANGED = "changed"
    DELETED = "deleted"


@frozen
class LayerChange:
    """One path, relative to the project, that a command created, changed or deleted.

    Each file or directory in a new directory is a change of its own, unless the new directory is
    ``whole``.
    """

    path: str
    kind: ChangeKind
    directory: bool = False
    size: int = 0
    """Size of the previous file in bytes; 0 if the file is new."""
    regular: bool = True
    """False if the path is, or was before the change, a link or a special file such as a pipe."""
    head: bytes = b""
    """The first 16 bytes of a new file, or of a changed file's previous version."""
    whole: bool = False
    """Whether the change is a directory with all its contents.

    Entries in it that must be judged separately are further changes, marked ``inside``.
    """
    output: bool = False
    """Whether the path is in an output directory, which may itself be new."""
    inside: bool = False
    """Whether the path is in a ``whole`` directory, and is kept with it unless it is discarded."""
    link: str | None = None
    """The target of the new symbolic link; None if the path isn't a link now."""
    special: bool = False
    """Whether the path is now of a kind that is never kept.

    These are pipes, sockets and devices, files with setuid, setgid or huge holes, and directories
    that can't be read.
    """
    repository: bool = False
    """Whether the path is one of git's own in a directory that git treats as a bare repository."""


@frozen
class Layer:
    """A layer, that is, the directory ``place`` that receives one command's changes.

    Its subdirectory ``upper`` contains the changes, and ``work`` is needed by the kernel's overlay.
    If ``is_copy`` is True, ``upper`` is instead a copy of the project, on which the command works.
    """

    project: Path
    place: Path
    is_copy: bool = False
    live: bool = False
    """Whether the layer receives only the changes in output directories.

    The command then sees the rest of the project as it is, including later changes.
    """

    @property
    def upper(self) -> Path:
        return self.place / "upper"

    @property
    def work(self) -> Path:
        return self.place / "work"

    def make_directories(self, name: Path) -> tuple[Path, Path]:
        """Create the two directories that an overlay over one directory of the project needs.

        ``name`` is its relative path. Returns the directory for changes, with the permissions of
        the project's directory, and the work directory that the kernel needs.
        """
        upper = self.upper / name
        work = self.work / name_for(name)
        for place in (upper, work):
            place.mkdir(parents=True, exist_ok=True)
        upper.chmod(stat.S_IMODE((self.project / name).stat().st_mode))
        return upper, work


def name_for(path: Path) -> str:
    """Return the name, of 16 hex digits, under which this program stores data about a path."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def make_own_directory(owner: object, parent: Path) -> Path:
    """Create a directory in ``parent/tui-agent-UID`` that is removed together with ``owner``.

    It is removed when the object ``owner`` is garbage-collected, or when the program ends. Also
    removes the directories that killed sessions left there. Raises OSError if
    ``parent/tui-agent-UID`` belongs to another user or others have access to it.
    """
    ours = parent / f"tui-agent-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        ours.mkdir(mode=0o700)
    state = ours.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o077:
        raise OSError(errno.EPERM, "not a directory that only this user can access", str(ours))
    for other in ours.glob("[!.]*"):
        with contextlib.suppress(OSError), using(os.open(other / "lock", REGULAR)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(other)
    # The name has a dot until the lock is taken, so that no other session removes it as abandoned.
    unlocked = Path(tempfile.mkdtemp(dir=ours, prefix=".")).resolve()
    lock = os.open(unlocked / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    place = unlocked.rename(unlocked.with_name(unlocked.name[1:]))
    weakref.finalize(owner, os.close, lock)
    # Finalizers run newest first, so this removes the directory before the lock is released.
    weakref.finalize(owner, remove_tree, place)
    return place


def make_layer(project: Path, parent: Path, *, is_copy: bool = False, live: bool = False) -> Layer:
    """Create an empty layer for a command, in a new directory below ``parent``.

    Raises OSError if it can't be created.
    """
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place = Path(tempfile.mkdtemp(prefix="layer-", dir=parent))
    layer = Layer(project, place, is_copy, live)
    layer.upper.mkdir(mode=stat.S_IMODE(project.stat().st_mode))
    layer.work.mkdir()
    return layer


def stamp_of(state: os.stat_result) -> Stamp:
    if stat.S_ISDIR(state.st_mode):
        return (state.st_ino,)
    # Include the status change time, because it is the only time that no program can set back.
    return (state.st_ino, state.st_ctime_ns, state.st_mtime_ns, state.st_size)


def changes_in(
    layer: Layer,
    outputs: frozenset[str],
    is_ignored: IsIgnored = lambda _path: False,
    made: Made | None = None,
) -> list[LayerChange]:
    """Return what a command created, changed and deleted: at most `MAX_CHANGES` + 1 changes.

    The contents of a new directory come after it, those of a deleted directory before it. To keep
    the list short, a new or deleted directory is a single change if it is an output directory or in
    one; only entries of a new directory that must be judged separately, such as links, follow it. A
    file with a new time but the same content is a change only in output directories.

    ``outputs`` are the project's output directories, relative to it. ``made`` are the entries that
    a copy had before the command; None for an overlay.

    Raises:
        RecursionError: directories are nested more than `MAX_DEPTH` deep.
    """
    with opened(layer) as (root, upper):
        place = _Place(upper, root, outputs=outputs, is_ignored=is_ignored, made=made)
        return list(islice(_changes(place), MAX_CHANGES + 1))


@frozen
class _Place:
    """One directory in a walk through a layer.

    ``upper`` is its descriptor in the layer, ``lower`` that of the project's directory at the same
    path, -1 if there is none. ``prefix`` is the path with a slash at the end, "" for the top.
    ``opaque`` is True if this directory or one around it was recreated, so the project's entries
    don't show through. ``output`` is True in an output directory.
    """

    upper: int
    lower: int
    outputs: frozenset[str]
    is_ignored: IsIgnored
    prefix: str = ""
    output: bool = False
    opaque: bool = False
    made: Made | None = None

    @property
    def before(self) -> Mapping[str, Stamp]:
        """The entries of this directory of the copy when the command began; {} for an overlay."""
        if self.made is None or self.opaque:
            return {}
        return self.made.get(self.prefix, {})

    def was_recreated(self, name: str, directory: int) -> bool:
        """Return True if the command recreated the subdirectory ``name``, without its old contents.

        ``directory`` is the subdirectory's descriptor.
        """
        if self.made is None:
            return _is_opaque(directory)
        stamp = stamp_of(os.fstat(directory))
        return self.opaque or self.before.get(name, stamp) != stamp


def _changes(place: _Place) -> Iterator[LayerChange]:
    """Yield a command's changes below a directory of the layer."""
    if place.prefix.count("/") > MAX_DEPTH:
        raise RecursionError(place.prefix)
    rows = sorted(entries(place.upper), key=lambda row: row.name)
    names = {row.name for row in rows}
    below = set[str]()
    if place.lower >= 0:
        below = {row.name for row in entries(place.lower)}
        if place.opaque:
            yield from _deleted_beside(place, names)
        for name in sorted(place.before.keys() - names):
            was = state_at(place.lower, name)
            if was is not None:
                yield from _deletions(place, name, was)
    found = (change for row in rows for change in _change(row, place))
    if is_bare_repository(names | (below if not place.opaque else set())):
        found = (_marked(change, place.prefix) for change in found)
    yield from found


def _marked(change: LayerChange, prefix: str) -> LayerChange:
    """Return a change in a bare repository, marked ``repository`` if the path is git's own.

    Other files in such a directory may be the user's work.
    """
    name = change.path.removeprefix(prefix).partition("/")[0]
    if is_repository_part(name):
        return replace(change, repository=True)
    return change


def _change(row: "os.DirEntry[str]", place: _Place) -> Iterator[LayerChange]:
    """Yield the changes to one directory entry and everything below it."""
    now = state_at(place.upper, row.name)
    if now is None:  # a running job has removed it
        return
    if not stat.S_ISDIR(now.st_mode) and place.before.get(row.name) == stamp_of(now):
        return
    was = None
    if place.lower >= 0:
        was = state_at(place.lower, row.name)
    made_again = _is_output(place, row.name)
    if stat.S_ISCHR(now.st_mode) and now.st_rdev == 0:
        if was is not None:
            yield from _deletions(place, row.name, was)
    elif stat.S_ISDIR(now.st_mode):
        yield from _directory(row.name, was, replace(place, output=made_again))
    else:
        yield from _file(row.name, now, was, replace(place, output=made_again))


def _is_output(place: _Place, name: str) -> bool:
    return place.output or place.prefix + name in place.outputs


def _directory(name: str, was: os.stat_result | None, place: _Place) -> Iterator[LayerChange]:
    """Yield the changes of the directory ``name`` in the layer; ``place`` is its parent."""
    path = place.prefix + name
    try:
        upper = open_directory(place.upper, name)
    except OSError:
        yield _unjudged(path, output=place.output)
        return
    with using(upper):
        was_directory = was is not None and stat.S_ISDIR(was.st_mode)
        opaque = place.opaque or place.was_recreated(name, upper)
        inner = replace(place, upper=upper, lower=-1, prefix=f"{path}/", opaque=opaque)
        if was_directory and not (place.output and opaque):
            with using(os.open(name, DIRECTORY, dir_fd=place.lower)) as lower:
                yield from _changes(replace(inner, lower=lower))
            return
        if was is not None:
            yield from _deletions(place, name, was)
        if place.output or _is_made_again(path, name, place.is_ignored):
            yield from _whole(upper, path)
        else:
            yield LayerChange(path, ChangeKind.NEW, directory=True)
            yield from _changes(inner)


def _is_made_again(path: str, name: str, is_ignored: IsIgnored) -> bool:
    return name not in NEVER_KEPT and is_output_directory(name, path, is_ignored)


def _whole(top: int, path: str) -> Iterator[LayerChange]:
    """Yield a new directory as one change, then the entries in it that are judged separately.

    ``top`` is the directory's descriptor. Also removes the setuid and setgid bits of the directory
    and its subdirectories, and gives the owner access to the subdirectories.
    """
    yield LayerChange(path, ChangeKind.NEW, directory=True, whole=True, output=True)
    os.fchmod(top, os.fstat(top).st_mode & PERMISSIONS)
    pending = [""]
    while pending:
        inner = pending.pop()
        if f"{path}/{inner}".count("/") > MAX_DEPTH:
            raise RecursionError(path)
        try:
            directory = open_beneath(top, inner)
        except OSError:
            yield _unjudged(f"{path}/{inner}", output=True)
            continue
        prefix = f"{path}/"
        if inner:
            prefix = f"{path}/{inner}/"
        with using(directory):
            for change in _entries_of_whole(directory, prefix):
                if change.directory and not change.inside:
                    pending.append(change.path.removeprefix(f"{path}/"))
                else:
                    yield change


def _unjudged(path: str, *, output: bool) -> LayerChange:
    """Return the change for a directory that can't be read, and therefore can't be judged."""
    return LayerChange(
        path, ChangeKind.NEW, directory=True, special=True, output=output, inside=output
    )


def _entries_of_whole(directory: int, prefix: str) -> Iterator[LayerChange]:
    """Yield those entries of a directory that are judged separately, and its other subdirectories.

    Entries that are judged separately are marked ``inside``. The other subdirectories are not
    marked; the caller walks through them. Gives the owner access to a subdirectory whose
    permissions deny it.
    """
    rows = entries(directory)
    is_bare = is_bare_repository({row.name for row in rows})
    for row in rows:
        name, now = prefix + row.name, state_at(directory, row.name)
        if now is None:
            continue
        is_directory = stat.S_ISDIR(now.st_mode)
        repository = is_bare and is_repository_part(row.name)
        if repository or steers_programs(row.name):
            yield LayerChange(
                name,
                ChangeKind.NEW,
                directory=is_directory,
                output=True,
                inside=True,
                repository=repository,
            )
        elif is_directory:
            wanted = now.st_mode & PERMISSIONS | stat.S_IRWXU
            if stat.S_IMODE(now.st_mode) != wanted:
                # A directory must be readable to be judged. Without setuid and setgid, files made
                # in it don't inherit its group.
                with contextlib.suppress(OSError):
                    set_mode(directory, row.name, wanted)
            yield LayerChange(name, ChangeKind.NEW, directory=True)
        elif is_special(now) or stat.S_ISLNK(now.st_mode):
            yield LayerChange(
                name,
                ChangeKind.NEW,
                regular=False,
                output=True,
                inside=True,
                link=_target(directory, row.name, now),
                special=is_special(now),
            )


def _target(parent: int, name: str, now: os.stat_result) -> str | None:
    if not stat.S_ISLNK(now.st_mode):
        return None
    try:
        return os.readlink(name, dir_fd=parent)
    except OSError:
        # A running job has replaced the link. Treat it as a link that leads out of the project.
        return "/"


def _file(
    name: str, now: os.stat_result, was: os.stat_result | None, place: _Place
) -> Iterator[LayerChange]:
    """Yield the change of a file if the command changed the file.

    In output directories a new time is a change, too, because build tools compare times.
    """
    path = place.prefix + name
    output = place.output
    regular = stat.S_ISREG(now.st_mode)
    new = LayerChange(
        path,
        ChangeKind.NEW,
        regular=regular,
        head=_head(place.upper, name) if regular else b"",
        output=output,
        link=_target(place.upper, name, now),
        special=is_special(now),
    )
    if was is None:
        yield new
    elif stat.S_ISDIR(was.st_mode):
        yield from _deletions(place, name, was)
        yield new
    elif (output and was.st_mtime_ns != now.st_mtime_ns) or not _same(place, name, was, now):
        both = regular and stat.S_ISREG(was.st_mode)
        head = b""
        if both:
            head = _head(place.lower, name)
        yield replace(new, kind=ChangeKind.CHANGED, size=was.st_size, regular=both, head=head)


def _deletions(place: _Place, name: str, was: os.stat_result) -> Iterator[LayerChange]:
    """Yield a deletion for each entry below a path in the project, then one for the path itself.

    A deleted output directory is a single change.
    """
    path = place.prefix + name
    output = _is_output(place, name)
    directory = stat.S_ISDIR(was.st_mode)
    if directory and not output:
        with (
            contextlib.suppress(OSError),
            using(os.open(name, DIRECTORY, dir_fd=place.lower)) as lower,
        ):
            yield from _deleted_beside(replace(place, lower=lower, prefix=f"{path}/"), set())
    regular = directory or stat.S_ISREG(was.st_mode)
    whole = directory and output
    yield LayerChange(
        path, ChangeKind.DELETED, directory, was.st_size, regular, whole=whole, output=output
    )


def _deleted_beside(place: _Place, kept: set[str]) -> Iterator[LayerChange]:
    """Yield a deletion for each entry in the project's directory that isn't named in ``kept``."""
    for row in sorted(entries(place.lower), key=lambda row: row.name):
        was = state_at(place.lower, row.name)
        if was is not None and row.name not in kept:
            yield from _deletions(place, row.name, was)


def _is_opaque(directory: int) -> bool:
    for name in ("user.overlay.opaque", "trusted.overlay.opaque"):
        with contextlib.suppress(OSError):
            if os.getxattr(directory, name) == b"y":
                return True
    return False


def _same(place: _Place, name: str, was: os.stat_result, now: os.stat_result) -> bool:
    if was.st_mode != now.st_mode or was.st_size != now.st_size:
        return False
    if stat.S_ISLNK(was.st_mode):
        return _target(place.lower, name, was) == _target(place.upper, name, now)
    return stat.S_ISREG(was.st_mode) and (
        was.st_mtime_ns == now.st_mtime_ns or _same_content(place, name)
    )


def _same_content(place: _Place, name: str) -> bool:
    """Return True if a file has the same bytes in the layer and in the project."""
    try:
        with _reading(place.lower, name) as one, _reading(place.upper, name) as other:
            while data := one.read(_PIECE):
                if data != other.read(_PIECE):
                    return False
            return not other.read(1)
    except OSError:
        return False


def _reading(parent: int, name: str) -> BinaryIO:
    descriptor, _state = open_regular(parent, name)
    return os.fdopen(descriptor, "rb")


def _head(parent: int, name: str) -> bytes:
    try:
        with _reading(parent, name) as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def overtaken(layer: Layer, changes: Sequence[LayerChange]) -> list[LayerChange]:
    """Return the changes to files that someone else changed in the project after the command did.

    The project's version is newer, so that version has to stay. Status change times are compared,
    because programs can set the other times. Build outputs and directories are left out.
    """
    found: list[LayerChange] = []
    with opened(layer) as (root, upper):
        for change in changes:
            if change.output or change.directory:
                continue
            theirs = state_below(root, change.path)
            own = state_below(upper, change.path)
            if theirs is None or own is None:
                continue
            if theirs.st_ctime_ns > own.st_ctime_ns:
                found.append(change)
    return found


def state_below(top: int, path: str) -> os.stat_result | None:
    """Return the status of the file ``path`` below the directory ``top``; None if it is missing."""
    with contextlib.suppress(OSError), parent_beneath(top, path) as (parent, name):
        return state_at(parent, name)
    return None


def keep(layer: Layer, changes: Sequence[LayerChange]) -> list[LayerChange]:
    """Apply changes to the project, and return the changes that failed.

    Links in the project are never followed, because another process may have made them.
    """
    failed = []
    with opened(layer) as (root, upper):
        # Deletions come first, the innermost first; then new files, the outermost first.
        for change in changes:
            if change.kind is ChangeKind.DELETED and not _delete(root, change):
                failed.append(change)
        for change in changes:
            if change.kind is not ChangeKind.DELETED and not _move_in(root, upper, change):
                failed.append(change)
    return failed


def publish(layer: Layer, changes: Sequence[LayerChange]) -> None:
    """Copy new and changed files into the project while a command still works on the layer.

    Deletions, links, repositories and files that control programs wait for the command's end,
    because the command may replace a file after it was judged. Failures are ignored.
    """
    with opened(layer) as (root, upper):
        for change in changes:
            if change.kind is not ChangeKind.DELETED and change.link is None and not change.inside:
                _move_in(root, upper, change, ended=False)


def discard(layer: Layer, changes: Sequence[LayerChange]) -> None:
    """Remove entries from the layer, so that they aren't kept together with their directory."""
    with opened(layer) as (_root, upper):
        for change in changes:
            with parent_beneath(upper, change.path) as (here, name):
                remove(here, name)


@contextlib.contextmanager
def opened(layer: Layer) -> Iterator[tuple[int, int]]:
    """Yield descriptors of the project and of the layer's ``upper``, and close them afterwards."""
    with (
        using(os.open(layer.project, DIRECTORY)) as root,
        using(os.open(layer.upper, DIRECTORY)) as upper,
    ):
        yield root, upper


def _delete(root: int, change: LayerChange) -> bool:
    try:
        with parent_beneath(root, change.path) as (here, name):
            if change.whole:
                remove(here, name)
            elif change.directory:
                os.rmdir(name, dir_fd=here)
            else:
                os.unlink(name, dir_fd=here)
    except FileNotFoundError:
        return True
    except (OSError, RecursionError):
        return False
    return True


def _move_in(root: int, upper: int, change: LayerChange, *, ended: bool = True) -> bool:
    try:
        with (
            parent_beneath(root, change.path, make=True) as (here, name),
            parent_beneath(upper, change.path) as (there, _),
        ):
            if change.directory and not change.whole:
                os.close(_make_like(there, here, name))
            elif ended:
                _move(there, here, name)
            else:
                _copy(there, here, name, ended=False)
    except OSError:
        return False
    return True


def _make_like(there: int, here: int, name: str) -> int:
    """Make the directory ``name`` in ``here`` with the permissions that it has in ``there``.

    Returns its descriptor.
    """
    return make_directory(here, name, os.stat(name, dir_fd=there, follow_symlinks=False).st_mode)


def _move(there: int, here: int, name: str) -> None:
    if is_special(os.stat(name, dir_fd=there, follow_symlinks=False)):
        raise OSError(errno.EINVAL, "not a plain file, link or directory", name)
    try:
        os.replace(name, name, src_dir_fd=there, dst_dir_fd=here)
    except OSError as error:
        # The error EXDEV means that the layer is on another file system.
        if error.errno != errno.EXDEV:
            raise
        _copy(there, here, name)


def _copy(there: int, here: int, name: str, *, ended: bool = True) -> None:
    """Copy ``name``, with everything in it, from the directory ``there`` to the directory ``here``.

    Before the command has ``ended``, these are skipped: links, files that control programs, and
    files that were copied already.
    """
    state = os.stat(name, dir_fd=there, follow_symlinks=False)
    waits = steers_programs(name) or name == "HEAD" or stat.S_ISLNK(state.st_mode)
    if not ended and (waits or _is_copied(state, here, name)):
        return
    if stat.S_ISDIR(state.st_mode):
        with (
            using(os.open(name, DIRECTORY, dir_fd=there)) as inner,
            using(_make_like(there, here, name)) as outer,
        ):
            for row in entries(inner):
                now = state_at(inner, row.name)
                if now is not None and not is_special(now):
                    _copy(inner, outer, row.name, ended=ended)
        return
    beside = f"{temporary_prefix(name)}{secrets.token_hex(6)}.part"
    try:
        if stat.S_ISLNK(state.st_mode):
            os.symlink(os.readlink(name, dir_fd=there), beside, dir_fd=here)
        else:
            copy_file(there, here, name, beside)
        os.replace(beside, name, src_dir_fd=here, dst_dir_fd=here)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=here)
        raise


def copy_file(there: int, here: int, name: str, beside: str) -> None:
    """Copy the file ``name`` in the directory ``there`` to the new file ``beside`` in ``here``.

    Times and permissions are kept, except setuid and setgid. Raises OSError if ``name`` is not a
    regular file or ``beside`` exists.
    """
    source, state = open_regular(there, name)
    with os.fdopen(source, "rb") as reading:
        target = os.open(
            beside,
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o600,
            dir_fd=here,
        )
        with os.fdopen(target, "wb") as writing:
            copy_data(reading.fileno(), writing.fileno(), state.st_size)
            os.fchmod(writing.fileno(), state.st_mode & PERMISSIONS)
            set_times(writing.fileno(), state)


def _is_copied(state: os.stat_result, here: int, name: str) -> bool:
    """Return True if ``here`` has a regular file of this name with the same mode, size and time."""
    try:
        there = os.stat(name, dir_fd=here, follow_symlinks=False)
    except OSError:
        return False
    same = (there.st_mode, there.st_size, there.st_mtime_ns) == (
        state.st_mode,
        state.st_size,
        state.st_mtime_ns,
    )
    return same and stat.S_ISREG(state.st_mode)
