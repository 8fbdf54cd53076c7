"""The small records that cross the session layer's border beside entries."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, Self, overload

from tui_agent.lazy import frozen
from tui_agent.session.entries import ToolCallPart, Usage


class Purpose(StrEnum):
    """The purposes money is spent on."""

    ANSWERS = "answers"
    SUMMARIES = "summaries"
    SUBAGENTS = "subagents"
    RACES = "races"
    SIDE_QUESTIONS = "side questions"
    GOALS = "goals"
    PINGS = "keeping the cache warm"
    OTHER = "titles and other"


class SideCost(NamedTuple):
    """A call that is no entry of its session: when (milliseconds since the epoch), and US dollars.

    Negative where an entry has them now.
    """

    at: int
    purpose: Purpose
    cost: float


class EntryHeader(NamedTuple):
    """An entry's facts for lists, heights and the tree; reading it never parses the entry.

    It is a named tuple because a tree of 100,000 is made at once.

    ``tokens`` is the estimate stored with the entry, ``created_at`` milliseconds since the epoch,
    ``size`` the characters a reader sees of the entry, for height estimates.
    """

    id: int
    parent_id: int | None
    kind: str
    preview: str
    tokens: int
    created_at: int
    size: int


class RequestRecord(NamedTuple):
    """The request that made an entry (an answer, a summary), as the entry records it.

    Its text is not read.

    It is a named tuple because a session of 100,000 entries has 40,000. Tokens are the provider's:
    ``input`` excludes tokens read from or written to its cache; all are 0 where it reported
    nothing. ``cost`` is US dollars, None when the price is unknown, ``estimate`` the program's
    estimate for the request, 0 when it is not known, ``created_at`` milliseconds since the epoch.
    """

    id: int
    kind: str
    created_at: int
    model: str
    cost: float | None
    estimate: int
    failed: bool
    """Whether it ended in an error or was interrupted: its numbers may be those of a part."""
    input: int
    output: int
    cache_read: int
    cache_write: int

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write


Reported = Usage | RequestRecord
"""A provider's report on a request, in tokens; ``prompt`` is all of it but the answer."""


class EntryOutline(NamedTuple):
    """The least that is known of an entry before it is read: enough to estimate how long a path is on screen."""

    id: int
    kind: str
    size: int
    """Characters a reader sees of the entry."""


class Outlines(Sequence[EntryOutline]):
    """Entries in outline, kept in columns: 100,000 of them take two megabytes."""

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
    """Two ways through the tree from where they part.

    ``ancestor`` is the deepest entry on both, None when they share none; ``left`` are the entries
    only on the way to ``leaf``, oldest first.
    """

    leaf: int | None
    ancestor: int | None
    left: Outlines


@frozen
class Holder:
    """The live program that works on a session. ``since`` is milliseconds since the epoch."""

    pid: int
    host: str
    since: int


@frozen
class SessionInfo:
    """A session as lists show it. Times are milliseconds since the epoch."""

    id: str
    cwd: str
    title: str
    created_at: int
    updated_at: int
    """Last use: the newest append or move."""
    model: str
    """The model of the newest entry that names one, "" before there is any."""
    entry_count: int
    """Entries on all branches."""
    leaf: int | None
    parent_session: str | None
    """The session this one was forked from, or whose agent gave its subagent the task."""
    parent_entry: int | None
    agent: str
    """The kind of the subagent that works in it, "" for a conversation."""
    side_cost: float
    """US dollars of calls that are no entries of it: its title, the work of its subagents."""
    first_message: str
    """Preview of the first message the user typed."""
    held_by: Holder | None
    """The live program that holds the session, this one included."""
    key: str = ""
    """The name a run was given with ``--key``."""
    outcome: "RunOutcome | None" = None
    """How its last run without a screen ended; None if there was none, or if it was cut off."""


@frozen
class RunOutcome:
    """How a run without a screen ended, and the session's totals by then, all branches."""

    reason: str
    """The reason of `tui_agent.agent.events.RunEnded`."""
    exit_code: int
    check: str | None = None
    """How the project's check ended, where one ran: passed or failed."""
    cost: float = 0.0
    """US dollars, as far as prices are known."""
    tokens: int = 0
    """Tokens of all requests and answers, as providers reported them."""
    files: int = 0
    """Files of the project that are changed."""


@frozen
class SessionTotals:
    """The totals of all branches of a session: tokens as estimated, US dollars as far as prices are known."""

    tokens: int
    cost: float


@frozen
class DraftText:
    """An answer that is being streamed, as far as it has come.

    ``calls`` may end in unfinished JSON.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCallPart, ...] = ()
    model: str = ""
    started_at: int = 0
    """Milliseconds since the epoch when the request went out."""
    estimate: int = 0
    """Tokens the program had estimated for the request."""


@frozen
class Unsent:
    """The user's unsent text: the prompt's text, and the messages that waited, oldest first."""

    text: str = ""
    waiting: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text.strip() or self.waiting)


@frozen
class LeafMove:
    """One navigation in the tree. Undoing and redoing are logged as moves of their own."""

    from_leaf: int | None
    to_leaf: int | None
    action: Literal["move", "undo", "redo"]
    at: int
    """Milliseconds since the epoch."""


class TypedText(NamedTuple):
    """Text the user typed, when (milliseconds since the epoch), and in which session."""

    text: str
    created_at: int
    session_id: str
    title: str


@frozen
class SearchHit:
    """An entry whose text matches a search."""

    session_id: str
    entry_id: int
    kind: str
    created_at: int
    snippet: str
    """One line around the first match."""
    highlights: tuple[tuple[int, int], ...] = ()
    """Where the words stand in the snippet: start and end, in characters."""


def children(headers: Iterable[EntryHeader]) -> dict[int | None, list[int]]:
    """Return the ids of the entries below each entry in ascending order; roots are under None.

    Entries without children have no key.
    """
    parents = {header.id: header.parent_id for header in headers}
    below: dict[int | None, list[int]] = {}
    for entry_id, parent in sorted(parents.items()):
        below.setdefault(parent if parent in parents else None, []).append(entry_id)
    return below
