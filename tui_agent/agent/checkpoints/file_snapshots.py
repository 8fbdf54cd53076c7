"""Takes snapshots of regular files, that is, of their bytes and permission bits, and of links.

The bytes of a link are its target. This module only reads; `Recorder` and `Restorer` store the
bytes.
`place_in` keeps a recorded path from leading out of the project.
"""

import errno
import hashlib
import os
import stat
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tui_agent.files.descriptors import REGULAR, using
from tui_agent.lazy import frozen
from tui_agent.sandbox.project_scan import MAX_FILE_BYTES

TOO_LARGE = f"larger than {MAX_FILE_BYTES // 1_000_000} MB"
NOT_A_FILE = "not a regular file"

LINK_MODE = 0o120000
"""The mode of a link in snapshots and checkpoints, the same as in git."""


class Stamp(NamedTuple):
    """A file's times, size, inode and mode; if any of these differs, the file may have changed."""

    modified: int
    """Time when the file's content last changed, in nanoseconds since the epoch."""
    changed: int
    """Time when the file's content or attributes last changed (ctime), in the same unit."""
    size: int
    inode: int
    mode: int

    @classmethod
    def of(cls, state: os.stat_result) -> "Stamp":
        return cls(state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino, state.st_mode)

    @property
    def kept_mode(self) -> int:
        """The mode as a snapshot has it: the permission bits, or `LINK_MODE` for a link."""
        if stat.S_ISLNK(self.mode):
            return LINK_MODE
        return stat.S_IMODE(self.mode)


@frozen
class Snapshot:
    """The state of a file at one moment, without its bytes.

    ``digest`` is the SHA-256 of its content; None for an absent file, and if ``problem`` says why
    the content is not known. ``mode`` has the permission bits, or is `LINK_MODE` for a link, whose
    content is its target.
    """

    digest: str | None = None
    mode: int = 0
    problem: str = ""
    object: str = field(default="", compare=False)
    """Hash of the git object with the content if only git has the content; otherwise ""."""

    @property
    def exists(self) -> bool:
        """Whether the file existed, even if its content is not known."""
        return self.digest is not None or bool(self.problem)

    @property
    def is_link(self) -> bool:
        return self.mode == LINK_MODE


ABSENT = Snapshot()


@frozen
class Reading:
    """A snapshot with the file's bytes.

    ``data`` is None for an absent file, and if ``snapshot`` has a problem. ``stamp`` is set only if
    the file was opened, or the link was read, for this reading.
    """

    snapshot: Snapshot
    data: bytes | None = None
    stamp: Stamp | None = None


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of data in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def take_snapshot(path: str | Path) -> Reading:
    """Read a file or link and return its snapshot; a directory counts as an absent file.

    Never raises OSError: if the file can't be read, the snapshot's ``problem`` says why.
    """
    try:
        descriptor = os.open(path, REGULAR)
    except (FileNotFoundError, NotADirectoryError):
        return Reading(ABSENT)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return _read_link(path)
        is_other = error.errno == errno.ENXIO
        return Reading(Snapshot(problem=NOT_A_FILE if is_other else _reason(error)))
    with using(descriptor):
        return _read(descriptor)


def _read_link(path: str | Path) -> Reading:
    try:
        data = os.fsencode(os.readlink(path))  # noqa: PTH115 - the target must not be normalised
        state = os.lstat(path)
    except OSError:
        return Reading(Snapshot(problem=NOT_A_FILE))
    return Reading(Snapshot(digest_of(data), LINK_MODE), data, Stamp.of(state))


def _read(descriptor: int) -> Reading:
    state = os.fstat(descriptor)
    if stat.S_ISDIR(state.st_mode):
        # A directory counts as an absent file, because a file may be written here once it is
        # removed.
        return Reading(ABSENT)
    with open(descriptor, "rb", closefd=False) as file:
        mode = stat.S_IMODE(state.st_mode)
        if not stat.S_ISREG(state.st_mode):
            return Reading(Snapshot(mode=mode, problem=NOT_A_FILE))
        try:
            data = None
            if state.st_size <= MAX_FILE_BYTES:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            return Reading(Snapshot(mode=mode, problem=_reason(error)))
        if data is None or len(data) > MAX_FILE_BYTES:
            return Reading(Snapshot(mode=mode, problem=TOO_LARGE), stamp=Stamp.of(state))
        return Reading(Snapshot(digest_of(data), mode), data, Stamp.of(os.fstat(descriptor)))


def place_in(root: Path, path: str) -> Path | None:
    """Return the path ``path`` from a checkpoint as a path below ``root``.

    None if it leads out of the project, passes through a link, or is in ``.git``.
    """
    pure = PurePosixPath(path)
    # Some file systems ignore case and invisible characters, so other spellings also name ``.git``.
    names = {"".join(filter(str.isascii, part)).casefold().rstrip(". ") for part in pure.parts}
    if pure.is_absolute() or not pure.parts or ".." in pure.parts or names & {".git", "git~1"}:
        return None
    place = root
    for part in pure.parts[:-1]:
        place = place / part
        if place.is_symlink():
            return None
    return place / pure.name


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
