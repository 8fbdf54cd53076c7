"""The store: all sessions of a user in one SQLite file. What happens inside a session is `Session`'s."""

import json
import os
import re
import socket
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any, Self
from weakref import WeakValueDictionary

from tui_agent.safe_text import valid
from tui_agent.session import blobs, entry_table, forking, queries
from tui_agent.session import unsent as unsents
from tui_agent.session.database import Database, SchemaTarget
from tui_agent.session.errors import (
    AmbiguousSession,
    EntryNotFound,
    SessionHeld,
    SessionNotFound,
    StoreError,
    StoreUnavailable,
)
from tui_agent.session.ids import Clock, IdSource, now, uuid7
from tui_agent.session.locks import LivenessLocks
from tui_agent.session.records import (
    EntryHeader,
    Holder,
    RequestRecord,
    RunOutcome,
    SearchHit,
    SessionInfo,
    SessionTotals,
    TypedText,
)
from tui_agent.session.unsent import Unsent

__all__ = ["EntryHeader", "Holder", "SearchHit", "SessionInfo", "Store", "drop_images", "surplus_images"]

# Images of files in the blob store: what they take together, and which go first when that is too much.

_KEPT_SHARE = 0.8
"""Images are dropped down to this part of the limit, so that it is not reached again at once."""

_IMAGES = """
SELECT digest, length(content) FROM blobs WHERE digest IN (
    SELECT json_extract(file.value, '$.' || side.value)
    FROM entries
    JOIN bodies ON bodies.key = (entries.session << 32) | entries.id
    JOIN json_each(bodies.body, '$.files') AS file
    JOIN json_each('["before", "after"]') AS side
    WHERE entries.kind = 'checkpoint'
)
ORDER BY used_at, digest
"""
_OTHERS = """
SELECT bodies.body FROM entries JOIN bodies ON bodies.key = (entries.session << 32) | entries.id
WHERE entries.kind IN ('tool_result', 'user')
AND (instr(bodies.body, '"full_output":"') OR instr(bodies.body, '"blob":"'))
"""
_DIGEST = re.compile(r'"(?:full_output|blob)":"([0-9a-f]{64})"')


def surplus_images(connection: sqlite3.Connection, limit: int) -> list[str]:
    """Return the images to drop, those used longest ago first, when all of them take more than ``limit`` bytes.

    Bytes that are an output or an attached image as well are not among them.
    """
    images: list[tuple[str, int]] = connection.execute(_IMAGES).fetchall()
    total = sum(size for _, size in images)
    if total <= limit:
        return []
    needed = {digest for (body,) in connection.execute(_OTHERS) for digest in _DIGEST.findall(body)}
    chosen: list[str] = []
    for digest, size in images:
        if total <= limit * _KEPT_SHARE:
            break
        if digest not in needed:
            chosen.append(digest)
            total -= size
    return chosen


def drop_images(connection: sqlite3.Connection, digests: Sequence[str]) -> None:
    """Delete images; the entries that name them stay."""
    connection.executemany("DELETE FROM blobs WHERE digest = ?", [(digest,) for digest in digests])


_ABANDONED = 24 * 3600 * 1000
"""Milliseconds after which what a program left that never ended properly is cleared away by another one."""

_AND_SUBAGENTS = " OR (parent_session = ? AND agent != '')"
_INFO_COLUMNS = (
    "id, cwd, title, created_at, updated_at, model, entry_count, leaf, parent_session, parent_entry, agent, side_cost, "
    "first_message, key, outcome, holder, holder_pid, holder_host, held_since"
)


