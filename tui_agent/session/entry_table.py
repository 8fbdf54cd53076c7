"""Runs the SQL statements on entries, labels, moves, blobs, costs and the search index.

It also contains the statements on those columns of a session's row that depend on the session's
entries, which are the leaf, the last id, the model and the first message. The functions run in the
caller's transaction. The parameter ``session`` is always a session's number in the file.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from tui_agent.safe_text import valid
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    ModelChangeEntry,
    SystemEntry,
    is_by_user,
    kinds,
)
from tui_agent.session.errors import EntryNotFound, SessionNotFound
from tui_agent.session.records import EntryHeader, LeafMove, RequestRecord
from tui_agent.session.rows import BodyError, blobs_of, body_of, entry_from, size_of
from tui_agent.session.schema import key_of, key_range
from tui_agent.session.search import index_text
from tui_agent.session.skeleton import SILENT_CALL
from tui_agent.session.tree_index import KIND_LETTERS, UNKNOWN_KIND, SpineRows

_CHUNK = 400
"""Maximum number of ids in one SQL statement. Every build of SQLite accepts this many."""

HEADER_COLUMNS = "id, parent_id, kind, preview, tokens, created_at, size"

_NAMING = (SystemEntry, AssistantEntry, ModelChangeEntry)
"""Classes of entries that name the model in use."""

_LETTER = " ".join(f"WHEN '{kind}' THEN '{letter}'" for kind, letter in KIND_LETTERS.items())
_LETTER = f"CASE kind {_LETTER} ELSE '{UNKNOWN_KIND}' END"

_IS_SILENT = "kind = 'assistant' AND (preview = '' OR substr(preview, nullif(instr(preview, ' '), 0) + 1, 1) = '{')"
"""SQL condition that is true for the same entries as the function `skeleton.is_silent_call`."""

_COSTING = "kind IN ({})".format(", ".join(f"'{kind}'" for kind in kinds(lambda kind: kind.costs)))
"""SQL condition that is true for entries that result from a request to a model."""

_GRACE_MS = 3600 * 1000
"""How many milliseconds an unused blob is kept after it was stored, because the entry that needs
the blob may not have been appended yet."""


def set_leaf(connection: sqlite3.Connection, session: int, leaf: int | None, at: int) -> None:
    """Set the session's leaf and the time of its last use.

    ``leaf`` is None for the beginning of the session. ``at`` is in milliseconds since the epoch.
    """
    connection.execute(
        "UPDATE sessions SET leaf = ?, updated_at = ? WHERE number = ?", (leaf, at, session)
    )


def log_move(connection: sqlite3.Connection, session: int, move: LeafMove) -> None:
    connection.execute(
        "INSERT INTO leaf_moves (session, from_leaf, to_leaf, action, created_at) VALUES (?, ?, ?, ?, ?)",
        (session, move.from_leaf, move.to_leaf, move.action, move.at),
    )
    set_leaf(connection, session, move.to_leaf, move.at)


def set_label(
    connection: sqlite3.Connection, session: int, entry_id: int, text: str | None, at: int
) -> None:
    """Set an entry's label; None or "" removes it."""
    if text:
        connection.execute(
            "INSERT OR REPLACE INTO labels (session, id, text, created_at) VALUES (?, ?, ?, ?)",
            (session, entry_id, valid(text), at),
        )
    else:
        connection.execute("DELETE FROM labels WHERE session = ? AND id = ?", (session, entry_id))


def chunks(ids: Iterable[int], size: int = _CHUNK) -> Iterator[list[int]]:
    iterator = iter(ids)
    while chunk := list(islice(iterator, size)):
        yield chunk


def exists(connection: sqlite3.Connection, session: int, entry_id: int) -> bool:
    found = connection.execute(
        "SELECT 1 FROM entries WHERE session = ? AND id = ?", (session, entry_id)
    )
    return found.fetchone() is not None


