"""What the list of sessions shows, and how it is found: no widget, and nothing that may not run in a thread."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from tui_agent.app.format import age, money, one_line, plural, short_model, short_path, tokens
from tui_agent.lazy import dataclass
from tui_agent.session.records import SearchHit, SessionInfo, SessionTotals
from tui_agent.session.store import Store

MAX_HITS = 200
"""Entries looked at in a search."""
HITS_PER_SESSION = 3
"""Entries shown of one session."""
MIN_WIDTH_FOR_MODEL = 100
"""Columns from which a row has room for the model."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What was found. ``hits`` are the entries that match a search, by session, newest first."""

    sessions: Sequence[SessionInfo] = ()
    hits: Mapping[str, Sequence[SearchHit]] = field(default_factory=dict)


def find(store: Store, query: str, cwd: Path, *, only_here: bool) -> Listing:
    """Return the sessions that match: this directory's first, each group the last used first.

    Raises:
        StoreError: the sessions can't be read.
    """
    found = list(store.sessions(cwd=cwd, query=query or None))
    if not only_here:
        known = {info.id for info in found}
        found += [info for info in store.sessions(query=query or None) if info.id not in known]
    hits: dict[str, list[SearchHit]] = {}
    if query:
        for hit in store.search(query, MAX_HITS, cwd=cwd if only_here else None):
            hits.setdefault(hit.session_id, []).append(hit)
    return Listing(found, hits)


def rows_of(listing: Listing) -> Iterator[tuple[str, SessionInfo, SearchHit | None]]:
    """Yield the rows: each session, below it the entries that matched. The key of an entry is ``ID#N``."""
    for info in listing.sessions:
        yield info.id, info, None
        for hit in listing.hits.get(info.id, ())[:HITS_PER_SESSION]:
            yield f"{info.id}#{hit.entry_id}", info, hit


@dataclass(frozen=True, slots=True)
class ListContext:
    """From where the list is looked at. ``now`` is seconds since the epoch."""

    now: float
    cwd: Path
    current: str | None
    width: int


def name_of(info: SessionInfo) -> str:
    return one_line(info.title or info.first_message, 200) or "(empty)"


def facts_of(info: SessionInfo, look: ListContext, totals: SessionTotals | None) -> str:
    """Return what stands behind a session's name."""
    facts = [age(info.updated_at, look.now), plural(info.entry_count, "entry")]
    if totals is not None and totals.cost:
        facts.append(money(totals.cost))
    if look.width >= MIN_WIDTH_FOR_MODEL:
        facts.append(short_model(info.model))
    if info.agent:
        facts.append(f"subagent {one_line(info.agent, 20)}")
    if info.cwd != str(look.cwd):
        facts.append(_end_of(short_path(info.cwd), max(16, look.width // 4)))
    if info.id == look.current:
        facts.append("open here")
    elif info.held_by is not None:
        facts.append(f"in use by process {info.held_by.pid}")
    return " · ".join(fact for fact in facts if fact)


def _end_of(path: str, room: int) -> str:
    return path if len(path) <= room else "…" + path[1 - room :]


def details_of(info: SessionInfo, totals: SessionTotals | None) -> str:
    """Return the line about the highlighted session."""
    told = [short_path(info.cwd), short_model(info.model)]
    if totals is not None:
        told.append(f"~{tokens(totals.tokens)} tokens")
        told.append(money(totals.cost) if totals.cost else "")
    return " · ".join(piece for piece in told if piece)
