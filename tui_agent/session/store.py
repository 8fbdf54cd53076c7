"""Changes the store, which is the SQLite file that contains all sessions of a user.

The module creates, renames, forks and deletes whole sessions. It also stores blobs, unsent texts,
and the keys and outcomes of runs without a screen. `Session` changes the contents of a session, in
transactions of `Store.writer`.
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

# The following constants say which blobs are snapshots of files, and how many of the snapshots are
# deleted when together they exceed the size limit.

_KEPT_SHARE = 0.8
"""Share of the size limit that the remaining file snapshots may take after some were deleted. It is
less than 1, so that the limit isn't exceeded again soon."""

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
"""Number of milliseconds after which the sessions that a killed program left behind may be deleted
by another program."""

RETENTION_MS = 90 * 24 * 3600 * 1000
"""Number of milliseconds after which saved unsent text is deleted."""
_AND_SUBAGENTS = " OR (parent_session = ? AND agent != '')"


class Store(StoreReader):
    """All sessions of a user, in one file. `StoreReader` defines the methods that only read.

    Methods may be called from any thread; each thread reads through its own connection.

    Args:
        path: The session file, created when missing, unless ``read_only``.
        clock: Returns the time in milliseconds since the epoch.
        busy_timeout: Milliseconds to wait for another program that is writing.
        read_only: Open for reading even if the file can be written.
        migrations: The migration from each older schema to the next; only tests pass others.

    Raises:
        StoreError: the file can't be used, and was not changed.
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
        """Opens a write transaction for a ``with`` block. The transaction is committed at the end
        of the block, or rolled back if the block raises an exception."""
        self.clock = clock
        self._writer_numbers = count(1)

    def close(self) -> None:
        """Close the file and release all held sessions. Idempotent."""
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
        """Create an empty session and return it.

        ``parent`` is the id of the session that the new one comes from and the id of the entry
        there, or None if there is no such session. ``agent`` is the name of the subagent that works
        in the new session, "" for none.
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
        """Set the key by which a run without a screen finds its session when it is started again.

        Raises StoreError if another session has the key.
        """
        self._change(session_id, "key = ?", (valid(key),))

    def set_outcome(self, session_id: str, outcome: RunOutcome | None) -> None:
        """Store the outcome of the session's last run, or None while a run is in progress."""
        self._change(
            session_id, "outcome = ?", ("" if outcome is None else json.dumps(asdict(outcome)),)
        )

    def rename(self, session_id: str, title: str) -> None:
        """Set a session's title; "" removes it. Raises SessionNotFound."""
        self._change(session_id, "title = ?", (valid(title),))

    def delete(self, session_id: str) -> None:
        """Mark a session and its subagents' sessions as deleted; `purge` deletes them permanently.

        Until then, `undelete` can restore them. Raises SessionNotFound, or SessionHeld if a running
        program holds the session.
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
        """Restore a deleted session and the sessions of its subagents.

        Raises SessionNotFound if the session was purged, or StoreError if another session now has
        its key.
        """
        self._change(session_id, "deleted_at = NULL, deleted_by = NULL", (), with_subagents=True)

    def purge(self) -> int:
        """Permanently delete the sessions that this program marked as deleted; return their number.

        Also deletes and counts the empty sessions and the sessions marked as deleted that killed
        programs left behind more than a day ago. Call this method when the program ends.
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
        """Copy the path from the root to an entry into a new session, and return that session.

        If ``at_entry`` is None, the new session is empty. Branches of subagents started on the path
        are copied, too. Entries keep their ids, so that every ``#412`` in summaries and answers
        still names the same entry.

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
        # Copying 100,000 entries takes seconds, so it is done in chunks, between which other
        # programs can write.
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
        """Delete the oldest file snapshots if all of them together exceed ``limit`` bytes.

        Deletes until the snapshots take at most 80 % of the limit. They may still take more,
        because a blob that is also an output or an attached image is kept. Checkpoints still refer
        to the deleted blobs. Returns the number of deleted snapshots. The method is slow in a large
        store, so call it in a thread.
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
        """Rewrite the session file, so that deleted data can't be recovered from it.

        Takes seconds in a large store. Raises StoreError if the file can't be rewritten now, for
        example because another program is using it.
        """
        self._database.rewrite()

    def keep_unsent(self, place: str, unsent: Unsent) -> None:
        """Save the user's unsent text, in case of a crash. An empty text deletes the saved one.

        ``place`` is the session's id, or the working directory if there is no session yet. Each
        running program has its own text for a session or directory.
        """
        self.announce()
        key = valid(place), self._token
        with self.writer() as connection:
            if unsent:
                # The times determine the order of the texts, so they must differ even if two
                # programs end within the same millisecond.
                connection.execute(
                    "INSERT OR REPLACE INTO unsent (place, program, text, waiting, updated_at) VALUES (?, ?, ?, ?, "
                    "max(?, (SELECT coalesce(max(updated_at), 0) + 1 FROM unsent WHERE place = ?)))",
                    (*key, valid(unsent.text), json.dumps(unsent.waiting), self.clock(), key[0]),
                )
            else:
                connection.execute("DELETE FROM unsent WHERE place = ? AND program = ?", key)

    def take_unsent(self, place: str, *, only_own: bool = False) -> Unsent:
        """Delete and return the unsent texts that this or ended programs saved at a place, joined.

        A place is the id of a session, or a working directory. The oldest text comes first, and
        prompts are separated by an empty line. With ``only_own``, only this program's texts are
        taken. Texts of other running programs stay. Texts older than 90 days are deleted without
        being returned.
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
        """Return a new, unique writer name for a session object.

        `alive` is True for the name while the object exists.
        """
        writer = f"{self._token}.{next(self._writer_numbers)}"
        self._writers[writer] = session
        return writer

    def announce(self) -> None:
        """Show other programs that this one is alive; call this before storing a writer's name.

        Raises StoreUnavailable if the lock file can't be created.
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
            try:
                changed = connection.execute(
                    f"UPDATE sessions SET {assignments} WHERE id = ?{_AND_SUBAGENTS if with_subagents else ''}",  # noqa: S608 - texts of this class
                    (*values, session_id, *([session_id] if with_subagents else [])),
                )
            except sqlite3.IntegrityError:
                raise StoreError(
                    "Another session has the same key: a run with this key started at the same time, or after this "
                    "session was deleted."
                ) from None
            if not changed.rowcount:
                raise SessionNotFound(session_id)
