"""Computes a timeline of the session path: the size of each request, and changes between requests.

Pure.

A timeline is computed from the answers on the path, their reported usage and the entries between
them, which `ContextInspector` loads.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from tui_agent.context.budget import Report, judge_report
from tui_agent.context.cache import CAUSE_OF_KIND, BreakCause, CacheMiss, missed_tokens
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    CompactionEntry,
    ContextEditEntry,
    Entry,
    PruneEntry,
    SystemEntry,
    kinds,
)
from tui_agent.session.path_queries import newest
from tui_agent.session.records import RequestRecord

CHANGING_KINDS = kinds(lambda kind: kind.edits_view or kind.breaks_prefix)
"""Kinds of entries that change what is sent or cached, and so are shown in a timeline."""


class Mark(StrEnum):
    """An event between two consecutive requests. The members are in order of importance."""

    COMPACTION = "compaction"
    PRUNE = "prune"
    MOVE = "move"
    """Marks that the user moved to an earlier entry and continued from there."""
    MISS = "cache miss"
    EDIT = "edit"
    """Marks that the user changed what the model sees of an entry, or that a provider refused parts
    of the entry."""


class ModelScale(NamedTuple):
    """A model's context window in tokens, and a function that corrects stored estimates for it."""

    window: int
    calibrated: Callable[[int], int] = round


class Step(NamedTuple):
    """One request that was made on a session path. All sizes are in tokens.

    ``answer`` is the id of its answer, None for the next request; ``leaf`` is the id of the last
    entry in the request. ``exact`` is True if the provider reported ``total``. ``cached`` is the
    part read from the provider's cache, ``answered`` the size of the answer. ``cost`` is in US
    dollars, None if unknown. ``miss`` is its cache miss, None if there was none.
    """

    answer: int | None
    leaf: int | None
    at: int
    """When the request was answered, in milliseconds since the epoch; 0 for the next request."""
    model: str
    head: int
    total: int
    window: int
    exact: bool = False
    cached: int = 0
    answered: int = 0
    cost: float | None = None
    marks: tuple[Mark, ...] = ()
    """The events since the previous request, with the most important first."""
    miss: CacheMiss | None = None

    @property
    def history(self) -> int:
        """The request's tokens, not counting those of the request head."""
        return self.total - self.head


@frozen
class PathShape:
    """The data from which a timeline is computed, all in ascending order of ids.

    ``ids`` are the ids of the path's entries. ``requests`` may include requests of other branches.
    ``changes`` are the entries of `CHANGING_KINDS` on the path. ``returns`` are the ids of the
    entries on the path that the user appended after going back to an earlier point.
    """

    ids: Sequence[int]
    requests: Sequence[RequestRecord]
    changes: Sequence[Entry]
    returns: Sequence[int]


def steps_of(
    shape: PathShape, scale_of: Callable[[str], ModelScale], cold_seconds: int
) -> list[Step]:
    """Return a session path's answered requests whose sizes are known, oldest first.

    ``scale_of`` returns a model's `ModelScale`; ``cold_seconds`` is how long a provider caches a
    request.
    """
    scale_of = cache(scale_of)
    steps: list[Step] = []
    head: SystemEntry | None = None
    caching: set[str] = set()
    before: RequestRecord | None = None
    between: list[Entry] = []
    has_returned = False
    for at, record, changes, returned in _walk(shape):
        between += changes
        has_returned = has_returned or returned
        earlier_head = head
        head = newest(between, SystemEntry) or head
        exact = record.prompt > 0 and judge_report(record, record.estimate) is Report.USABLE
        total = record.prompt if exact else record.estimate or record.prompt
        if not total:  # imported from a program that records no sizes
            before = record
            continue
        if record.cache_read or record.cache_write:
            caching.add(record.model)
        miss = None
        if record.model in caching:
            miss = _miss(before, record, between, cold_seconds)
        if miss is not None:
            miss = _explained(miss, earlier_head, head, has_returned=has_returned)
        scale = scale_of(record.model)
        step = Step(
            record.id,
            shape.ids[at - 1] if at else None,
            record.created_at,
            model=record.model,
            head=min(total, scale.calibrated(head.tokens if head else 0)),
            total=total,
            window=scale.window,
            exact=exact,
            cached=record.cache_read,
            answered=record.output,
            cost=record.cost,
            marks=_marks(between, has_returned=has_returned, missed=miss is not None),
            miss=miss,
        )
        steps.append(step)
        before = record
        between = []
        has_returned = False
    return steps


