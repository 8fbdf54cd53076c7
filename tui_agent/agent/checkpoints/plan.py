"""Plans which files to restore when the user moves from one entry to another. Pure.

A file is restored only if it is now exactly as the session last left it on the current path, and if
the target's snapshot still exists. Any other file is a conflict and stays as it is, for example
because the user or another program has changed it since.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import PurePosixPath

from tui_agent.agent.checkpoints.file_snapshots import Snapshot
from tui_agent.lazy import frozen
from tui_agent.session.entries import CheckpointEntry, DirectoryChange, Entry, FileChange

CHANGED_SINCE = "changed since"
CHANGED_BETWEEN = "changed outside the session between two of its changes"
DELETED_SINCE = "deleted since"
BESIDE_JOB = "changed while a background job ran, perhaps by you"
MOVED = "it was moved here and can't be moved back"
SAME_FILE = "a file whose name differs only in case may be the same file"
DROPPED = "its snapshot was deleted to save space"
FOREIGN = frozenset({CHANGED_SINCE, CHANGED_BETWEEN, DELETED_SINCE, BESIDE_JOB})
"""The reasons for conflicts in which the user or another program changed the file."""


@frozen
class Difference:
    """A file that differs between the current entry (``here``) and the target entry (``there``).

    ``path`` is relative to the project. If the recorded changes alone prevent restoring the file,
    ``reason`` says why; otherwise it is "". ``taken`` are the digests of contents that were
    replaced on the current path, after the common ancestor of the two entries. Some of these
    contents may have been written by the user or another program.
    """

    path: str
    here: Snapshot
    there: Snapshot
    reason: str = ""
    taken: frozenset[str] = frozenset()


@frozen
class RestoreStep:
    """A file to restore, from its snapshot ``now`` to the snapshot ``wanted``.

    ``now`` was taken when the restoration was planned; it is `ABSENT` if the file doesn't exist.
    ``wanted`` is `ABSENT` if the file will be deleted.
    """

    path: str
    now: Snapshot
    wanted: Snapshot

    @property
    def what(self) -> str:
        """What restoring does to the file: "delete", "change" or "create"."""
        if not self.wanted.exists:
            return "delete"
        return "change" if self.now.exists else "create"


@frozen
class Conflict:
    """A file that is not restored. ``reason`` is a clause for the user, shown after the path."""

    path: str
    reason: str

    @property
    def is_foreign(self) -> bool:
        """Whether the file is not restored because the user or another program changed it."""
        return self.reason in FOREIGN


@frozen
class DirectoryStep:
    """A directory to create with the permission bits ``mode``, or to remove if ``mode`` is None.

    A directory is removed only if it is empty.
    """

    path: str
    mode: int | None


@frozen
class RestorePlan:
    """The files and directories to restore, and the conflicts; falsy if there are none of these."""

    steps: tuple[RestoreStep, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    omitted: int = 0
    """Number of changed files that were not recorded because there were too many."""
    directories: tuple[DirectoryStep, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.steps or self.conflicts or self.directories)


def before_of(change: FileChange) -> Snapshot:
    """Return the snapshot that was taken of the file before a change."""
    return Snapshot(change.before, change.before_mode, change.no_before, change.before_object)


def after_of(change: FileChange) -> Snapshot:
    """Return the snapshot that was taken of the file after a change."""
    return Snapshot(change.after, change.after_mode, change.no_after)


def follows(first: FileChange, second: FileChange) -> bool:
    """Return True if the second change started from the file as the first change left it.

    False if there is no snapshot of the file after the first one.
    """
    return after_of(first) == before_of(second) and not first.no_after


def changes_in(entries: Iterable[Entry]) -> list[FileChange]:
    """Return the file changes of all checkpoints among ``entries``, in order."""
    found: list[FileChange] = []
    for entry in entries:
        if isinstance(entry, CheckpointEntry):
            found += entry.files
    return found


def directory_changes_in(entries: Iterable[Entry]) -> list[DirectoryChange]:
    """Return the directory changes of all checkpoints among ``entries``, in order."""
    found: list[DirectoryChange] = []
    for entry in entries:
        if isinstance(entry, CheckpointEntry):
            found += entry.directories
    return found


def directory_differences(
    back: Iterable[DirectoryChange], forth: Iterable[DirectoryChange]
) -> tuple[DirectoryStep, ...]:
    """Return the directories that exist at only one of the current entry and the target.

    ``back`` and ``forth`` are the changes as in `differences`. Parents come before the directories
    in them.
    """
    here: dict[str, int | None] = {}
    there: dict[str, int | None] = {}
    for change in back:
        there.setdefault(change.path, change.before_mode)
        here[change.path] = change.after_mode
    for change in forth:
        here.setdefault(change.path, change.before_mode)
        there[change.path] = change.after_mode
    return tuple(
        DirectoryStep(path, there[path])
        for path in sorted(there)
        if (here[path] is None) != (there[path] is None)
    )


def differences(back: Iterable[FileChange], forth: Iterable[FileChange]) -> list[Difference]:
    """Return the files that differ between the current entry and the target, sorted by path.

    ``back`` are the changes from the common ancestor of the two to the current entry, ``forth`` the
    changes from the ancestor to the target. A file without a known difference is returned, too, if
    its snapshot at the current entry has a problem, or if the recorded changes prevent restoring
    it.
    """
    backs = _by_path(back)
    forths = _by_path(forth)
    found = []
    for path in sorted(backs.keys() | forths.keys()):
        undone = backs.get(path, [])
        done = forths.get(path, [])
        here = after_of(undone[-1]) if undone else before_of(done[0])
        there = after_of(done[-1]) if done else before_of(undone[0])
        obstacle = ""
        if any(change.job for change in undone):
            obstacle = BESIDE_JOB
        elif any(not follows(one, two) for one, two in pairwise(undone)):
            obstacle = CHANGED_BETWEEN
        if here != there or here.problem or obstacle:
            taken = frozenset(change.before for change in undone if change.before is not None)
            found.append(Difference(path, here, there, obstacle, taken))
    return found


def decide(
    found: Iterable[Difference],
    current: Callable[[str], Snapshot],
    kept: Callable[[Snapshot], bool],
) -> tuple[tuple[RestoreStep, ...], tuple[Conflict, ...]]:
    """Return the steps for restoring files, and the conflicts (files that stay as they are).

    Files that already match the target are in neither result. ``current`` takes a path and returns
    the file's snapshot now. ``kept`` returns whether a snapshot's content is still available.
    """
    steps: list[RestoreStep] = []
    conflicts: list[Conflict] = []
    stuck: set[str] = set()
    standing: dict[str, Snapshot] = {}
    for difference in found:
        now = current(difference.path)
        there = difference.there
        if now == there and not there.problem:
            if there.exists and not difference.here.exists:
                standing[difference.path.casefold()] = there
            if difference.reason:
                # The user may have moved the replaced contents to other files. Don't delete such
                # files.
                stuck.update(difference.taken)
            continue
        reason = difference.reason or _reason(difference, now)
        if not reason and there.digest is not None and not kept(there):
            reason = DROPPED
        if reason:
            conflicts.append(Conflict(difference.path, reason))
            stuck.update(difference.taken, filter(None, [there.digest]))
        else:
            steps.append(RestoreStep(difference.path, now, there))
    # Don't delete a file that was moved here and can't be moved back, because its content would be
    # lost. Don't delete a file whose name differs only in case from a kept file's name, because
    # many systems take both for one file.
    possible: list[RestoreStep] = []
    for step in steps:
        if not step.wanted.exists and step.now.digest in stuck:
            conflicts.append(Conflict(step.path, MOVED))
        elif not step.wanted.exists and standing.get(step.path.casefold()) == step.now:
            conflicts.append(Conflict(step.path, SAME_FILE))
        else:
            possible.append(step)
    return tuple(possible), tuple(conflicts)


def in_order(steps: Iterable[RestoreStep]) -> list[RestoreStep]:
    """Return the steps, ordered so that no content is lost if restoring stops halfway.

    Files are written before others are deleted, with one exception: a file is deleted first if its
    path is needed for a directory, or if one of the directories around it has to be replaced by a
    file.
    """
    steps = list(steps)
    places = {step.path for step in steps if step.wanted.exists}
    needed: set[str] = set()
    for path in places:
        needed |= _parents(path)

    def rank(step: RestoreStep) -> int:
        if step.wanted.exists:
            return 1
        is_in_the_way = step.path in needed or not places.isdisjoint(_parents(step.path))
        return 0 if is_in_the_way else 2

    return sorted(steps, key=rank)


def replaced_directories(steps: Iterable[RestoreStep]) -> set[str]:
    """Return the directories that have to make room for files, and the directories in these.

    Includes only directories with a file that is deleted.
    """
    steps = list(steps)
    places = {step.path for step in steps if step.wanted.exists}
    found: set[str] = set()
    for step in steps:
        if not step.wanted.exists:
            around = _parents(step.path)
            found |= {path for path in around if not places.isdisjoint({path, *_parents(path)})}
    return found


def _parents(path: str) -> set[str]:
    return {str(parent) for parent in PurePosixPath(path).parents}


def _reason(difference: Difference, now: Snapshot) -> str:
    if problem := difference.there.problem or difference.here.problem:
        return f"no snapshot of it is kept: {problem}"
    if now.problem:
        return now.problem
    if now != difference.here:
        return CHANGED_SINCE if now.exists else DELETED_SINCE
    return ""


def _by_path(changes: Iterable[FileChange]) -> dict[str, list[FileChange]]:
    found: dict[str, list[FileChange]] = {}
    for change in changes:
        found.setdefault(change.path, []).append(change)
    return found
