"""Restores a project's files as a plan says, and compares files with their snapshots.

A file's content is stored before it is overwritten or deleted, so that restoring can be undone.
This is the package's only module that writes to the project; it appends no entries. Which files to
restore is decided by ``plan``.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from tui_agent.agent.checkpoints.file_snapshots import (
    ABSENT,
    Reading,
    Snapshot,
    digest_of,
    place_in,
    take_snapshot,
)
from tui_agent.agent.checkpoints.plan import (
    CHANGED_SINCE,
    DROPPED,
    MOVED,
    Conflict,
    Difference,
    DirectoryStep,
    RestorePlan,
    RestoreStep,
    decide,
    in_order,
    replaced_directories,
)
from tui_agent.agent.checkpoints.preimages import GitObjects
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.editing.diffs import diff_texts
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_among, is_directory, is_link
from tui_agent.session.errors import StoreError
from tui_agent.text_files.encodings import decode_text
from tui_agent.text_files.replacing import replace_by_link, replace_file

ELSEWHERE = "it leads out of the project"

_COMPARED_BYTES = 1_000_000
"""Maximum size, in bytes, of a file whose lines are compared."""


@frozen
class Restored:
    """The paths of the files that were restored, and the files that could not be restored.

    ``directories`` are the paths of the directories that were created or removed.
    """

    done: tuple[str, ...] = ()
    failed: tuple[Conflict, ...] = ()
    directories: tuple[str, ...] = ()

    def stays(self, plan: RestorePlan) -> tuple[Conflict, ...]:
        """Return the files of the plan that were not restored: first failures, then conflicts."""
        return (*self.failed, *plan.conflicts)


class Restorer:
    """Restores the files of one project; reads and writes files, so call it in a thread."""

    def __init__(self, project: Path, keeping: SnapshotStore) -> None:
        self.root = Path(os.path.realpath(project))
        """The project's directory with links resolved."""
        self._blob = keeping.get
        self._git = GitObjects(self.root)
        self._put = keeping.put
        self._apart = keeping.apart

    def plan(
        self,
        found: Iterable[Difference],
        omitted: int = 0,
        directories: Iterable[DirectoryStep] = (),
    ) -> RestorePlan:
        """Return the plan for restoring the files of ``found``, given their current state on disk.

        ``omitted`` is the number of changed files that were not recorded; it is kept in the plan.
        Of ``directories``, the plan contains those that have to be created or removed.
        """
        found = tuple(found)
        in_git = self._git.sizes({row.there.object for row in found if row.there.object})

        def kept(snapshot: Snapshot) -> bool:
            return snapshot.object in in_git or (
                snapshot.digest is not None and self._blob(snapshot.digest) is not None
            )

        replaced = {row.path for row in found if self._is_removed_link(row)}

        def current(path: str) -> Snapshot:
            if not replaced.isdisjoint(map(str, PurePosixPath(path).parents)):
                # The link is removed first; then there is no file at this path.
                return ABSENT
            return self.current(path).snapshot

        steps, conflicts = decide(found, current, kept)
        needed = tuple(step for step in directories if self._is_due(step))
        return RestorePlan(steps, conflicts, omitted, needed)

    def _is_removed_link(self, difference: Difference) -> bool:
        """Return True if restoring will remove a link, perhaps to make a directory in its place."""
        is_removed = difference.here.is_link and not difference.there.exists
        if not is_removed or difference.reason:
            return False
        return self.current(difference.path).snapshot == difference.here

    def expect(self, snapshots: Iterable[Snapshot]) -> None:
        """Announce the snapshots that `content` will be asked for, in this order.

        This lets `content` read many snapshots at once.
        """
        self._git.expect(snapshot.object for snapshot in snapshots)

    def carry_out(self, plan: RestorePlan) -> Restored:
        """Restore a plan's files, each only if it has not changed since the plan was made."""
        done: list[str] = []
        failed: list[Conflict] = []
        stuck: set[str] = set()
        steps = in_order(plan.steps)
        self.expect(step.wanted for step in steps)
        directories = _Directories(self._place, plan)
        for step in steps:
            if not step.wanted.exists and step.now.digest in stuck:
                failed.append(Conflict(step.path, MOVED))
                continue
            try:
                problem = self._restore(step, directories)
            except OSError as error:
                problem = (error.strerror or type(error).__name__).lower()
            except StoreError as error:
                problem = error.message
            if problem:
                failed.append(Conflict(step.path, problem))
                stuck.update(filter(None, [step.wanted.digest]))
            else:
                done.append(step.path)
        directories.finish()
        changed = [step.path for step in plan.directories if not self._is_due(step)]
        return Restored(tuple(done), tuple(failed), tuple(changed))

    def current(self, path: str) -> Reading:
        """Read the file at a recorded path; if that fails, the snapshot's ``problem`` says why."""
        place = self._place(path)
        if place is None:
            return Reading(Snapshot(problem=ELSEWHERE))
        return take_snapshot(place)

    def _place(self, path: str) -> Path | None:
        place = place_in(self.root, path)
        if place is None or is_among(place, self._apart):
            return None
        return place

    def content(self, snapshot: Snapshot) -> bytes | None:
        """Return the bytes of a snapshot, from the store or git.

        None if the file was absent, or if neither the store nor git has the bytes.
        """
        if snapshot.digest is None:
            return None
        data = self._blob(snapshot.digest)
        if data is None and snapshot.object:
            data = self._git.content(snapshot.object)
        # Git may return other content than the file had, so compare the digests.
        if data is not None and digest_of(data) == snapshot.digest:
            return data
        return None

    def _is_due(self, step: DirectoryStep) -> bool:
        """Return True if the directory still has to be created or removed."""
        place = self._place(step.path)
        if place is None:
            # A link in the way may be replaced by a directory first.
            return step.mode is not None
        exists = is_directory(place) and not is_link(place)
        return exists == (step.mode is None)

    def _restore(self, step: RestoreStep, directories: "_Directories") -> str:
        place = self._place(step.path)
        if place is None:
            return ELSEWHERE
        reading = take_snapshot(place)
        if reading.snapshot != step.now:
            return CHANGED_SINCE
        if reading.data is not None:
            self._put(reading.data)
        if step.wanted.digest is None:
            place.unlink(missing_ok=True)
            return ""
        if reading.snapshot.is_link != step.wanted.is_link or (
            reading.snapshot.digest != step.wanted.digest
        ):
            return self._write(step, place, directories)
        if step.wanted.mode and not step.wanted.is_link:
            place.chmod(step.wanted.mode)
        return ""

    def _write(self, step: RestoreStep, place: Path, directories: "_Directories") -> str:
        """Write a step's file or link; return why that is not possible, or ""."""
        data = self.content(step.wanted)
        if data is None:
            return DROPPED
        directories.make_room(step.path)
        if step.wanted.is_link:
            replace_by_link(place, os.fsdecode(data))
            return ""
        if step.now.is_link:
            place.unlink()
        replace_file(place, data, mode=step.wanted.mode or None)
        return ""


