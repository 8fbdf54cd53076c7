"""Plans the restoring of files on the way from one entry of the tree to another, as a three-way plan. Pure.

A file is restored only if it is now exactly as the session last left it on the path one leaves.
Everything else is a conflict and stays as it is: changes made since, or between two changes of the
session, are not the session's.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import PurePosixPath

from tui_agent.agent.checkpoints.file_snapshots import Image
from tui_agent.lazy import frozen
from tui_agent.session.entries import CheckpointEntry, Entry, FileChange

CHANGED_SINCE = "changed since"
CHANGED_BETWEEN = "changed by somebody else in between"
DELETED_SINCE = "deleted since"
BESIDE_JOB = "changed while a background job ran, perhaps by you"
MOVED = "it was moved here and can't go back"
SAME_FILE = "its other spelling may be the same file"
DROPPED = "its image was dropped to save room"
FOREIGN = frozenset({CHANGED_SINCE, CHANGED_BETWEEN, DELETED_SINCE, BESIDE_JOB})
"""Reasons that come from changes by somebody else."""


@frozen
class Difference:
    """A file that is one way here and another there.

    ``reason`` says why it can't be restored whatever it is now.

    ``taken`` are the contents that changes on the way took from there: other people's may be among
    them.
    """

    path: str
    here: Image
    there: Image
    reason: str = ""
    taken: frozenset[str] = frozenset()


@frozen
class RestoreStep:
    """One file to restore: from an image to another; absent is an image too."""

    path: str
    now: Image
    wanted: Image

    @property
    def what(self) -> str:
        if not self.wanted.exists:
            return "delete"
        return "change" if self.now.exists else "create"


@frozen
class Conflict:
    """A file that stays as it is, and why."""

    path: str
    reason: str

    @property
    def is_foreign(self) -> bool:
        """Whether it stays because somebody else changed it."""
        return self.reason in FOREIGN


@frozen
class RestorePlan:
    """Files to restore and files that stay. Empty where no file differs."""

    steps: tuple[RestoreStep, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    omitted: int = 0
    """Changed files that were too many to be recorded."""

    def __bool__(self) -> bool:
        return bool(self.steps or self.conflicts)


def before_of(change: FileChange) -> Image:
    return Image(change.before, change.before_mode, change.no_before, change.before_object)


def after_of(change: FileChange) -> Image:
    return Image(change.after, change.after_mode, change.no_after)


def follows(first: FileChange, second: FileChange) -> bool:
    return after_of(first) == before_of(second) and not first.no_after


def changes_in(entries: Iterable[Entry]) -> list[FileChange]:
    found: list[FileChange] = []
    for entry in entries:
        if isinstance(entry, CheckpointEntry):
            found += entry.files
    return found


def differences(back: Iterable[FileChange], forth: Iterable[FileChange]) -> list[Difference]:
    """Return how files differ, by path.

    ``back`` and ``forth`` lead from the common ancestor to here and to there.
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
    found: Iterable[Difference], current: Callable[[str], Image], kept: Callable[[Image], bool]
) -> tuple[tuple[RestoreStep, ...], tuple[Conflict, ...]]:
    """Return the steps and the conflicts.

    ``kept`` says whether an image's content is still available.
    """
    steps: list[RestoreStep] = []
    conflicts: list[Conflict] = []
    stuck: set[str] = set()
    standing: dict[str, Image] = {}
    for difference in found:
        now = current(difference.path)
        there = difference.there
        if now == there and not there.problem:
            if there.exists and not difference.here.exists:
                standing[difference.path.casefold()] = there
            if difference.reason:
                # Somebody else wrote it in between; where it was moved to, it is not the session's
                # to delete.
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
    # A file that was moved and can't go back is not deleted where it is: it would be nowhere. Nor
    # is one whose name differs in case from one that is there: many file systems take the two for
    # one.
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
    """Order steps so that stopping halfway loses nothing: files are made before others are deleted.

    Anything in the way of a file or its directory is removed first.
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


def _parents(path: str) -> set[str]:
    return {str(parent) for parent in PurePosixPath(path).parents}


def _reason(difference: Difference, now: Image) -> str:
    if problem := difference.there.problem or difference.here.problem:
        return f"no image of it is kept: {problem}"
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
