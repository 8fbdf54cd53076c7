"""The directories of races, each with its copies and a record that outlives the program, so that a crash loses nothing.

A race's directory belongs to the program that holds the lock in it. One that nobody holds was left by a program that
was killed: it is found again with its session, or removed.

A copy's stamps are stored beside it. After a crash, what differs from them and from the checkpoints of the branch
becomes one more checkpoint before the runner goes on.
"""

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from tui_agent.agent.checkpoints.file_snapshots import ABSENT, Image, Reading, read_image
from tui_agent.agent.checkpoints.manifest import Manifest, TooLargeError, manifest_of
from tui_agent.agent.checkpoints.plan import after_of, changes_in
from tui_agent.agent.race.copies import Copy, remove_home
from tui_agent.agent.race.specs import Pick
from tui_agent.files.atomic import write_atomically
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_directory, is_there
from tui_agent.session.entries import CheckpointEntry, Entry, FileChange, RaceRunner, UserPart

if TYPE_CHECKING:
    from tui_agent.agent.checkpoints.recorder import SnapshotStore

_RECORD, _LOCK = "race.json", "lock"


class RaceRecord(BaseModel):
    """What has to be known of a race to show it as it stood and to go on with it."""

    model_config = ConfigDict(extra="ignore")

    id: str
    session: str
    project: str
    cwd: str
    start: int | None = None
    prompt: str
    parts: tuple[UserPart, ...]
    check: str = ""
    pick: Pick = "none"
    cost: float | None = None
    """US dollars that each runner may spend; None is no limit."""
    runners: tuple[RaceRunner, ...] = ()
    shared: dict[int, tuple[tuple[str, str], ...]] = {}
    """By a runner's number, the places that its copy shares with the project; only for copies that are whole."""

    def copy_of(self, home: Path, number: int) -> Copy | None:
        """Return a runner's copy, None when it was never finished."""
        if number not in self.shared:
            return None
        places = tuple((Path(place), Path(real)) for place, real in self.shared[number])
        return Copy(home / str(number), Path(self.project), places)


@dataclass(slots=True)
class RaceHome:
    """The directory of one race, held by this program until ``release``."""

    path: Path
    lock: int

    @classmethod
    def make(cls, parent: Path) -> "RaceHome":
        """Make a directory for a new race.

        Raises:
            OSError: it can't be made.
        """
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = parent / secrets.token_hex(6)
        path.mkdir(mode=0o700)
        held = cls.claim(path)
        if held is None:
            raise OSError(f"{path} was taken at once by another program")
        return held

    @classmethod
    def claim(cls, path: Path) -> "RaceHome | None":
        """Take hold of a race's directory; None when a live program has it, or it is gone."""
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

    def save(self, record: RaceRecord) -> None:
        """Write the record down; a crash leaves this one or the one before.

        Raises:
            OSError: it can't be written.
        """
        write_atomically(self.path / _RECORD, record.model_dump_json().encode(), mode=0o600)

    def release(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.lock)

    def remove(self) -> None:
        """Remove the directory with its copies. Takes a moment: call it in a thread."""
        # Without its record it is nobody's race any more, should this be cut short.
        (self.path / _RECORD).unlink(missing_ok=True)
        remove_home(self.path)
        self.release()


def read_record(path: Path) -> RaceRecord | None:
    """Return what is written down in a race's directory, None when nothing can be read."""
    try:
        return RaceRecord.model_validate_json((path / _RECORD).read_bytes())
    except (OSError, ValidationError):
        return None


def homes_in(parent: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from sorted(path for path in parent.iterdir() if is_directory(path) and not path.is_symlink())


@dataclass(frozen=True, slots=True)
class HomeState:
    """What there is of a race: whether a live program works on it, and what is written down of it."""

    path: Path
    in_use: bool
    record: RaceRecord | None


def look_through(parent: Path) -> Iterator[HomeState]:
    """Yield what there is of all races; nothing is kept hold of."""
    for path in homes_in(parent):
        held = RaceHome.claim(path)
        if held is not None:
            held.release()
        yield HomeState(path, held is None, read_record(path))


def remove_left(path: Path) -> bool:
    """Remove the directory of a race that no live program works on; returns whether it is gone."""
    held = RaceHome.claim(path)
    if held is not None:
        held.remove()
    return not is_there(path)


def left_over(parent: Path, session: str) -> Iterator[tuple[RaceHome, RaceRecord]]:
    """Take hold of the races of a session that a program left which is no more."""
    for path in homes_in(parent):
        record = read_record(path)
        if record is not None and record.session == session and (home := RaceHome.claim(path)) is not None:
            yield home, record


UNKNOWN = "it was changed just before the program was killed"

Stamps = dict[str, list[int]]
"""When a file was changed, in nanoseconds, and its size in bytes, by its path."""


async def note_stamps(copy: Copy) -> None:
    """Write down what a copy is like now; where it can't be looked through, nothing."""
    manifest = await _manifest(copy)
    if manifest is not None:
        _place(copy).write_text(json.dumps(_stamps(manifest)), encoding="utf-8")


async def unrecorded(copy: Copy, branch: Sequence[Entry], keeping: "SnapshotStore") -> CheckpointEntry | None:
    """Return what changed in a copy and no checkpoint of its branch tells of, None for nothing.

    Args:
        copy: the copy of a runner that was cut off.
        branch: the entries of its branch.
        keeping: where images go.
    """
    manifest = await _manifest(copy)
    try:
        begun: Stamps = json.loads(_place(copy).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if manifest is None:
        return None
    now = _stamps(manifest)
    known = {change.path: after_of(change) for change in changes_in(branch)}
    files: list[FileChange] = []
    for path in sorted(now.keys() | begun.keys() | known.keys()):
        if path not in known and now.get(path) == begun.get(path):
            continue
        reading = read_image(copy.root / path)
        before = known[path] if path in known else _as_begun(copy, path, begun.get(path), keeping)
        if before != reading.image:
            files.append(_change(path, before, reading, keeping))
    return CheckpointEntry(files=tuple(files)) if files else None


def _as_begun(copy: Copy, path: str, stamp: list[int] | None, keeping: "SnapshotStore") -> Image:
    """Return a file as the copy was made with it: it is the project's, unless that changed since."""
    if stamp is None:
        return ABSENT
    reading = read_image(copy.project / path)
    if reading.stamp is None or reading.data is None or [reading.stamp.modified, reading.stamp.size] != stamp:
        return Image(mode=reading.image.mode, problem=UNKNOWN)
    keeping.put(reading.data)
    return reading.image


def _change(path: str, before: Image, after: Reading, keeping: "SnapshotStore") -> FileChange:
    if after.data is not None:
        keeping.put(after.data)
    return FileChange(
        path=path,
        before=before.digest,
        after=after.image.digest,
        before_mode=before.mode,
        after_mode=after.image.mode,
        no_before=before.problem,
        no_after=after.image.problem,
    )


async def _manifest(copy: Copy) -> Manifest | None:
    try:
        return await manifest_of(copy.root)
    except (TooLargeError, OSError):
        return None


def _stamps(manifest: Manifest) -> Stamps:
    return {path: [stamp.modified, stamp.size] for path, stamp in manifest.items()}


def _place(copy: Copy) -> Path:
    return copy.root.with_name(f"{copy.root.name}.json")