class _Directories:
    """Creates and removes the directories of one plan, which the restored files may depend on.

    Only empty directories are removed, and only those that the plan names or that a restored file
    replaces. All others are the user's.
    """

    def __init__(self, place: Callable[[str], Path | None], plan: RestorePlan) -> None:
        """``place`` returns the absolute path of a recorded path; None if nothing may change it."""
        self._place = place
        self._modes = {step.path: step.mode for step in plan.directories if step.mode is not None}
        """Permission bits of the directories to create, parents first."""
        recorded = {step.path for step in plan.directories if step.mode is None}
        self._unwanted = sorted(recorded | replaced_directories(plan.steps), reverse=True)
        """Directories to remove, each after the directories in it."""

    def make_room(self, path: str) -> None:
        """Create the directories around a file, and remove those in its place if they are empty.

        Raises OSError if a directory can't be created.
        """
        self._remove(name for name in self._unwanted if f"{name}/".startswith(f"{path}/"))
        for parent in reversed(PurePosixPath(path).parents[:-1]):
            self._make(str(parent))

    def finish(self) -> None:
        """Remove and create the remaining directories, and set permission bits.

        A directory that can't be removed or created is left as it is.
        """
        self._remove(self._unwanted)
        for path, mode in self._modes.items():
            with suppress(OSError):
                place = self._make(path)
                if place is not None and not is_link(place):
                    place.chmod(mode)

    def _make(self, path: str) -> Path | None:
        place = self._place(path)
        if place is not None:
            # Until `finish`, files can be written into the directory.
            mode = self._modes.get(path, 0o777) | 0o700
            place.mkdir(mode=mode, exist_ok=True)
        return place

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            # ``rmdir`` raises OSError for a directory that isn't empty, and for links.
            place = self._place(path)
            if place is not None:
                with suppress(OSError):
                    place.rmdir()


