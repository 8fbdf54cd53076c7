"""Defines the records, apart from entries, that the session layer accepts and returns."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, Self, overload

from tui_agent.lazy import frozen
from tui_agent.session.entries import ToolCallPart, Usage


class Purpose(StrEnum):
    """The purpose of a model call that has no entry; the values are shown to the user."""

    ANSWERS = "answers"
    SUMMARIES = "summaries"
    SUBAGENTS = "subagents"
    RACES = "races"
    SIDE_QUESTIONS = "side questions"
    GOALS = "goals"
    PINGS = "keeping the cache warm"
    OTHER = "titles and other"


class SideCost(NamedTuple):
    """The cost in US dollars of a model call without an entry.

    ``at`` is in milliseconds since the epoch. A negative cost cancels an earlier cost that is now
    stored in an entry.
    """

    at: int
    purpose: Purpose
    cost: float


class EntryHeader(NamedTuple):
    """The data of an entry for lists and the tree, which is read without parsing the entry's body.

    ``tokens`` is the estimate stored with the entry, ``created_at`` is in milliseconds since the
    epoch, and ``size`` is the number of characters that the conversation shows, from which heights
    are estimated. This is a named tuple, because a tree may have 100,000 headers.
    """

    id: int
    parent_id: int | None
    kind: str
    preview: str
    tokens: int
    created_at: int
    size: int


class RequestRecord(NamedTuple):
    """The request whose answer is an entry (an answer or a summary), as stored in the entry.

    ``id`` and ``kind`` are those of the entry. The fields from ``input`` to ``cache_write`` are
    numbers of tokens as counted by the provider, 0 if it reported none; ``input`` excludes tokens
    read from or written to the prompt cache. ``cost`` is in US dollars, None if the price is
    unknown; ``estimate`` is the program's estimate of the request in tokens, 0 if unknown. Times
    are in milliseconds since the epoch. ``created_at`` is the time at which the answer ended.
    ``started_at`` is the time at which the request was sent, or ``created_at`` if that is unknown.
    This is a named tuple, because a session of 100,000 entries contains 40,000 requests.
    """

    id: int
    kind: str
    created_at: int
    started_at: int
    model: str
    cost: float | None
    estimate: int
    failed: bool
    """Whether the request failed or was interrupted. If so, its numbers may be incomplete."""
    input: int
    output: int
    cache_read: int
    cache_write: int

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write


Reported = Usage | RequestRecord
"""Number of tokens of a request as counted by the provider; ``prompt`` includes everything except
the answer."""


class EntryOutline(NamedTuple):
    """The id, kind and size of an entry, from which a path's height on the screen is estimated."""

    id: int
    kind: str
    size: int
    """Number of characters of the entry that the conversation shows to the user."""


class Outlines(Sequence[EntryOutline]):
    """A sequence of entry outlines, stored in columns to save memory."""

    __slots__ = ("ids", "kinds", "sizes")

    def __init__(self, ids: Sequence[int], kinds: Sequence[str], sizes: Sequence[int]) -> None:
        self.ids = ids
        self.kinds = kinds
        self.sizes = sizes

    @classmethod
    def of(cls, entries: Iterable[EntryOutline | EntryHeader]) -> Self:
        found = list(entries)
        return cls(
            [one.id for one in found], [one.kind for one in found], [one.size for one in found]
        )

    def of_kind(self, kind: str) -> list[int]:
        return [
            entry_id
            for entry_id, its_kind in zip(self.ids, self.kinds, strict=True)
            if its_kind == kind
        ]

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, at: int) -> EntryOutline: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: int | slice) -> EntryOutline | Self:
        if isinstance(at, slice):
            return type(self)(self.ids[at], self.kinds[at], self.sizes[at])
        return EntryOutline(self.ids[at], self.kinds[at], self.sizes[at])


class Divergence(NamedTuple):
    """Where the path to ``leaf`` separates from another path.

    ``ancestor`` is the deepest entry that is on both paths, None if there is none. ``left``
    contains the entries that are only on the path to ``leaf``, oldest first.
    """

    leaf: int | None
    ancestor: int | None
    left: Outlines


