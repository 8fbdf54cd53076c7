"""Reads lists of sessions, totals and blobs from the session file, and searches all sessions.

`StoreReader.alive` finds out which programs are running, from lock files in a directory beside the
session file. Lock files of ended programs are deleted.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from tui_agent.safe_text import valid
from tui_agent.session import entry_table
from tui_agent.session.database import Database
from tui_agent.session.entries import ShellEntry, is_by_user, kinds, typed_text
from tui_agent.session.errors import AmbiguousSession, SessionNotFound, StoreError
from tui_agent.session.ids import now, uuid7
from tui_agent.session.locks import LivenessLocks
from tui_agent.session.records import (
    EntryHeader,
    Holder,
    Purpose,
    RequestRecord,
    RunOutcome,
    SearchHit,
    SessionInfo,
    SessionTotals,
    SideCost,
    TypedText,
)
from tui_agent.session.rows import BodyError, entry_from
from tui_agent.session.schema import key_of, key_range
from tui_agent.session.search import match_expression, ranked_expression, snippet

_CONSIDERED = 2_000
"""Maximum number of matches of a search that are sorted by time. If there are more matches, only
those in the newest sessions are considered."""

_MENTIONABLE = kinds(lambda kind: kind.is_mentionable)

_STATES = ", ".join(f"'{kind}'" for kind in kinds(lambda kind: kind.sets_state))
_IS_TYPED = (
    "NOT EXISTS (WITH RECURSIVE up (kind, above) AS ("  # noqa: S608 - constants
    "SELECT kind, parent_id FROM entries WHERE session = e.session AND id = e.parent_id UNION ALL "
    "SELECT p.kind, p.parent_id FROM up JOIN entries AS p ON p.session = e.session AND p.id = up.above "
    f"WHERE up.kind IN ({_STATES})) SELECT 1 FROM up WHERE kind = 'subagent')"
)
"""SQL condition that is true unless the entry ``e`` is the task that begins a subagent's branch."""

_NAMED = 10
"""Maximum number of sessions that the error message for an ambiguous part of an id names."""
_INFO_COLUMNS = (
    "id, cwd, title, created_at, updated_at, model, entry_count, leaf, parent_session, parent_entry, agent, side_cost, "
    "first_message, key, outcome, holder, holder_pid, holder_host, held_since"
)


Connecting = Callable[[], AbstractContextManager[sqlite3.Connection]]
"""Function that returns a context manager, whose ``with`` block gets a connection to the session
file."""