def reserve(connection: sqlite3.Connection, session: int, count: int) -> int:
    """Allocate ``count`` consecutive entry ids and return the first; raises SessionNotFound."""
    row = connection.execute(
        "UPDATE sessions SET last_id = last_id + ?, entry_count = entry_count + ? WHERE number = ? RETURNING last_id",
        (count, count, session),
    ).fetchall()
    if not row:
        raise SessionNotFound(str(session))
    last: int = row[0][0]
    return last - count + 1


def append(connection: sqlite3.Connection, session: int, entries: Sequence[Entry]) -> None:
    """Store entries whose ids and parents are set, with their indexed texts and uses of blobs.

    The session's row isn't changed; see `reserve`, `note` and `set_leaf`.

    Raises:
        EntryNotFound: the parent of the first entry does not exist.
    """
    first = entries[0]
    if first.parent_id is not None and not exists(connection, session, first.parent_id):
        raise EntryNotFound(first.parent_id)
    for entry in entries:
        key = key_of(session, entry.id)
        header = (
            entry.id,
            entry.parent_id,
            entry.kind,
            entry.preview,
            entry.tokens,
            entry.created_at,
            size_of(entry),
        )
        connection.execute(
            f"INSERT INTO entries (session, {HEADER_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
            (session, *header),
        )
        connection.execute("INSERT INTO bodies (key, body) VALUES (?, ?)", (key, body_of(entry)))
        connection.execute(
            "INSERT INTO entries_fts (rowid, text) VALUES (?, ?)", (key, index_text(entry))
        )
        for digest in blobs_of(entry):
            connection.execute(
                "INSERT OR IGNORE INTO blob_uses (session, digest) VALUES (?, ?)", (session, digest)
            )


def replace(connection: sqlite3.Connection, session: int, old: Entry, new: Entry) -> None:
    """Replace the header, body and indexed text of the stored entry ``old`` with those of ``new``.

    Only `redacting` changes stored entries.
    """
    key = key_of(session, old.id)
    connection.execute(
        "UPDATE entries SET preview = ?, tokens = ?, size = ? WHERE session = ? AND id = ?",
        (new.preview, new.tokens, size_of(new), session, old.id),
    )
    connection.execute("UPDATE bodies SET body = ? WHERE key = ?", (body_of(new), key))
    connection.execute(
        "INSERT INTO entries_fts (entries_fts, rowid, text) VALUES ('delete', ?, ?)",
        (key, index_text(old)),
    )
    connection.execute(
        "INSERT INTO entries_fts (rowid, text) VALUES (?, ?)", (key, index_text(new))
    )


def note(connection: sqlite3.Connection, session: int, entries: Sequence[Entry]) -> None:
    """Set the model and the first message in a session's row from entries that were just stored."""
    named = (entry.model for entry in reversed(entries) if isinstance(entry, _NAMING))
    if model := next(filter(None, named), ""):
        connection.execute(
            "UPDATE sessions SET model = :model WHERE number = :session AND model != :model",
            {"model": valid(model), "session": session},
        )
    typed = (entry for entry in entries if is_by_user(entry))
    if first := next(typed, None):
        connection.execute(
            "UPDATE sessions SET first_message = ? WHERE number = ? AND first_message = ''",
            (first.preview, session),
        )


def last_id(connection: sqlite3.Connection, session: int) -> int:
    """Return the greatest entry id that a session has allocated, 0 for none.

    Raises:
        SessionNotFound: the session was deleted for good.
    """
    row = connection.execute("SELECT last_id FROM sessions WHERE number = ?", (session,)).fetchone()
    if row is None:
        raise SessionNotFound(str(session))
    last: int = row[0]
    return last


def spine_rows(connection: sqlite3.Connection, session: int, ids: range) -> list[SpineRows]:
    found = _columns(
        connection,
        (session, ids.start, ids.stop - 1),
        f"{_LETTER} AS letter, size, parent_id",
        "group_concat(letter, ''), json_group_array(size), "
        "json_group_array(json_array(id, parent_id)) FILTER (WHERE parent_id IS NOT id - 1)",
    )
    return [
        SpineRows(ids, kinds, json.loads(sizes), dict(json.loads(parents)))
        for ids, kinds, sizes, parents in found
    ]


