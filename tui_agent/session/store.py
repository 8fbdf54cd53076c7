"""The store: all sessions of a user in one SQLite file.

Changes inside a session are `Session`'s.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Self

from tui_agent.lazy import LazyPattern
from tui_agent.safe_text import valid
from tui_agent.session import entry_table, forking
from tui_agent.session.database import MIGRATIONS, Database, Migration
from tui_agent.session.errors import (
    EntryNotFound,
    SessionHeld,
    SessionNotFound,
    StoreError,
    StoreUnavailable,
)
from tui_agent.session.ids import Clock, now, uuid7
from tui_agent.session.records import RunOutcome, SessionInfo, Unsent
from tui_agent.session.store_reader import Connecting, StoreReader

# Images of files in the blob store: their total size, and which go first when that is too much.

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
_DIGEST = LazyPattern(r'"(?:full_output|blob)":"([0-9a-f]{64})"')


_ABANDONED = 24 * 3600 * 1000
"""Milliseconds after which leftovers of a program that never ended properly are cleared away by
another one."""

RETENTION_MS = 90 * 24 * 3600 * 1000
"""Milliseconds after which unsent text of a directory is forgotten."""
_AND_SUBAGENTS = " OR (parent_session = ? AND agent != '')"


class Store(StoreReader):
    """All sessions of a user: reading them, see `StoreReader`, and changing them.

    Methods may be called from any thread; each thread reads through its own connection.

    Args:
        path: The session file, created when missing.
        clock: Where times come from.
        busy_timeout: Milliseconds to wait for another program that is writing.
        read_only: Open for reading even where writing would be possible.
        migrations: How to get from each older schema to the next; only tests have others.

    Raises:
        StoreError: the file can't be used; it is left as it was.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock = now,
        busy_timeout: int = 2_000,
        read_only: bool = False,
        migrations: Mapping[int, Migration] = MIGRATIONS,
    ) -> None:
        super().__init__(
            Database(path, busy_timeout=busy_timeout, read_only=read_only, migrations=migrations)
        )
        self.writer: Connecting = self._database.write
        """Gives a write transaction for a ``with`` block: committed at its end, rolled back on any
        exception."""
        self.clock = clock
        self._writer_numbers = count(1)

    def close(self) -> None:
        """Close the file; sessions that were held are free again. Closing twice is harmless."""
        self._database.close()
        self._locks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # -- sessions ----------------------------------------------------------------------------------

    def create_session(
        self,
        cwd: Path | str,
        *,
        title: str = "",
        parent: tuple[str, int | None] | None = None,
        agent: str = "",
    ) -> SessionInfo:
        """Create an empty session.

        ``parent`` names the session and entry it comes from, ``agent`` the kind of the subagent
        that works in it.
        """
        with self.writer() as connection:
            forking.insert_session(
                connection,
                session_id=(session_id := uuid7(self.clock())),
                cwd=valid(str(cwd)),
                title=valid(title),
                at=self.clock(),
                origin=(*(parent or (None, None)), valid(agent)),
            )
        return self.session(session_id)

    def set_key(self, session_id: str, key: str) -> None:
        """Give a session the key of its run.

        Raises:
            StoreError: another session has it.
        """
        try:
            self._change(session_id, "key = ?", (valid(key),))
        except sqlite3.IntegrityError:
            raise StoreError(
                f"Another run has begun with the key “{key}” at the same time."
            ) from None

    def set_outcome(self, session_id: str, outcome: RunOutcome | None) -> None:
        """Keep how the session's last run ended; None while one goes on."""
        self._change(
            session_id, "outcome = ?", ("" if outcome is None else json.dumps(asdict(outcome)),)
        )

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
        self._change(
            session_id,
            "deleted_at = ?, deleted_by = ?",
            (self.clock(), self._token),
            with_subagents=True,
        )

    def undelete(self, session_id: str) -> None:
        """Bring back a session that was deleted and not purged yet.

        Raises:
            SessionNotFound: it is gone, or there never was one.
        """
        self._change(session_id, "deleted_at = NULL, deleted_by = NULL", (), with_subagents=True)

    def purge(self) -> int:
        """Delete for good the sessions this program deleted, and leftovers of others that ended without doing so.

        Leftovers are sessions they deleted, and empty sessions of programs that were killed. To be
        called when the program ends. Returns how many sessions it were.
        """
        longest_ago = self.clock() - _ABANDONED
        with self.reader() as connection:
            rows = connection.execute(
                "SELECT number FROM sessions WHERE deleted_at IS NOT NULL AND (deleted_by = ? OR deleted_at < ?)",
                (self._token, longest_ago),
            )
            deleted = [number for (number,) in rows]
            left = self._left_empty(connection, before=longest_ago)
        numbers = dict.fromkeys((*deleted, *left))
        for number in numbers:
            with self.writer() as connection:
                forking.remove_session(connection, number)
                entry_table.collect_blobs(connection, self.clock())
        return len(numbers)

    def fork(self, session_id: str, at_entry: int | None) -> SessionInfo:
        """Copy the path to an entry into a new session and return it; None forks to an empty one.

        Entries keep their ids, so that every ``#412`` in summaries and answers still names the same
        entry.

        Raises:
            SessionNotFound: there is no such session.
            EntryNotFound: the session has no such entry.
        """
        source = self.number(session_id)
        with self.writer() as connection:
            if at_entry is not None and not entry_table.exists(connection, source, at_entry):
                raise EntryNotFound(at_entry)
            new_id = uuid7(self.clock())
            at = self.clock()
            number = forking.begin(connection, source, at_entry, fork=(new_id, self._token), at=at)
            leaf, ids_to_copy = forking.path_to(connection, source, at_entry)
        # Copying 100,000 entries takes seconds, in which others have to be able to write.
        for ids in entry_table.chunks(ids_to_copy):
            with self.writer() as connection:
                forking.copy(connection, source, number, ids)
        with self.writer() as connection:
            forking.finish(connection, source, number, leaf, len(ids_to_copy))
        return self.session(new_id)

    # -- blobs and unsent texts --------------------------------------------------------------------

    def put_blob(self, data: bytes) -> str:
        with self.writer() as connection:
            return entry_table.put_blob(connection, data, self.clock())

    def trim_file_images(self, limit: int) -> int:
        """Drop the images of files that were used longest ago while those of all checkpoints exceed ``limit`` bytes.

        Bytes that are an output or an attached image as well stay, and so do the entries that name
        dropped images. Returns how many were dropped. Takes a moment in a large store: call it in a
        thread.
        """
        with self.reader() as connection:
            images: list[tuple[str, int]] = connection.execute(_IMAGES).fetchall()
            total = sum(size for _, size in images)
            if total <= limit:
                return 0
            needed: set[str] = set()
            for (body,) in connection.execute(_OTHERS):
                needed.update(_DIGEST.findall(body))
        dropped: list[tuple[str]] = []
        for digest, size in images:
            if total <= limit * _KEPT_SHARE:
                break
            if digest not in needed:
                dropped.append((digest,))
                total -= size
        if dropped:
            with self.writer() as connection:
                connection.executemany("DELETE FROM blobs WHERE digest = ?", dropped)
        return len(dropped)

    def rewrite(self) -> None:
        """Write the file anew without what was deleted in it. Takes seconds in a large store.

        Raises:
            StoreError: it can't be done now, because another program uses the file, say.
        """
        self._database.rewrite()

    def keep_unsent(self, place: str, unsent: Unsent) -> None:
        """Keep the user's unsent text, so that a crash loses nothing.

        ``place`` is a session's id, or a directory in which a new session was begun. Each program
        keeps its own, so that two of them in one directory don't take each other's words away.
        """
        self.announce()
        key = valid(place), self._token
        with self.writer() as connection:
            if unsent:
                connection.execute(
                    "INSERT OR REPLACE INTO unsent (place, program, text, waiting, updated_at) VALUES (?, ?, ?, ?, ?)",
                    (*key, valid(unsent.text), json.dumps(unsent.waiting), self.clock()),
                )
            else:
                connection.execute("DELETE FROM unsent WHERE place = ? AND program = ?", key)

    def take_unsent(self, place: str, *, only_own: bool = False) -> Unsent:
        """Return and forget the text kept at a place by this program or by ones that ended, the oldest first.

        With ``only_own`` texts of others stay.
        """
        texts: list[str] = []
        waiting: list[str] = []
        with self.writer() as connection:
            connection.execute(
                "DELETE FROM unsent WHERE updated_at < ?", (self.clock() - RETENTION_MS,)
            )
            rows = connection.execute(
                "SELECT program, text, waiting FROM unsent WHERE place = ? ORDER BY updated_at, program",
                (valid(place),),
            ).fetchall()
            for program, text, queued in rows:
                if program == self._token or not (only_own or self._locks.alive(program)):
                    texts += [text] if text.strip() and text not in texts else []
                    waiting += map(str, json.loads(queued))
                    connection.execute(
                        "DELETE FROM unsent WHERE place = ? AND program = ?",
                        (valid(place), program),
                    )
        return Unsent("\n\n".join(texts), tuple(waiting))

    # -- for Session -------------------------------------------------------------------------------

    def new_writer(self, session: object) -> str:
        """Return a name under which a session object writes.

        It lives as long as the object and the program.
        """
        writer = f"{self._token}.{next(self._writer_numbers)}"
        self._writers[writer] = session
        return writer

    def announce(self) -> None:
        """Make this program's life visible to others.

        Needed before anything that names a writer is stored.
        """
        try:
            self._locks.announce(self._token)
        except OSError as error:
            raise StoreUnavailable(
                f"The session file {self.path} can't be locked: {error.strerror}."
            ) from error

    # -- inside ------------------------------------------------------------------------------------

    def _change(
        self,
        session_id: str,
        assignments: str,
        values: Sequence[object],
        *,
        with_subagents: bool = False,
    ) -> None:
        with self.writer() as connection:
            changed = connection.execute(
                f"UPDATE sessions SET {assignments} WHERE id = ?{_AND_SUBAGENTS if with_subagents else ''}",  # noqa: S608 - texts of this class
                (*values, session_id, *([session_id] if with_subagents else [])),
            )
            if not changed.rowcount:
                raise SessionNotFound(session_id)