class StoreReader:
    """Reads a session file. Methods may be called from any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.reader: Connecting = database.read
        """Returns a context manager that gives the calling thread's connection for reading."""
        self.path = database.path
        self._token = uuid7(now())
        self._locks = LivenessLocks(self.path.with_name(self.path.name + ".locks"))
        self._writers: WeakValueDictionary[str, Any] = WeakValueDictionary()

    @property
    def read_only(self) -> StoreError | None:
        """The error that every change raises; None if the session file can be written."""
        return self._database.refusal

    def damage(self) -> str:
        """Return a line that describes damage to the session file; "" if the file is not damaged.

        Reads the whole file.
        """
        try:
            with self.reader() as connection:
                found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
        except StoreError as error:
            return error.message
        if found == ["ok"]:
            return ""
        return " ".join(" ".join(found).split())[:300]

    # -- sessions ----------------------------------------------------------------------------------

    def session_with_key(self, key: str) -> SessionInfo | None:
        with self.reader() as connection:
            row = connection.execute(
                f"SELECT {_INFO_COLUMNS} FROM sessions WHERE key = ? AND deleted_at IS NULL",  # noqa: S608 - a constant
                (valid(key),),
            ).fetchone()
        if row is None:
            return None
        return self._info(row)

    def sessions(
        self,
        *,
        cwd: Path | str | None = None,
        query: str | None = None,
        limit: int = 200,
        offset: int = 0,
    ) -> list[SessionInfo]:
        """Return the sessions that aren't deleted, most recently used first.

        ``cwd`` selects the sessions of one directory. ``query`` selects those whose title, first
        message, directory and id together contain all its words, or that have an entry with all of
        them. Sessions of subagents are left out unless there is a ``query``; empty sessions left by
        a killed program are always left out.
        """
        conditions = ["deleted_at IS NULL"]
        values = list[object]()
        if cwd is not None:
            conditions.append("cwd = ?")
            values.append(valid(str(cwd)))
        if query and query.strip():
            condition, words = _mentions(valid(query))
            conditions.append(condition)
            values.extend(words)
        else:
            conditions.append("agent = ''")
        with self.reader() as connection:
            if hidden := self._left_empty(connection):
                conditions.append(f"number NOT IN ({', '.join(map(str, hidden))})")
            rows = connection.execute(
                f"SELECT {_INFO_COLUMNS} FROM sessions WHERE {' AND '.join(conditions)} "  # noqa: S608 - constants
                "ORDER BY updated_at DESC, number DESC LIMIT ? OFFSET ?",
                (*values, limit, offset),
            ).fetchall()
        return [self._info(row) for row in rows]

    def session(self, id_or_part: str) -> SessionInfo:
        """Return a session by its id, or by the beginning or end of its id.

        Raises SessionNotFound if no session matches, or AmbiguousSession if several do.
        """
        part = valid(id_or_part)
        query = f"SELECT {_INFO_COLUMNS} FROM sessions WHERE deleted_at IS NULL AND "  # noqa: S608 - a constant
        with self.reader() as connection:
            rows = connection.execute(query + "id = ?", (part,)).fetchall()
            if part and not rows:
                rows = connection.execute(
                    query
                    + "(id LIKE ? ESCAPE '\\' OR id LIKE ? ESCAPE '\\') ORDER BY updated_at DESC LIMIT ?",
                    (f"{_escaped(part)}%", f"%{_escaped(part)}", _NAMED),
                ).fetchall()
        found = [self._info(row) for row in rows]
        if not found:
            raise SessionNotFound(id_or_part)
        if len(found) > 1:
            names = tuple((info.title or info.first_message)[:40] for info in found)
            raise AmbiguousSession(id_or_part, tuple(info.id for info in found), names)
        return found[0]

    def totals(self, session_id: str) -> SessionTotals:
        """Return a session's totals; raises SessionNotFound.

        The tokens are the sum over all the session's entries. The cost includes model calls without
        an entry. In a fork, it doesn't include the copied entries, because the original session
        paid for them.
        """
        number = self.number(session_id)
        with self.reader() as connection:
            tokens, last, beside = connection.execute(
                "SELECT (SELECT coalesce(sum(tokens), 0) FROM entries WHERE session = sessions.number), last_id, "
                "side_cost FROM sessions WHERE number = ?",
                (number,),
            ).fetchone()
            copied = entry_table.copied_until(connection, number)
            costs = entry_table.costs(connection, number, range(copied + 1, last + 1))
        return SessionTotals(tokens, beside + sum(dollars for _entry_id, dollars in costs))

    def spent_by_day(self, now: datetime, days: int) -> dict[date, float]:
        """Return the US dollars spent in all sessions on each of the last ``days`` local days.

        The last day is the day of ``now``. The days ascend; days without costs are left out.
        Entries that a fork copied are counted only once.
        """
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        first = midnight - timedelta(days=days - 1)
        with self.reader() as connection:
            spent = entry_table.spent_by_day(connection, round(first.timestamp() * 1_000))
        return {date.fromisoformat(day): spent[day] for day in sorted(spent)}

    def side_costs(self, session_id: str) -> list[SideCost]:
        """Return the costs of a session's model calls that have no entry, oldest first.

        Sessions of old versions have no such costs. Costs with a purpose that this version doesn't
        know are left out. Raises SessionNotFound.
        """
        number = self.number(session_id)
        with self.reader() as connection:
            rows = connection.execute(
                "SELECT at, purpose, cost FROM side_costs WHERE session = ? ORDER BY at",
                (number,),
            ).fetchall()
        known = set(Purpose)
        return [
            SideCost(at, Purpose(purpose), cost) for at, purpose, cost in rows if purpose in known
        ]

    def subagent_requests(self, session_id: str) -> list[RequestRecord]:
        """Return the requests made in the separate sessions of a session's subagents.

        Only old versions gave subagents sessions; today's subagents work on branches. The method is
        slow if there are many such sessions.
        """
        with self.reader() as connection:
            numbers = connection.execute(
                "SELECT number, last_id FROM sessions WHERE parent_session = ? AND agent <> ''",
                (session_id,),
            ).fetchall()
            records: list[RequestRecord] = []
            for number, last in numbers:
                records += entry_table.requests(connection, number, range(1, last + 1))
            return records

    def number(self, session_id: str) -> int:
        """Return the number of a session in the file.

        Raises SessionNotFound if the session is unknown or deleted.
        """
        with self.reader() as connection:
            row = connection.execute(
                "SELECT number FROM sessions WHERE id = ? AND deleted_at IS NULL", (session_id,)
            ).fetchone()
        if row is None:
            raise SessionNotFound(session_id)
        number: int = row[0]
        return number

    # -- entries -----------------------------------------------------------------------------------

    def blob(self, digest: str) -> bytes | None:
        with self.reader() as connection:
            row = connection.execute(
                "SELECT content FROM blobs WHERE digest = ?", (digest,)
            ).fetchone()
        return None if row is None else row[0]

    def search(
        self,
        query: str,
        limit: int = 50,
        *,
        session_id: str | None = None,
        cwd: Path | str | None = None,
    ) -> list[SearchHit]:
        """Return up to ``limit`` entries in which all words of ``query`` occur, newest first.

        All branches of all sessions are searched, or only those of ``session_id``, or of the
        sessions with the directory ``cwd``; if there are very many matches, only those in the
        newest sessions are considered. If the last word ends with a letter or digit, it also
        matches longer words that begin with it. No character has a special meaning. The result is
        empty if the query has no words.
        """
        if session_id is None:
            span = (0, key_of(1 << 30, 0))
        else:
            span = key_range(self.number(session_id))
        expression = match_expression(query)
        if expression is None or limit <= 0:
            return []
        with self.reader() as connection:
            rows = connection.execute(
                "SELECT s.number, s.id, e.id, e.kind, e.created_at FROM "
                "(SELECT rowid AS key FROM entries_fts WHERE entries_fts MATCH ? AND rowid BETWEEN ? AND ? "
                "ORDER BY rowid DESC LIMIT ?) AS hits "
                "JOIN entries AS e ON e.session = hits.key >> 32 AND e.id = hits.key & 4294967295 "
                "JOIN sessions AS s ON s.number = e.session AND s.deleted_at IS NULL AND s.cwd = coalesce(?, s.cwd) "
                "ORDER BY e.created_at DESC, hits.key DESC LIMIT ?",
                (
                    expression,
                    *span,
                    max(limit, _CONSIDERED),
                    None if cwd is None else valid(str(cwd)),
                    limit,
                ),
            ).fetchall()
            hits: list[SearchHit] = []
            for number, name, entry_id, kind, at in rows:
                for entry in entry_table.load(
                    connection, number, [entry_id], lambda _damaged: None
                ):
                    hits.append(SearchHit(name, entry_id, kind, at, *snippet(entry, query)))
            return hits

    def ranked(self, query: str, limit: int, session_id: str) -> list[int]:
        """Return the ids of a session's entries with any word of the query, best match first.

        At most ``limit`` ids are returned.
        """
        span = key_range(self.number(session_id))
        expression = ranked_expression(query)
        if expression is None or limit <= 0:
            return []
        with self.reader() as connection:
            rows = connection.execute(
                "SELECT rowid & 4294967295 FROM entries_fts WHERE entries_fts MATCH ? AND rowid BETWEEN ? AND ? "
                "ORDER BY bm25(entries_fts), rowid DESC LIMIT ?",
                (expression, *span, limit),
            )
            return [entry_id for (entry_id,) in rows]

    def matching(self, query: str, session_id: str) -> list[int]:
        """Return the ascending ids of all entries of a session that `search` would find."""
        span = key_range(self.number(session_id))
        expression = match_expression(query)
        if expression is None:
            return []
        # The ids are fetched as one JSON text, because a query of one letter may match every entry,
        # and fetching a row for each entry takes longer than finding them.
        with self.reader() as connection:
            (found,) = connection.execute(
                "SELECT json_group_array(id) FROM (SELECT rowid & 4294967295 AS id FROM entries_fts "
                "WHERE entries_fts MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid)",
                (expression, *span),
            ).fetchone()
        return list(json.loads(found))

    def mentionable(self, session_id: str, query: str, limit: int) -> list[EntryHeader]:
        """Return the headers of up to ``limit`` entries that match a query and can be mentioned.

        Entries whose id begins with the query come first, then entries whose preview contains the
        query, and then entries whose preview contains its letters in order. Each group is sorted
        from newest to oldest. Takes tenths of a second for 100,000 entries, so call it in a thread.
        """
        number = self.number(session_id)
        query = valid(query)
        in_preview = "preview LIKE ? ESCAPE '\\'"
        ways = [(in_preview, f"%{_escaped(query)}%")]
        if query.isascii() and query.isdigit():
            ways.insert(0, ("CAST(id AS TEXT) LIKE ?", f"{query}%"))
        if len(query) > 1:
            ways.append((in_preview, f"%{'%'.join(map(_escaped, query))}%"))
        found: dict[int, EntryHeader] = {}
        marks = ", ".join("?" * len(_MENTIONABLE))
        with self.reader() as connection:
            for condition, value in ways:
                if len(found) < limit:
                    rows = connection.execute(
                        f"SELECT {entry_table.HEADER_COLUMNS} FROM entries "  # noqa: S608 - constants
                        f"WHERE session = ? AND {condition} AND kind IN ({marks}) ORDER BY id DESC LIMIT ?",
                        (number, value, *_MENTIONABLE, limit),
                    )
                    for header in map(EntryHeader._make, rows):
                        found.setdefault(header.id, header)
        return list(found.values())[:limit]

    def typed_in(self, project: Path | str | None, limit: int) -> list[TypedText]:
        """Return up to ``limit`` distinct messages and commands that the user typed, newest first.

        Shell commands begin with ``!``, or with ``!!`` if they weren't sent to the model. With
        ``project``, only texts from sessions in or below this directory are returned. Tasks of
        subagents are left out.
        """
        found: dict[str, TypedText] = {}
        where = ""
        values = list[str]()
        if project is not None:
            place = valid(str(project))
            where = "AND (s.cwd = ? OR s.cwd LIKE ? ESCAPE '\\') "
            values = [place, f"{_escaped(place.rstrip('/'))}/%"]
        with self.reader() as connection:
            rows = connection.execute(
                "SELECT s.id, s.title, e.id, e.parent_id, e.kind, e.preview, e.tokens, e.created_at, b.body "  # noqa: S608 - constants
                "FROM entries AS e JOIN sessions AS s ON s.number = e.session "
                "LEFT JOIN bodies AS b ON b.key = (e.session << 32) | e.id "
                f"WHERE e.kind IN ('user', 'shell') AND s.deleted_at IS NULL AND s.agent = '' AND {_IS_TYPED} {where}"
                "ORDER BY e.created_at DESC, e.session DESC, e.id DESC",
                values,
            )
            for session_id, title, *row in rows:
                if len(found) >= limit:
                    break
                try:
                    entry = entry_from(row)
                except BodyError:
                    continue
                text = ""
                if isinstance(entry, ShellEntry):
                    text = f"{'!!' if entry.excluded else '!'}{entry.command}"
                elif is_by_user(entry):
                    text = typed_text(entry.parts)
                if text.strip():
                    found.setdefault(text, TypedText(text, entry.created_at, session_id, title))
        return list(found.values())

    # -- running programs ----------------------------------------------------------------------------

    def alive(self, writer: str | None) -> bool:
        """Return True if a writer named by `Store.new_writer` still exists, in any program.

        For a writer of another program, the result is True if that program is running. False if
        ``writer`` is None.
        """
        if writer is None:
            return False
        token = writer.partition(".")[0]
        if token == self._token:
            return writer in self._writers
        return self._locks.alive(token)

    def _left_empty(
        self, connection: sqlite3.Connection, *, before: int | None = None
    ) -> list[int]:
        """Return the numbers of sessions that an ended program left without entries and title.

        With ``before`` (in milliseconds since the epoch), sessions that were used since that time
        are left out.
        """
        rows = connection.execute(
            "SELECT number, holder, updated_at FROM sessions WHERE entry_count = 0 AND title = ''"
        ).fetchall()
        left = []
        for number, writer, used in rows:
            is_recent = before is not None and used >= before
            if not is_recent and not self.alive(writer):
                left.append(number)
        return left

    def _info(self, row: Sequence[Any]) -> SessionInfo:
        *plain, key, outcome, writer, pid, host, since = row
        holder = None
        if self.alive(writer):
            holder = Holder(pid, host, since)
        plain += [holder, key, RunOutcome(**json.loads(outcome)) if outcome else None]
        return SessionInfo(*plain)


def _mentions(query: str) -> tuple[str, list[str]]:
    """Return an SQL condition for sessions that contain all words of a query, and its values.

    A session matches if all words are in its title, first message, directory and id, or if all
    words are in one of its entries.
    """
    words = query.split()
    column = "title || ' ' || first_message || ' ' || cwd || ' ' || id"
    condition = " AND ".join([f"{column} LIKE ? ESCAPE '\\'"] * len(words))
    values = [f"%{_escaped(word)}%" for word in words]
    if (expression := match_expression(query)) is not None:
        in_entries = "number IN (SELECT rowid >> 32 FROM entries_fts WHERE entries_fts MATCH ?)"
        condition = f"({condition} OR {in_entries})"
        values.append(expression)
    return condition, values


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