def tree_rows(
    connection: sqlite3.Connection, session: int, ids: range
) -> list[tuple[Sequence[int], bytes, list[int]]]:
    """Return a list with one tuple (ids, letters, tokens) for all entries in a range of ids.

    The tuple has the columns of `skeleton.Headers`. The list is empty if there are no entries.
    """
    found = _columns(
        connection,
        (session, ids.start, ids.stop - 1),
        f"CASE WHEN {_IS_SILENT} THEN '{SILENT_CALL}' ELSE {_LETTER} END AS letter, tokens",
        "group_concat(letter, ''), json_group_array(tokens)",
    )
    return [(ids, letters.encode(), json.loads(tokens)) for ids, letters, tokens in found]


def _columns(
    connection: sqlite3.Connection, span: tuple[int, int, int], each: str, together: str
) -> list[Any]:
    """Aggregate columns of all entries in a span, and return a list with one tuple.

    The tuple contains the entries' ids, followed by the aggregated columns. The list is empty if
    there are no entries. ``span`` is (session, first id, last id). ``each`` contains the SQL
    columns to select from each entry. ``together`` contains the SQL aggregates of these columns,
    which become the columns of the result. Aggregating in SQLite is four times as fast as fetching
    100,000 rows.
    """
    there = "FROM entries WHERE session = ? AND id BETWEEN ? AND ? ORDER BY id"
    count, low, high, *found = connection.execute(
        f"SELECT count(*), min(id), max(id), {together} FROM (SELECT id, {each} {there})",  # noqa: S608 - constants
        span,
    ).fetchone()
    if not count:
        return []
    ids: Sequence[int] = range(low, high + 1)
    if len(ids) > count:
        ids = [row[0] for row in connection.execute(f"SELECT id {there}", span)]
    return [(ids, *found)]


def costs(connection: sqlite3.Connection, session: int, ids: range) -> list[tuple[int, float]]:
    """Return (id, US dollars) for each entry in a range with a cost above 0, ascending by id."""
    return connection.execute(
        "SELECT e.id, json_extract(b.body, '$.cost') AS cost "  # noqa: S608 - a constant
        "FROM entries AS e JOIN bodies AS b ON b.key = ? + e.id "
        f"WHERE e.session = ? AND e.id BETWEEN ? AND ? AND e.{_COSTING} "
        "AND json_valid(b.body) AND cost > 0 ORDER BY e.id",
        (key_range(session)[0], session, ids.start, ids.stop - 1),
    ).fetchall()


def spent_by_day(connection: sqlite3.Connection, at: int) -> dict[str, float]:
    """Return the US dollars spent since ``at`` in all sessions, by local day (``2026-11-29``).

    ``at`` is in milliseconds since the epoch. Entries that a fork copied are counted only once.
    """
    spent = dict(
        connection.execute(
            f"SELECT {_day_of('at')}, sum(cost) FROM side_costs WHERE at >= ? GROUP BY 1",  # noqa: S608 - a constant
            (at,),
        ).fetchall()
    )
    for (number,) in connection.execute(
        "SELECT number FROM sessions WHERE updated_at >= ?", (at,)
    ).fetchall():
        days = connection.execute(
            f"SELECT {_day_of('e.created_at')}, sum(json_extract(b.body, '$.cost')) "  # noqa: S608 - a constant
            "FROM entries AS e JOIN bodies AS b ON b.key = ? + e.id "
            f"WHERE e.session = ? AND e.created_at >= ? AND e.id > ? AND e.{_COSTING} "
            "AND json_valid(b.body) AND json_extract(b.body, '$.cost') > 0 GROUP BY 1",
            (key_range(number)[0], number, at, copied_until(connection, number)),
        )
        for day, dollars in days:
            spent[day] = spent.get(day, 0.0) + dollars
    return spent


def _day_of(milliseconds: str) -> str:
    return f"date({milliseconds} / 1000, 'unixepoch', 'localtime')"


