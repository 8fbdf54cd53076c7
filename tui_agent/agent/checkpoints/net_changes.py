"""What a session changed in its project's files altogether: each file before its first change and after its last.

What others changed in between is not part of it: where a file was not as the session had left it, the two versions are
merged, so that only the session's own changes remain.
"""

from collections.abc import Callable, Iterable

from tui_agent.agent.checkpoints.file_snapshots import Image
from tui_agent.agent.checkpoints.plan import DROPPED, Conflict, after_of, before_of
from tui_agent.lazy import dataclass
from tui_agent.session.entries import FileChange

Merge = Callable[[bytes, bytes, bytes], bytes | None]
"""Merges ``(base, ours, theirs)``; None where that is not possible."""


@dataclass(frozen=True, slots=True)
class NetChange:
    """One file: its content before and after, None for no file, with its permission bits."""

    path: str
    before: bytes | None
    after: bytes | None
    before_mode: int = 0
    after_mode: int = 0


@dataclass(frozen=True, slots=True)
class NetChanges:
    """All files a session changed. ``left_out`` are those whose content is not known, with the reason."""

    files: tuple[NetChange, ...] = ()
    left_out: tuple[Conflict, ...] = ()
    mixed: tuple[str, ...] = ()
    """Files in which somebody else changed the same lines in between; their changes could not be separated."""


def net_changes(changes: Iterable[FileChange], content: Callable[[Image], bytes | None], merge: Merge) -> NetChanges:
    """Return the sum of changes, by path.

    Args:
        changes: the changes of a path of the tree, oldest first.
        content: returns the bytes of an image, None where they are not kept.
        merge: merges three versions of a file.
    """
    by_path: dict[str, list[FileChange]] = {}
    for change in changes:
        by_path.setdefault(change.path, []).append(change)
    files: list[NetChange] = []
    left_out: list[Conflict] = []
    mixed: list[str] = []
    for path, made in sorted(by_path.items()):
        images = [image for change in made for image in (before_of(change), after_of(change))]
        if reason := next(filter(None, (_missing(image, content) for image in images)), ""):
            left_out.append(Conflict(path, reason))
            continue
        file, is_mixed = _sum(path, made, content, merge)
        if (file.before, file.before_mode) != (file.after, file.after_mode):
            files.append(file)
            mixed += [path] if is_mixed else []
    return NetChanges(tuple(files), tuple(left_out), tuple(mixed))


def _missing(image: Image, content: Callable[[Image], bytes | None]) -> str:
    if image.problem:
        return image.problem
    return DROPPED if image.digest is not None and content(image) is None else ""


def _sum(
    path: str, made: list[FileChange], content: Callable[[Image], bytes | None], merge: Merge
) -> tuple[NetChange, bool]:
    first, last = before_of(made[0]), after_of(made[-1])
    own, is_mixed = content(first), False
    for change in made:
        before, after = content(before_of(change)), content(after_of(change))
        if own == before:
            own = after
            continue
        known = own is not None and before is not None and after is not None
        merged = merge(before, own, after) if known else None  # type: ignore[arg-type]  # known
        is_mixed = is_mixed or merged is None
        own = after if merged is None else merged
    return NetChange(path, content(first), own, first.mode, last.mode), is_mixed