class Store:
    """All sessions of a user.

    Methods may be called from any thread; each thread reads through its own connection.

    Args:
        path: The session file, created when missing.
        clock: Where times come from.
        new_id: Where session ids come from.
        busy_timeout: Milliseconds to wait for another program that is writing.
        read_only: Open for reading even where writing would be possible.
        target: The schema to use; only tests have another one.

    Raises:
        StoreError: the file can't be used; it is left as it was.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock = now,
        new_id: IdSource = uuid7,
        busy_timeout: int = 2_000,
        read_only: bool = False,
        target: SchemaTarget | None = None,
    ) -> None:
        self._database = Database(path, busy_timeout=busy_timeout, read_only=read_only, target=target)
        self.path = self._database.path
        self.clock = clock
        self._new_id = new_id
        self._token = uuid7(now())
        self._locks = LivenessLocks(self.path.with_name(self.path.name + ".locks"))
        self._writer_numbers = count(1)
        self._writers: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def damage(self) -> str:
        """Return what is broken in the file, one line; "" where nothing is. Reads all of the file."""
        try:
            with self.reader() as connection:
                found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
        except StoreError as error:
            return error.message
        return "" if found == ["ok"] else " ".join(" ".join(found).split())[:300]

    @property
    def read_only(self) -> StoreError | None:
        """Why nothing can be saved, as an error with a sentence for people; None when all is well."""
        return self._database.refusal

    def reader(self) -> AbstractContextManager[sqlite3.Connection]:
        """The calling thread's connection, to read with in a ``with`` block."""
        return self._database.read()

    def writer(self) -> AbstractContextManager[sqlite3.Connection]:
        """A write transaction in a ``with`` block: committed at its end, rolled back on any exception."""
        return self._database.write()

    def close(self) -> None:
        """Close the file; sessions that were held are free again. Closing twice is harmless."""
        self._database.close()
        self._locks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # -- sessions -------------------------------------------------------------------------------------------

    def create_session(
        self, cwd: Path | str, *, title: str = "", parent: tuple[str, int | None] | None = None, agent: str = ""
    ) -> SessionInfo:
        """Create an empty session.

        ``parent`` names the session and entry it comes from, ``agent`` the kind of the subagent that works in it.
        """
        with self.writer() as connection:
            number = forking.insert_session(
                connection,
                session_id=(session_id := self._new_id(self.clock())),
                cwd=valid(str(cwd)),
                title=valid(title),
                at=self.clock(),
                origin=(*(parent or (None, None)), valid(agent)),
            )
        return self._info_of(number, session_id)

    def session_with_key(self, key: str) -> SessionInfo | None:
        """Return the session of the run with a key, None if there is none yet."""
        with self.reader() as connection:
            row = connection.execute(
                f"SELECT {_INFO_COLUMNS} FROM sessions WHERE key = ? AND deleted_at IS NULL",  # noqa: S608 - a constant
                (valid(key),),
            ).fetchone()
        return None if row is None else self._info(row)

    def set_key(self, session_id: str, key: str) -> None:
        """Give a session the key of its run.

        Raises:
            StoreError: another session has it.
        """
        try:
            self._change(session_id, "key = ?", (valid(key),))
        except sqlite3.IntegrityError:
            raise StoreError(f"Another run has begun with the key “{key}” at the same time.") from None

    def set_outcome(self, session_id: str, outcome: RunOutcome | None) -> None:
        """Keep how the session's last run ended; None while one goes on."""
        self._change(session_id, "outcome = ?", ("" if outcome is None else json.dumps(asdict(outcome)),))

    def sessions(
        self, *, cwd: Path | str | None = None, query: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[SessionInfo]:
        """Return sessions, the last used first. Those of subagents are found by a search, and listed with no other.

        Sessions that a killed program left empty are not there.

        ``cwd`` keeps those of one directory, ``query`` those whose title, first message, directory or id contains all
        its words, or in which the words occur in an entry.
        """
        with self.reader() as connection:
            rows = queries.sessions(
                connection,
                _INFO_COLUMNS,
                cwd=None if cwd is None else valid(str(cwd)),
                query=query,
                window=(limit, offset),
                hidden=self._left_empty(connection),
            )
        return [self._info(row) for row in rows]

    def session(self, id_or_prefix: str) -> SessionInfo:
        """Return a session by its id, or by the beginning or end of it.

        Ids begin with their time, so that those of one minute differ only further on; the end is what people copy.

        Raises:
            SessionNotFound: no session matches.
            AmbiguousSession: several do.
        """
        with self.reader() as connection:
            rows = queries.sessions_named(connection, _INFO_COLUMNS, id_or_prefix)
        if not rows:
            raise SessionNotFound(id_or_prefix)
        if len(rows) > 1:
            found = [self._info(row) for row in rows]
            names = tuple((info.title or info.first_message)[:40] for info in found)
            raise AmbiguousSession(id_or_prefix, tuple(info.id for info in found), names)
        return self._info(rows[0])

    def totals(self, session_id: str) -> SessionTotals:
        """Return what a session amounts to, the work beside its entries included; every answer is looked at.

        Raises:
            SessionNotFound: there is no such session.
        """
        number = self.number(session_id)
        with self.reader() as connection:
            return queries.totals(connection, number)

    def subagent_requests(self, session_id: str) -> list[RequestRecord]:
        """Return what the requests of a session's subagents say; takes a moment when they worked long."""
        with self.reader() as connection:
            numbers = connection.execute(
                "SELECT number, last_id FROM sessions WHERE parent_session = ? AND agent <> ''", (session_id,)
            ).fetchall()
            return [record for number, last in numbers for record in entry_table.requests(connection, number, 1, last)]

    def rename(self, session_id: str, title: str) -> None:
        """Give a session a title; "" takes it away.

        Raises:
            SessionNotFound: there is no such session.
        """
        self._change(session_id, "title = ?", (valid(title),))

    def delete(self, session_id: str) -> None:
        """Hide a session, and those of its subagents, until `undelete`, or until `purge` deletes them.

        Raises:
            SessionNotFound: there is no such session.
            SessionHeld: a live program works on it.
        """
        if holder := self.session(session_id).held_by:
            raise SessionHeld(session_id, holder.pid, holder.host, holder.since)
        self._change(session_id, "deleted_at = ?, deleted_by = ?", (self.clock(), self._token), with_subagents=True)

    def undelete(self, session_id: str) -> None:
        """Bring back a session that was deleted and not purged yet.

        Raises:
            SessionNotFound: it is gone, or there never was one.
        """
        self._change(session_id, "deleted_at = NULL, deleted_by = NULL", (), with_subagents=True)

    def purge(self) -> int:
        """Delete for good what this program deleted, and what others left that ended without doing so.

        That is what they deleted, and the empty sessions of programs that were killed. To be called when the program
        ends. Returns how many sessions it were.
        """
        longest_ago = self.clock() - _ABANDONED
        with self.reader() as connection:
            numbers = [
                row[0]
                for row in connection.execute(
                    "SELECT number FROM sessions WHERE deleted_at IS NOT NULL AND (deleted_by = ? OR deleted_at < ?)",
                    (self._token, longest_ago),
                )
            ]
            left = self._left_empty(connection, before=longest_ago)
        numbers = list(dict.fromkeys((*numbers, *left)))
        for number in numbers:
            with self.writer() as connection:
                forking.remove_session(connection, number)
                blobs.collect(connection, self.clock())
        return len(numbers)

    def fork(self, session_id: str, at_entry: int | None) -> SessionInfo:
        """Copy the path to an entry into a new session and return it; None forks to an empty one.

        Entries keep their ids, so that every ``#412`` in summaries and answers still names the same entry.

        Raises:
            SessionNotFound: there is no such session.
            EntryNotFound: the session has no such entry.
        """
        source = self.number(session_id)
        with self.writer() as connection:
            if at_entry is not None and not entry_table.exists(connection, source, at_entry):
                raise EntryNotFound(at_entry)
            new_id, at = self._new_id(self.clock()), self.clock()
            number = forking.begin(connection, source, at_entry, fork=(new_id, self._token), at=at)
            leaf, ids_to_copy = forking.path_to(connection, source, at_entry)
        # Copying 100,000 entries takes seconds, in which others have to be able to write.
        for ids in entry_table.chunks(ids_to_copy):
            with self.writer() as connection:
                forking.copy(connection, source, number, ids)
        with self.writer() as connection:
            forking.finish(connection, source, number, leaf, len(ids_to_copy))
        return self._info_of(number, new_id)

    # -- blobs, search, history -----------------------------------------------------------------------------

    def put_blob(self, data: bytes) -> str:
        """Store bytes once and return their digest."""
        with self.writer() as connection:
            return blobs.put(connection, data, self.clock())

    def blob(self, digest: str) -> bytes | None:
        """Return a blob's bytes, None when there is none."""
        with self.reader() as connection:
            return blobs.get(connection, digest)

    def trim_file_images(self, limit: int) -> int:
        """Drop the oldest images of files while those of all checkpoints take more than ``limit`` bytes.

        Returns how many were dropped. Takes a moment in a large store: call it in a thread.
        """
        with self.reader() as connection:
            digests = surplus_images(connection, limit)
        if digests:
            with self.writer() as connection:
                drop_images(connection, digests)
        return len(digests)

    def search(
        self, query: str, limit: int = 50, *, session_id: str | None = None, cwd: Path | str | None = None
    ) -> list[SearchHit]:
        """Return the newest entries in which all words of ``query`` occur; the last word may be unfinished.

        All branches of all sessions are searched, or those of one session or one directory. No character in the
        query has a special meaning.
        """
        number = None if session_id is None else self.number(session_id)
        directory = None if cwd is None else valid(str(cwd))
        with self.reader() as connection:
            return queries.entries(connection, query, limit, session=number, cwd=directory)

    def ranked(self, query: str, limit: int, session_id: str) -> list[int]:
        """Return the ids of a session's entries that fit a query best, best first: some of its words are enough."""
        number = self.number(session_id)
        with self.reader() as connection:
            return queries.ranked(connection, query, limit, number)

    def matching(self, query: str, session_id: str) -> list[int]:
        """Return the ids of all entries of a session that `search` would find, ascending; their text is not read."""
        number = self.number(session_id)
        with self.reader() as connection:
            return queries.matching(connection, query, number)

    def mentionable(self, session_id: str, query: str, limit: int) -> list[EntryHeader]:
        """Return the headers of entries whose number begins with a query or whose first words hold it, newest first."""
        number = self.number(session_id)
        with self.reader() as connection:
            return queries.mentionable(connection, query, limit, number)

    def prompt_history(self, limit: int = 500) -> list[str]:
        """Return what the user typed in all sessions, distinct, the newest first. Shell commands begin with ``!``."""
        with self.reader() as connection:
            return [typed.text for typed in queries.typed_texts(connection, limit)]

    def typed_in(self, project: Path | str, limit: int) -> list[TypedText]:
        """Return what the user typed in the sessions of a directory, distinct, the newest first; from any thread."""
        with self.reader() as connection:
            return queries.typed_texts(connection, limit, valid(str(project)))

    def keep_unsent(self, place: str, unsent: Unsent) -> None:
        """Keep what the user wrote and has not sent; ``place`` is a session's id or a directory."""
        self.announce()
        with self.writer() as connection:
            kept = replace(unsent, text=valid(unsent.text))
            unsents.keep(connection, valid(place), self._token, kept, self.clock())

    def take_unsent(self, place: str) -> Unsent:
        """Return what was kept at a place by this program or by ones that ended, and forget it."""
        with self.writer() as connection:
            unsents.forget(connection, self.clock() - unsents.RETENTION_MS)
            return unsents.take(connection, valid(place), self._is_free)

    def take_own_unsent(self, place: str) -> Unsent:
        """Return what this program kept at a place, and forget it; what others left stays."""
        with self.writer() as connection:
            return unsents.take(connection, valid(place), self._token.__eq__)

    def _is_free(self, token: str) -> bool:
        return token == self._token or not self._locks.alive(token)

    # -- for Session ----------------------------------------------------------------------------------------

    def number(self, session_id: str) -> int:
        """Return the number that stands for a session in the file.

        Raises:
            SessionNotFound: there is no such session, or it is deleted.
        """
        with self.reader() as connection:
            row = connection.execute(
                "SELECT number FROM sessions WHERE id = ? AND deleted_at IS NULL", (session_id,)
            ).fetchone()
        if row is None:
            raise SessionNotFound(session_id)
        number: int = row[0]
        return number

    def new_writer(self, session: object) -> str:
        """Return a name under which a session object writes; it lives as long as the object and the program."""
        writer = f"{self._token}.{next(self._writer_numbers)}"
        self._writers[writer] = session
        return writer

    def announce(self) -> None:
        """Make this program's life visible to others; needed before anything that names a writer is stored."""
        try:
            self._locks.announce(self._token)
        except OSError as error:
            raise StoreUnavailable(f"The session file {self.path} can't be locked: {error.strerror}.") from error

    def alive(self, writer: str | None) -> bool:
        """Whether the session object with this name still lives, in this program or another one."""
        if writer is None:
            return False
        token = writer.partition(".")[0]
        return writer in self._writers if token == self._token else self._locks.alive(token)

    @staticmethod
    def identity() -> tuple[int, str]:
        """Return this program's process id and host, as shown to whoever finds a session held."""
        return os.getpid(), socket.gethostname()

    # -- inside ---------------------------------------------------------------------------------------------

    def _change(
        self, session_id: str, assignments: str, values: Sequence[object], *, with_subagents: bool = False
    ) -> None:
        with self.writer() as connection:
            changed = connection.execute(
                f"UPDATE sessions SET {assignments} WHERE id = ?{_AND_SUBAGENTS if with_subagents else ''}",  # noqa: S608 - texts of this class
                (*values, session_id, *([session_id] if with_subagents else [])),
            )
            if not changed.rowcount:
                raise SessionNotFound(session_id)

    def _left_empty(self, connection: sqlite3.Connection, *, before: int | None = None) -> list[int]:
        return [
            number
            for number, writer, used in queries.empty(connection)
            if (before is None or used < before) and not self.alive(writer)
        ]

    def _info_of(self, number: int, session_id: str) -> SessionInfo:
        with self.reader() as connection:
            row = connection.execute(
                f"SELECT {_INFO_COLUMNS} FROM sessions WHERE number = ?",  # noqa: S608 - a constant
                (number,),
            ).fetchone()
        if row is None:
            raise SessionNotFound(session_id)
        return self._info(row)

    def _info(self, row: Sequence[Any]) -> SessionInfo:
        *plain, key, outcome, writer, pid, host, since = row
        holder = Holder(pid, host, since) if self.alive(writer) else None
        plain += [holder, key, RunOutcome(**json.loads(outcome)) if outcome else None]
        return SessionInfo(*plain)
