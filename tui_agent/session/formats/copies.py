"""A session as it leaves: everything of it that is exported, read once and in order."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from tui_agent.lazy import frozen
from tui_agent.session import entry_table
from tui_agent.session.entries import Entry, ToolResultEntry
from tui_agent.session.errors import SessionNotFound
from tui_agent.session.records import LeafMove, SessionInfo
from tui_agent.session.rows import blobs_of
from tui_agent.session.session import session_to_read
from tui_agent.session.store import Store


@frozen
class SessionCopy:
    """One session to be written down. Entries ascend; each one's parent is among them."""

    info: SessionInfo
    entries: Sequence[Entry]
    leaf: int | None
    last_id: int
    labels: dict[int, str]
    moves: Sequence[LeafMove]
    blob: Callable[[str], bytes | None]

    def path(self) -> list[Entry]:
        by_id = {entry.id: entry for entry in self.entries}
        found: list[Entry] = []
        at = self.leaf
        while at is not None and at in by_id:
            found.append(by_id[at])
            at = by_id[at].parent_id
        return found[::-1]

    def blobs(self) -> Iterator[tuple[str, bytes]]:
        """Yield each blob the entries need, once; those that are gone are left out."""
        seen: set[str] = set()
        for entry in self.entries:
            for digest in sorted(blobs_of(entry) - seen):
                seen.add(digest)
                if (content := self.blob(digest)) is not None:
                    yield digest, content


def copy_of(store: Store, session_id: str, *, whole: bool, leaf: int | None = None) -> SessionCopy:
    """Read a session: the whole tree, or the path to ``leaf`` (None: where the session is).

    Raises:
        SessionNotFound: there is no such session.
        EntryNotFound: it has no such entry.
    """
    session = session_to_read(store, session_id)
    info = session.info
    if leaf is None:
        leaf = info.leaf
    headers = session.skeleton()
    found: list[Entry] = []
    if whole:
        found = session.entries(headers.ids)
    elif leaf is not None:
        found = session.path(leaf)
    entries = _attached(found, {header.id: header.parent_id for header in headers})
    ids = {entry.id for entry in entries}
    if leaf not in ids:
        leaf = entries[-1].id if entries and leaf is not None else None
    moves: list[LeafMove] = []
    if whole:
        places = {None, *ids}
        moves = [move for move in session.moves() if {move.from_leaf, move.to_leaf} <= places]
    with store.reader() as connection:
        last_id = entry_table.last_id(connection, store.number(session_id))
    return SessionCopy(
        info=info,
        entries=entries,
        leaf=leaf,
        last_id=last_id,
        labels={entry_id: text for entry_id, text in session.labels().items() if entry_id in ids},
        moves=moves,
        blob=store.blob,
    )


def copies_of(store: Store, session_id: str) -> list[SessionCopy]:
    """Read a whole session and the sessions its subagents worked in, as far as they are still there."""
    copies: list[SessionCopy] = []
    waiting = [session_id]
    known = {session_id}
    while waiting:
        copy = copy_of(store, waiting.pop(0), whole=True)
        copies.append(copy)
        for entry in copy.entries:
            child = entry.metadata.session if isinstance(entry, ToolResultEntry) else None
            if child and child not in known:
                known.add(child)
                with suppress(SessionNotFound):  # it was deleted
                    store.number(child)
                    waiting.append(child)
    return copies


def _attached(entries: Sequence[Entry], parents: dict[int, int | None]) -> list[Entry]:
    """Return entries whose parents are among them: children of a damaged one hang below the one above it."""
    ids = {entry.id for entry in entries}
    attached: list[Entry] = []
    for entry in entries:
        parent = parents.get(entry.id, entry.parent_id)
        while parent is not None and parent not in ids:
            parent = parents.get(parent)
        if parent == entry.parent_id:
            attached.append(entry)
        else:
            attached.append(entry.model_copy(update={"parent_id": parent}))
    return attached
