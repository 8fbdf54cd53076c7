"""Reads and changes the entries, leaf, labels and drafts of one session.

Also controls which object may write to the session.

`WriteAccess` decides whether an object may change the session. `History` decides which step undo
and redo apply to. Every change is committed before the method returns; no events are emitted here.
"""

import os
import socket
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from sqlite3 import Connection
from typing import Literal

from tui_agent.safe_text import valid
from tui_agent.session import drafts, entry_table
from tui_agent.session.entries import AssistantEntry, Entry, SubagentEntry
from tui_agent.session.errors import (
    EntryDamaged,
    EntryNotFound,
    SessionHeld,
    SessionNotFound,
    SessionTakenOver,
    StoreReadOnly,
)
from tui_agent.session.history import History
from tui_agent.session.ids import Clock
from tui_agent.session.reading import EntryReader
from tui_agent.session.records import (
    DraftText,
    LeafMove,
    Outlines,
    Purpose,
    SessionInfo,
)
from tui_agent.session.rows import completed
from tui_agent.session.skeleton import Headers
from tui_agent.session.store import Store
from tui_agent.session.tree_index import active_ids


class WriteAccess:
    """Decides whether a writer may change a session, which is checked before every change."""

    def __init__(
        self, store: Store, session_id: str, writer: str, clock: Clock, *, read_only: bool
    ) -> None:
        self._store = store
        self._id = session_id
        self._number = store.number(session_id)
        self._writer = writer
        self._clock = clock
        self._asked_read_only = read_only
        self._holding = False
        self._taken_over = False

    @property
    def read_only(self) -> bool:
        return self._asked_read_only or self._taken_over or self._store.read_only is not None

    def check_for_take_over(self) -> bool:
        if self._holding and not self._taken_over:
            with self._store.reader() as connection, suppress(SessionTakenOver):
                self._check(connection)
        return self._taken_over

    def hold(self, *, take_over: bool = False) -> None:
        self.announce()
        with self._store.writer() as connection:
            row = connection.execute(
                "SELECT holder, holder_pid, holder_host, held_since FROM sessions WHERE number = ?",
                (self._number,),
            ).fetchone()
            if row is None:
                raise SessionNotFound(self._id)
            holder, *where = row
            if holder != self._writer:
                if not take_over and self._store.alive(holder):
                    raise SessionHeld(self._id, *where)
                connection.execute(
                    "UPDATE sessions SET holder = ?, holder_pid = ?, holder_host = ?, held_since = ? WHERE number = ?",
                    (self._writer, os.getpid(), socket.gethostname(), self._clock(), self._number),
                )
        self._holding = True
        self._taken_over = False

    def release(self, *, has_draft: bool) -> None:
        """Release the session. The draft of the writer, if any, is left for `Session.recover`."""
        if (self._holding or has_draft) and self._store.read_only is None:
            with self._store.writer() as connection:
                connection.execute(
                    "UPDATE sessions SET holder = NULL WHERE number = ? AND holder = ?",
                    (self._number, self._writer),
                )
                connection.execute(
                    "UPDATE OR REPLACE drafts SET writer = 'nobody.' || writer WHERE session = ? AND writer = ?",
                    (self._number, self._writer),
                )
        self._holding = False

    def announce(self) -> None:
        """Show other programs that this writer is alive; call it before storing the writer's name.

        Raises:
            StoreError: nothing can be saved, or the lock file can't be created.
        """
        self._refuse_if_read_only()
        self._store.announce()

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Open a write transaction for a ``with`` block; commit it at the end of the block.

        The transaction is rolled back if the block raises an exception.

        Raises:
            StoreError: nothing can be saved.
            SessionTakenOver: another writer has taken over the session.
        """
        self._refuse_if_read_only()
        if self._taken_over:
            raise SessionTakenOver(self._id)
        with self._store.writer() as connection:
            if self._holding:
                self._check(connection)
            yield connection

    def _check(self, connection: Connection) -> None:
        row = connection.execute(
            "SELECT holder FROM sessions WHERE number = ?", (self._number,)
        ).fetchone()
        if row is None:
            raise SessionNotFound(self._id)
        if row[0] != self._writer:
            self._taken_over = True
            raise SessionTakenOver(self._id)

    def _refuse_if_read_only(self) -> None:
        if self._store.read_only is not None:
            raise self._store.read_only
        if self._asked_read_only:
            raise StoreReadOnly("This session is read-only. Use /fork to continue in a copy.")


class Session:
    """One session. Use it from one thread only; its `reader` may be used from any thread.

    Every session object has its own leaf, so two programs with the same session open don't move
    each other's leaf. The store keeps the leaf of the object that appended or moved last, which is
    where the session is next opened. If another program appends in the meantime, the two programs'
    entries are on different branches.

    An object that called `hold` checks on every change that it still holds the session. Once
    another program has taken over the session, a change raises `SessionTakenOver` and stores
    nothing, and the object can only read; forking at its leaf keeps everything it stored. An object
    that never called `hold` changes the session without this check.

    Args:
        store: The store that contains the session.
        session_id: The whole id.
        estimate: Returns the number of tokens of an entry; called for entries that are appended
            without ``tokens``.
        clock: Returns the time that is stored with a change; the store's clock by default.
        read_only: Refuse all changes.

    Raises:
        SessionNotFound: there is no such session.
    """

    def __init__(
        self,
        store: Store,
        session_id: str,
        *,
        estimate: Callable[[Entry], int],
        clock: Clock | None = None,
        read_only: bool = False,
    ) -> None:
        self.id = session_id
        self.store = store
        self._estimate = estimate
        self._clock = clock or store.clock
        self._number = store.number(session_id)
        self.reader = EntryReader(store, self._number)
        """Reads the session's entries on all branches. The reader is thread-safe."""
        self._go_to(store.session(session_id).leaf)
        self._writer = store.new_writer(self)
        self._access = WriteAccess(
            store, session_id, self._writer, self._clock, read_only=read_only
        )
        self._has_draft = False
        self._history: History | None = None
        self._is_beside = False

    def beside(self, leaf: int | None) -> "Session":
        """Return another object for this session, to work on another branch in the same thread.

        The object's leaf is ``leaf`` at first; None stands for the beginning of the session. Its
        entries are stored, but its leaf is not, so the session is never opened at that leaf, and
        moves are not logged. The object shares this object's write access, so after a takeover
        neither can change the session.

        Raises:
            EntryNotFound: there is no such entry.
        """
        other = Session(self.store, self.id, estimate=self._estimate, clock=self._clock)
        self.reader.ids_to(leaf)
        other.reader = self.reader
        other._access = self._access
        other._is_beside = True
        other._go_to(leaf)
        return other

    def _go_to(self, leaf: int | None) -> None:
        self.leaf = leaf
        """Id of the entry below which the next entry is appended; None for the beginning of the
        session. Only this class sets the attribute."""
        self._path_ids: array[int] | None = None
        self._active: list[Entry] | None = None

    # -- facts -------------------------------------------------------------------------------------

    @property
    def info(self) -> SessionInfo:
        """The session's data for lists of sessions, read from the store."""
        return self.store.session(self.id)

    @property
    def read_only(self) -> bool:
        """True if the session is read-only or was taken over, or if the file can't be written."""
        return self._access.read_only

    def set_title(self, title: str) -> None:
        """Set the session's title; "" removes it."""
        with self._access.changing() as connection:
            connection.execute(
                "UPDATE sessions SET title = ? WHERE number = ?", (valid(title), self._number)
            )

    def add_cost(self, dollars: float, purpose: Purpose = Purpose.OTHER) -> None:
        """Add the cost, in US dollars, of a model call without an entry, such as for a title."""
        with self._access.changing() as connection:
            connection.execute(
                "UPDATE sessions SET side_cost = side_cost + ? WHERE number = ?",
                (dollars, self._number),
            )
            connection.execute(
                "INSERT INTO side_costs VALUES (?, ?, ?, ?)",
                (self._number, self.store.clock(), purpose, dollars),
            )

    # -- appending ---------------------------------------------------------------------------------

    def append(self, entry: Entry, *, moves_leaf: bool = True) -> Entry:
        """Append an entry below the leaf, move the leaf to it, and return it as stored.

        The entry is committed when this method returns. Its id, parent and preview are filled in,
        and so are its time and tokens if they are 0. If it is an assistant entry, this object's
        draft is deleted. With ``moves_leaf=False``, the leaf isn't moved, so that the next entry
        becomes a sibling.

        Raises:
            StoreError: nothing was stored, and the leaf did not move.
        """
        return self._append(self.leaf, [entry], moves_leaf=moves_leaf)[0]

    def append_many(self, entries: Iterable[Entry]) -> list[Entry]:
        """Append a chain of entries in one transaction; see `append`.

        Each entry becomes the parent of the next one.
        """
        return self._append(self.leaf, list(entries))

    def _append(
        self,
        parent: int | None,
        entries: Sequence[Entry],
        *,
        moves_leaf: bool = True,
        draft: str | None = None,
    ) -> list[Entry]:
        """Append a chain of entries below ``parent``, and return them as stored.

        ``draft`` is the writer whose draft the entries replace. The draft is deleted. If the draft
        belonged to another writer and no longer exists, nothing is appended and [] is returned. If
        the leaf was ``parent``, it moves to the last entry, unless ``moves_leaf`` is False.
        """
        at = self._clock()
        moves_leaf = moves_leaf and parent == self.leaf
        if self._has_draft and any(isinstance(entry, AssistantEntry) for entry in entries):
            draft = draft or self._writer
        complete: list[Entry] = []
        with self._access.changing() as connection:
            replaced = draft is not None and drafts.clear(connection, self._number, draft)
            if not entries or (draft not in (None, self._writer) and not replaced):
                return []
            first = entry_table.reserve(connection, self._number, len(entries))
            for entry_id, entry in enumerate(entries, first):
                complete.append(completed(entry, entry_id, parent, at, self._estimate))
                parent = entry_id
            entry_table.append(connection, self._number, complete)
            if not self._is_beside:
                entry_table.note(connection, self._number, complete)
            if moves_leaf and not self._is_beside:
                entry_table.set_leaf(connection, self._number, complete[-1].id, at)
        self._has_draft = self._has_draft and draft != self._writer
        self.reader.add(complete)
        if moves_leaf:
            self.leaf = complete[-1].id
            if self._path_ids is not None:
                self._path_ids.extend(entry.id for entry in complete)
            if any(entry.sets_state or entry.edits_view for entry in complete):
                self._active = None
            elif self._active is not None:
                self._active.extend(complete)
        return complete

    # -- reading -----------------------------------------------------------------------------------

    def entry(self, entry_id: int) -> Entry:
        """Return the entry with an id; raises EntryNotFound, or EntryDamaged if unreadable."""
        if found := self.reader.entries([entry_id]):
            return found[0]
        raise (
            EntryDamaged(entry_id)
            if entry_id in self.reader.unreadable
            else EntryNotFound(entry_id)
        )

    def entries(self, ids: Iterable[int]) -> list[Entry]:
        """Return the entries with the given ids, except unknown and damaged ones.

        The entries are in the order of ``ids``.
        """
        return self.reader.entries(ids)

    def path(self, leaf: int | None = None) -> list[Entry]:
        """Return the entries from the root to the session's leaf, or to the entry ``leaf``.

        Damaged entries are left out. All others are read, which is slow in a long session. Prefer
        `active_path`, or `path_outline` and `entries` for a few entries.

        Raises:
            EntryNotFound: there is no entry ``leaf``.
        """
        return self.reader.entries(self._ids() if leaf is None else self.reader.ids_to(leaf))

    def active_path(self) -> list[Entry]:
        """Return those entries of the leaf's path on which a request depends, root first.

        These are all entries from the first entry that the last compaction kept, and the earlier
        entries that are still in effect: see `tui_agent.session.tree_index.active_ids`. They give
        the same request as the whole `path`. For another leaf use `EntryReader.load_active`.
        """
        if self._active is None:
            self._active = self.reader.entries(
                active_ids(self.reader.spine(), self._ids(), self.reader.entries)
            )
        return list(self._active)

    def path_outline(self) -> Outlines:
        """Return the id, kind and size of each entry on the path to the leaf, root first.

        This is much faster than reading the headers.
        """
        return self.reader.spine().outline(self._ids()[:])

    def _ids(self) -> "array[int]":
        if self._path_ids is None:
            self._path_ids = array("q", self.reader.ids_to(self.leaf))
        return self._path_ids

    def on_path(self, entry_id: int) -> bool:
        ids = self._ids()
        at = bisect_left(ids, entry_id)
        return at < len(ids) and ids[at] == entry_id

    def returns(self) -> list[int]:
        """Return the ids on the path at which the user began a new branch after going back.

        The ids begin with the one nearest to the root; see
        `tui_agent.session.tree_index.Spine.returns`.
        """
        return self.reader.spine().returns(self._ids())

    def departures(self, ids: Iterable[int]) -> dict[int, int]:
        """Return, for each of ``ids`` that isn't on the path, the first entry of its branch.

        The first entry of a branch is the one whose parent is on the path. If no ancestor of an id
        is on the path, it is the root.
        """
        return self.reader.spine().departures(self._ids(), ids)

    def subagents(self) -> list[SubagentEntry]:
        found = self.reader.entries(sorted(self.reader.spine().subagents))
        return [entry for entry in found if isinstance(entry, SubagentEntry)]

    def skeleton(self) -> Headers:
        """Return the headers of all entries of the session, by ascending id.

        Each header is read when it is first used, see `skeleton.Headers`.
        """
        return self.reader.skeleton()

    # -- moving ------------------------------------------------------------------------------------

    def move(self, target: int | None) -> None:
        """Make the entry ``target`` the leaf (None for the beginning); raises EntryNotFound.

        The move is logged and can be undone.
        """
        self.reader.ids_to(target)
        if target != self.leaf:
            self._move(target, "move")

    def undo(self) -> int | None:
        """Undo the newest step, and return the new leaf; raises NothingToUndo.

        The move is logged as an undo.
        """
        self._move(self.history.target("undo"), "undo")
        return self.leaf

    def redo(self) -> int | None:
        """Redo the last undone step, and return the session's new leaf.

        Raises NothingToUndo if nothing was undone since the last new step.
        """
        self._move(self.history.target("redo"), "redo")
        return self.leaf

    def moves(self) -> list[LeafMove]:
        """Return all moves ever made in the session, oldest first, including undo and redo."""
        with self.store.reader() as connection:
            rows = connection.execute(
                "SELECT from_leaf, to_leaf, action, created_at FROM leaf_moves WHERE session = ? ORDER BY number",
                (self._number,),
            )
            return [LeafMove(*row) for row in rows]

    @property
    def history(self) -> History:
        if self._history is None:
            self._history = History(self.reader)
            for move in self.moves():
                self._history.apply(move)
        return self._history.reach(self.leaf)

    def _move(self, target: int | None, action: Literal["move", "undo", "redo"]) -> None:
        if self._is_beside:
            self._go_to(target)
            return
        history = self.history
        move = LeafMove(self.leaf, target, action, self._clock())
        with self._access.changing() as connection:
            entry_table.log_move(connection, self._number, move)
        history.apply(move)
        self._go_to(target)

    # -- labels ------------------------------------------------------------------------------------

    def label(self, entry_id: int, text: str | None) -> None:
        """Set an entry's label; None or "" removes it.

        Raises:
            EntryNotFound: there is no such entry.
        """
        with self._access.changing() as connection:
            if not entry_table.exists(connection, self._number, entry_id):
                raise EntryNotFound(entry_id)
            entry_table.set_label(connection, self._number, entry_id, text, self._clock())

    def labels(self) -> dict[int, str]:
        with self.store.reader() as connection:
            rows = connection.execute(
                "SELECT id, text FROM labels WHERE session = ? ORDER BY id", (self._number,)
            )
            return dict(rows.fetchall())

    # -- drafts ------------------------------------------------------------------------------------

    def save_draft(self, text: DraftText) -> None:
        """Save the answer being streamed as this object's draft, replacing the previous one.

        The answer will follow the leaf.
        """
        self._access.announce()
        with self._access.changing() as connection:
            drafts.save(connection, self._number, (self._writer, self.leaf), text, self._clock())
        self._has_draft = True

    def clear_draft(self) -> None:
        if self._has_draft:
            with self._access.changing() as connection:
                drafts.clear(connection, self._number, self._writer)
            self._has_draft = False

    def recover(self) -> AssistantEntry | None:
        """Append the drafts of ended programs as interrupted answers; return the newest answer.

        Each answer is appended below the leaf that its program had. If this object has the same
        leaf, its leaf moves to the answer. This object's own draft is included; the drafts of other
        live programs are not. Returns None if there was nothing to append, or the session is
        read-only.
        """
        if self.read_only:
            return None
        with self.store.reader() as connection:
            stored = drafts.load(connection, self._number)
        recovered: AssistantEntry | None = None
        for writer, leaf, text in stored:
            if writer == self._writer or not self.store.alive(writer):
                answer = drafts.entry_of(text)
                for entry in self._append(leaf, [answer] if answer else [], draft=writer):
                    recovered = entry if isinstance(entry, AssistantEntry) else recovered
        return recovered

    # -- holding -----------------------------------------------------------------------------------

    def hold(self, *, take_over: bool = False) -> None:
        """Claim the session for this object. Does nothing if the object has already claimed it.

        With ``take_over``, the session is claimed even if another live object holds it. The next
        change by that other object then raises SessionTakenOver.

        Raises:
            SessionHeld: another live object holds the session, which can be read, forked or taken
                over.
            StoreError: nothing can be saved.
            SessionNotFound: the session was deleted for good.
        """
        self._access.hold(take_over=take_over)

    def check_for_take_over(self) -> bool:
        """Return True if another object has taken the session over from this one. Reads one row.

        Always False for an object that doesn't hold the session. Raises SessionNotFound if the
        session was deleted for good.
        """
        return self._access.check_for_take_over()

    def release(self) -> None:
        """Release this object's claim on the session. A draft is then left for `recover`.

        An object made by `beside` deletes its draft instead, and the session remains claimed.
        """
        if self._is_beside:
            self.clear_draft()
        else:
            self._access.release(has_draft=self._has_draft)
        self._has_draft = False


def session_to_read(store: Store, session_id: str) -> Session:
    """Return a session object that can only read the session; raises SessionNotFound."""
    return Session(store, session_id, estimate=_count_nothing, read_only=True)


def _count_nothing(_entry: Entry) -> int:
    return 0