def _explained(
    miss: CacheMiss, before: SystemEntry | None, now: SystemEntry | None, *, has_returned: bool
) -> CacheMiss:
    """Return the cache miss with a more precise cause, if the tools changed or the user moved."""
    if miss.cause is BreakCause.HEAD and before is not None and now is not None:
        if before.tools != now.tools:
            return replace(miss, cause=BreakCause.TOOLS)
    elif has_returned and miss.cause in {None, BreakCause.COLD}:
        return CacheMiss(miss.expected, miss.read, BreakCause.MOVED)
    return miss


def marks_after(shape: PathShape, answer: int | None) -> tuple[Mark, ...]:
    """Return the marks for the next request: the events since ``answer``, the newest answer's id.

    ``answer`` is None if there is no answer yet.
    """
    newest = answer or 0
    changes = [entry for entry in shape.changes if entry.id > newest]
    has_returned = bool(shape.returns) and shape.returns[-1] > newest
    return _marks(changes, has_returned=has_returned, missed=False)


def _marks(changes: Sequence[Entry], *, has_returned: bool, missed: bool) -> tuple[Mark, ...]:
    found: set[Mark] = set()
    for entry in changes:
        match entry:
            case CompactionEntry():
                found.add(Mark.COMPACTION)
            case PruneEntry():
                found.add(Mark.PRUNE)
            case ContextEditEntry():
                found.add(Mark.EDIT)
            case _:
                pass
    if has_returned:
        found.add(Mark.MOVE)
    if missed:
        found.add(Mark.MISS)
    return tuple(mark for mark in Mark if mark in found)


def _walk(shape: PathShape) -> Iterator[tuple[int, RequestRecord, Sequence[Entry], bool]]:
    """Yield four values for each answer on the session path, oldest first.

    They are the answer's index on the path, its request, the changes since the previous answer, and
    whether the user went back to an earlier point since then.
    """
    changes = iter((*shape.changes, None))
    returns = iter((*shape.returns, None))
    change = next(changes)
    returned = next(returns)
    ids = shape.ids
    end = len(shape.ids)
    at = 0
    for record in shape.requests:
        at = bisect_left(ids, record.id, at)
        if record.kind != "assistant" or at == end or ids[at] != record.id:
            continue
        between: list[Entry] = []
        while change is not None and change.id < record.id:
            between.append(change)
            change = next(changes)
        has_returned = False
        while returned is not None and returned <= record.id:
            has_returned = True
            returned = next(returns)
        yield at, record, between, has_returned


def _miss(
    before: RequestRecord | None, record: RequestRecord, between: Sequence[Entry], cold_seconds: int
) -> CacheMiss | None:
    """Return a request's cache miss compared with the request ``before``; None if there is none.

    The cache had expired if more than ``cold_seconds`` passed between the end of the previous
    answer and the request.
    """
    if before is None or before.failed or record.failed:
        return None
    found = missed_tokens(before, record)
    if found is None:
        return None
    if before.model != record.model:
        return CacheMiss(*found, BreakCause.MODEL)
    for entry in reversed(between):
        if (cause := CAUSE_OF_KIND.get(entry.kind)) is not None:
            return CacheMiss(*found, cause, entry.id)
    if any(isinstance(entry, SystemEntry) for entry in between):
        return CacheMiss(*found, BreakCause.HEAD)
    is_cold = record.started_at - before.created_at > cold_seconds * 1_000
    return CacheMiss(*found, BreakCause.COLD if is_cold else None)