@frozen
class Holder:
    """The running program that has claimed a session for changes.

    ``since`` is the time of the claim in milliseconds since the epoch.
    """

    pid: int
    host: str
    since: int


@frozen
class SessionInfo:
    """The data of a session that lists of sessions show.

    Times are milliseconds since the epoch.
    """

    id: str
    cwd: str
    title: str
    created_at: int
    updated_at: int
    """Time at which an entry was last appended or the leaf was last moved."""
    model: str
    """The model in the newest entry that names a model, "" if no entry does."""
    entry_count: int
    """Number of entries on all branches."""
    leaf: int | None
    parent_session: str | None
    """Id of the session from which this one was forked, or whose agent started this subagent. None
    if there is no such session."""
    parent_entry: int | None
    """Id of the entry of ``parent_session`` at which this session was forked or its subagent was
    started. None if there is no parent session."""
    agent: str
    """The name of the subagent that works in this session, "" for a conversation."""
    side_cost: float
    """Cost in US dollars of model calls without an entry, such as for the session's title."""
    first_message: str
    """Preview of the first message that the user typed in the session."""
    held_by: Holder | None
    """The running program that has claimed the session, which may be this one; None if none has."""
    key: str = ""
    """The key that the option ``--key`` gave to the session's run; "" if none was given."""
    outcome: "RunOutcome | None" = None
    """The outcome of the session's last run without a screen; None if there was no such run, or if
    the run hasn't ended."""


@frozen
class RunOutcome:
    """The outcome of a run without a screen, and the session's totals at its end."""

    reason: str
    """The reason why the run ended, which is the ``reason`` of `tui_agent.agent.events.RunEnded`.
    """
    exit_code: int
    check: str | None = None
    """The result of the project's check: "passed" or "failed"; None if no check ran."""
    cost: float = 0.0
    """Cost of the session in US dollars, without calls whose price is unknown."""
    tokens: int = 0
    """Number of tokens of all the session's requests and answers, as counted by the providers."""
    files: int = 0
    """Number of the project's files that were changed on the session path, also by earlier runs."""


@frozen
class SessionTotals:
    """Totals over all branches of a session, in estimated tokens and US dollars (0 if unknown)."""

    tokens: int
    cost: float


@frozen
class DraftText:
    """The part of a streamed answer that was received so far.

    The JSON of the last tool call may be incomplete.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCallPart, ...] = ()
    model: str = ""
    started_at: int = 0
    """Time at which the request was sent, in milliseconds since the epoch."""
    estimate: int = 0
    """The program's estimate of the size of the request, in tokens."""


@frozen
class Unsent:
    """The text that the user has not sent: the prompt, and the queued messages, oldest first."""

    text: str = ""
    waiting: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text.strip() or self.waiting)


@frozen
class LeafMove:
    """One logged change of the leaf, by a move, an undo or a redo.

    A leaf of None is the beginning of the session.
    """

    from_leaf: int | None
    to_leaf: int | None
    action: Literal["move", "undo", "redo"]
    at: int
    """Time of the change, in milliseconds since the epoch."""


class TypedText(NamedTuple):
    """A message or shell command that the user typed, with its session's id and title.

    ``created_at`` is in milliseconds since the epoch.
    """

    text: str
    created_at: int
    session_id: str
    title: str


@frozen
class SearchHit:
    """An entry whose text matches a search. ``created_at`` is in milliseconds since the epoch."""

    session_id: str
    entry_id: int
    kind: str
    created_at: int
    snippet: str
    """The entry's text around the first match, as one line."""
    highlights: tuple[tuple[int, int], ...] = ()
    """Start and end of each found word, as character offsets in the snippet."""


def children(headers: Iterable[EntryHeader]) -> dict[int | None, list[int]]:
    """Return the ids of each entry's children, ascending, by the entry's id.

    Entries whose parent isn't among ``headers`` are listed under None. Entries without children
    have no key.
    """
    parents = {header.id: header.parent_id for header in headers}
    below: dict[int | None, list[int]] = {}
    for entry_id, parent in sorted(parents.items()):
        below.setdefault(parent if parent in parents else None, []).append(entry_id)
    return below
