"""Reads from the store all data that is needed to export a session."""

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
    """One session that is to be exported, either with its whole tree or with one path.

    The entries are sorted by id, and the parent of each entry is among them. ``labels`` maps entry
    ids to texts. ``blob`` returns the content of a blob by its digest, None if the blob was
    deleted.
    """

    info: SessionInfo
    entries: Sequence[Entry]
    leaf: int | None
    last_id: int
    labels: dict[int, str]
    moves: Sequence[LeafMove]
    blob: Callable[[str], bytes | None]

    def path(self) -> list[Entry]:
        """Return the entries from the root to the leaf."""
        by_id = {entry.id: entry for entry in self.entries}
        found: list[Entry] = []
        at = self.leaf
        while at is not None and at in by_id:
            found.append(by_id[at])
            at = by_id[at].parent_id
        return found[::-1]

    def blobs(self) -> Iterator[tuple[str, bytes]]:
        """Yield the digest and content of each blob that the entries use, except missing blobs.

        A blob that several entries use is yielded once.
        """
        seen: set[str] = set()
        for entry in self.entries:
            for digest in sorted(blobs_of(entry) - seen):
                seen.add(digest)
                if (content := self.blob(digest)) is not None:
                    yield digest, content


def copy_of(store: Store, session_id: str, *, whole: bool, leaf: int | None = None) -> SessionCopy:
    """Read a session from the store, either the whole tree or only the path to the leaf.

    With ``whole``, the whole tree is read. ``leaf`` is the leaf of the copy; None for the session's
    own leaf. If that entry can't be read or, with ``whole``, doesn't exist, the newest entry of the
    copy becomes its leaf. Only a whole copy has moves.

    Raises:
        SessionNotFound: there is no such session.
        EntryNotFound: the session has no entry ``leaf``, and ``whole`` is False.
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
    """Read a whole session, and then the sessions of its subagents that have not been deleted."""
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
                with suppress(SessionNotFound):  # The subagent's session was deleted.
                    store.number(child)
                    waiting.append(child)
    return copies


def _attached(entries: Sequence[Entry], parents: dict[int, int | None]) -> list[Entry]:
    """Return the entries, with children of a missing entry attached to the missing entry's parent.

    ``parents`` contains the parent of every entry of the session, including damaged entries.
    """
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