@frozen
class ChangedFile:
    """A file that differs from its snapshot.

    ``mark`` is A (added), M (modified), D (deleted) or ? (the snapshot was not kept). ``path`` is
    relative to the project. ``facts`` is a short text such as "+3 -1", or says why the lines can't
    be compared. ``diff`` is a unified diff of the lines; "" if they can't be compared.
    """

    mark: str
    path: str
    facts: str
    diff: str = ""


def diff_of(
    found: Sequence[Difference], restorer: Restorer, *, recorded: bool = False
) -> tuple[ChangedFile, ...]:
    """Return the files of ``found``, in order, that changed from the target to now.

    The snapshots at the target (``there``) are compared with the files on disk or, with
    ``recorded``, with the snapshots at the current entry (``here``).
    """
    expected: list[Snapshot] = []
    for row in found:
        expected.append(row.there)
        if recorded:
            expected.append(row.here)
    restorer.expect(expected)
    changed: list[ChangedFile] = []
    for row in found:
        if recorded:
            reading = Reading(row.here, restorer.content(row.here))
        else:
            reading = restorer.current(row.path)
        file = _row(row, reading, restorer)
        if file is not None:
            changed.append(file)
    return tuple(changed)


@frozen
class ChangeAmount:
    """Numbers of changed files, and of added and deleted lines of files that can be compared."""

    files: int = 0
    additions: int = 0
    deletions: int = 0


def amounts_of(changes: Iterable[Sequence[Difference]], restorer: Restorer) -> list[ChangeAmount]:
    """Return the amount of change in each list, from the target to the current entry.

    Reads snapshots, not the files on disk; equal pairs of snapshots are compared only once.
    """
    known: dict[tuple[str | None, str | None], tuple[int, int]] = {}
    amounts = []
    for found in changes:
        restorer.expect(difference.there for difference in found)
        additions = 0
        deletions = 0
        for difference in found:
            key = (difference.there.digest, difference.here.digest)
            if key not in known:
                known[key] = _lines_changed(difference, restorer)
            added, gone = known[key]
            additions += added
            deletions += gone
        amounts.append(ChangeAmount(len(found), additions, deletions))
    return amounts


def _lines_changed(difference: Difference, restorer: Restorer) -> tuple[int, int]:
    """Return how many lines were added and deleted from the target to the current entry.

    Both numbers are 0 if the lines can't be compared.
    """
    old = _text(restorer.content(difference.there))
    new = _text(restorer.content(difference.here))
    if old is None or new is None:
        return 0, 0
    diff = diff_texts(difference.path, old, new)
    return diff.additions, diff.deletions


def _row(difference: Difference, now: Reading, restorer: Restorer) -> ChangedFile | None:
    there = difference.there
    path = difference.path
    if now.snapshot == there and not there.problem:
        return None
    content = restorer.content(there)
    if there.problem or (there.digest is not None and content is None):
        return ChangedFile("?", path, there.problem or DROPPED)
    if not there.exists:
        mark = "A"
    elif not now.snapshot.exists:
        mark = "D"
    else:
        mark = "M"
    if now.snapshot.problem:
        return ChangedFile(mark, path, now.snapshot.problem)
    facts: list[str] = []
    if there.mode and now.snapshot.mode and there.mode != now.snapshot.mode:
        facts.append(f"{_kind_of(there)} → {_kind_of(now.snapshot)}")
    old = _text(content)
    new = _text(now.data)
    if old is None or new is None:
        return ChangedFile(mark, path, " ".join([*facts, "not compared: binary or large"]))
    diff = diff_texts(path, None if content is None else old, new)
    if diff.additions:
        facts.append(f"+{diff.additions}")
    if diff.deletions:
        facts.append(f"-{diff.deletions}")
    return ChangedFile(mark, path, " ".join(facts), diff.text)


def _kind_of(snapshot: Snapshot) -> str:
    if snapshot.is_link:
        return "link"
    return f"mode {snapshot.mode:o}"


def _text(data: bytes | None) -> str | None:
    if data is None:
        return ""
    if len(data) <= _COMPARED_BYTES:
        return decode_text(data)
    return None