def copied_until(connection: sqlite3.Connection, session: int) -> int:
    """Return the id of the newest entry that a fork copied; 0 if the session copied none."""
    newest: int = connection.execute(
        "SELECT coalesce(max(id), 0) FROM entries WHERE session = ? AND created_at < "
        "(SELECT created_at FROM sessions WHERE number = ? AND parent_session IS NOT NULL)",
        (session, session),
    ).fetchone()[0]
    return newest


def requests(connection: sqlite3.Connection, session: int, ids: range) -> list[RequestRecord]:
    rows = connection.execute(
        # All fields are extracted by one call, because SQLite parses the body again for each call.
        "SELECT e.id, e.kind, e.created_at, json_extract(b.body, '$.model', '$.cost', '$.estimate', '$.error', "  # noqa: S608 - a constant
        "'$.interrupted', '$.usage.input', '$.usage.output', '$.usage.cache_read', '$.usage.cache_write', "
        "'$.started_at') "
        "FROM entries AS e JOIN bodies AS b ON b.key = ? + e.id "
        f"WHERE e.session = ? AND e.id BETWEEN ? AND ? AND e.{_COSTING} AND json_valid(b.body) ORDER BY e.id",
        (key_range(session)[0], session, ids.start, ids.stop - 1),
    )
    found: list[RequestRecord] = []
    for entry_id, kind, created_at, said in rows:
        model, cost, estimate, error, interrupted, *usage, started_at = json.loads(said)
        failed = error is not None or bool(interrupted)
        sizes = [size or 0 for size in usage]
        made = (model or "", cost, estimate or 0, failed)
        sent_at = started_at or created_at
        found.append(RequestRecord(entry_id, kind, created_at, sent_at, *made, *sizes))
    return found


def headers_of(
    connection: sqlite3.Connection, session: int, ids: Iterable[int]
) -> list[EntryHeader]:
    found: list[EntryHeader] = []
    for chunk in chunks(ids):
        rows = connection.execute(
            f"SELECT {HEADER_COLUMNS} FROM entries "  # noqa: S608 - a constant
            "WHERE session = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY id",
            (session, json.dumps(chunk)),
        )
        found.extend(map(EntryHeader._make, rows))
    return found


def load(
    connection: sqlite3.Connection, session: int, ids: Iterable[int], damaged: Callable[[int], None]
) -> list[Entry]:
    """Return the entries with the given ids, except unknown and unreadable ones.

    The entries are in the order of ``ids``. ``damaged`` is called with the id of every entry that
    exists but can't be read.
    """
    found: list[Entry] = []
    for chunk in chunks(ids):
        rows = connection.execute(
            "SELECT e.id, e.parent_id, e.kind, e.preview, e.tokens, e.created_at, b.body "
            # CROSS JOIN makes SQLite look up the wanted ids instead of scanning the whole session.
            "FROM json_each(?) AS wanted CROSS JOIN entries AS e ON e.session = ? AND e.id = wanted.value "
            "LEFT JOIN bodies AS b ON b.key = ? + e.id",
            (json.dumps(chunk), session, key_range(session)[0]),
        )
        by_id = {row[0]: row for row in rows}
        for row in filter(None, map(by_id.get, chunk)):
            try:
                found.append(entry_from(row))
            except BodyError:
                damaged(row[0])
    return found


def put_blob(connection: sqlite3.Connection, content: bytes, at: int) -> str:
    """Store bytes unless they are already stored; return their SHA-256 digest in hexadecimal."""
    digest = hashlib.sha256(content).hexdigest()
    known = connection.execute(
        "UPDATE blobs SET used_at = ? WHERE digest = ?", (at, digest)
    ).rowcount
    if not known:
        connection.execute(
            "INSERT INTO blobs (digest, used_at, content) VALUES (?, ?, ?)", (digest, at, content)
        )
    return digest


def collect_blobs(connection: sqlite3.Connection, at: int) -> None:
    """Delete blobs that no session uses and that were last stored over an hour before ``at``."""
    connection.execute(
        "DELETE FROM blobs WHERE used_at < ? AND NOT EXISTS "
        "(SELECT 1 FROM blob_uses WHERE blob_uses.digest = blobs.digest)",
        (at - _GRACE_MS,),
    )
