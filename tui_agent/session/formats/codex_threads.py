"""The rollouts of one thread of Codex: a message that is taken back, or a fork, goes on in a file of its own.

Such a file holds only what is new. The ``history_base`` of its head names the rollout it goes on from and the ordinal
of the first line that is no longer its history; without one it begins at the beginning. The file of a thread's
beginning is named by the thread, a later one by the thread and an id of its own.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tui_agent.lazy import dataclass
from tui_agent.session.formats.incoming import is_session_id
from tui_agent.session.formats.reading import Node
from tui_agent.session.formats.source import SourceFile

__all__ = ["Rollout", "rollouts_of"]

_NAME_BEGINS = "rollout-"
_NAME_HEAD = len("rollout-2026-11-23T09-37-46-")
_LOOKED_AT = 200
"""Files beside one with a name of its own whose beginnings are searched for its thread."""
_LINEAGE = 100
"""Forks of forks that are followed."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One file of a thread."""

    source: SourceFile
    name: str = ""
    """What later files call it."""
    thread: str = ""
    at: int = 0
    """When it was begun, in milliseconds."""
    base: tuple[str, int] | None = None
    """The rollout it goes on from, and the ordinal of the first line there that it leaves behind."""
    end: int | None = None
    """Ordinal of the first line that is not read, None: all are."""


def rollouts_of(source: SourceFile) -> list[Rollout]:
    """Return the rollouts that hold the thread of one as it was when that one was written, the one itself last.

    Raises:
        ImportRefused: one of them can't be read.
    """
    own = _rollout(source)
    if own.base is None and own.name == own.thread and source.path.name.startswith(_NAME_BEGINS):
        return [own]
    before = {one.at: one for one in _named(own, own.thread) if one.thread == own.thread and one.at < own.at}
    thread = [*(before[at] for at in sorted(before)), own]
    return [*_lineage(thread[0]), *thread]


def _lineage(first: Rollout) -> list[Rollout]:
    """Return what a thread goes on from in other threads, the oldest first, each up to where it is left."""
    found: list[Rollout] = []
    while first.base is not None and len(found) < _LINEAGE:
        name, end = first.base
        origin = next((one for one in _named(first, name) if one.name == name), None)
        if origin is None:
            break
        first = replace(origin, end=end)
        found.insert(0, first)
    return found


def _named(near: Rollout, name: str) -> Iterator[Rollout]:
    """Yield the rollouts whose name has an id, or, beside a file with another name, whose beginning has it."""
    path = near.source.path.absolute()
    if not is_session_id(name):
        return
    if not path.name.startswith(_NAME_BEGINS):
        beside = islice(sorted(path.parent.glob("*.jsonl")), _LOOKED_AT)
        found = [other for other in beside if name.encode() in SourceFile(other).head]
    elif all(part.isdecimal() for part in path.parts[-4:-1]):  # year, month and day
        found = sorted(path.parents[3].glob(f"*/*/*/{_NAME_BEGINS}*{name}*.jsonl"))
    else:
        found = sorted(path.parent.glob(f"{_NAME_BEGINS}*{name}*.jsonl"))
    for other in found:
        if other != path:
            yield _rollout(SourceFile(other, near.source.limits, skip_damaged=near.source.skip_damaged))


def _rollout(source: SourceFile) -> Rollout:
    with closing(source.lines()) as lines:
        head = next(lines, None)
    if head is None or head.value.get("type") != "session_meta":
        return Rollout(source)
    meta = head.node("payload")
    thread, at = meta.text("id", ""), meta.time("timestamp")
    return Rollout(source, _name_of(source.path, thread), thread, at, _base(meta))


def _name_of(path: Path, thread: str) -> str:
    if not path.name.startswith(_NAME_BEGINS):
        return thread
    return path.stem[_NAME_HEAD:].rpartition("_")[2] or thread


def _base(meta: Node) -> tuple[str, int] | None:
    base = meta.node("history_base")
    return (base.text("thread_id"), int(base.number("end_ordinal_exclusive"))) if base.value else None
