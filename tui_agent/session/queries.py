"""Queries that find sessions and entries. Callers own the connection."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from tui_agent.safe_text import valid
from tui_agent.session import entry_table
from tui_agent.session.entries import ShellEntry, UserEntry, kinds
from tui_agent.session.path_queries import typed_text
from tui_agent.session.records import EntryHeader, SearchHit, SessionTotals, TypedText
from tui_agent.session.rows import BodyError, entry_from
from tui_agent.session.schema import key_of
from tui_agent.session.search import match_expression, ranked_expression, snippet

_CONSIDERED = 2_000
"""Matches of a search that are ordered by time; of more, those in the sessions begun last are taken."""

_MENTIONABLE = kinds(lambda kind: kind.is_mentionable)

_STATES = ", ".join(f"'{kind}'" for kind in kinds(lambda kind: kind.sets_state))
_IS_TYPED = (
    "NOT EXISTS (WITH RECURSIVE up (kind, above) AS ("  # noqa: S608 - constants
    "SELECT kind, parent_id FROM entries WHERE session = e.session AND id = e.parent_id UNION ALL "
    "SELECT p.kind, p.parent_id FROM up JOIN entries AS p ON p.session = e.session AND p.id = up.above "
    f"WHERE up.kind IN ({_STATES})) SELECT 1 FROM up WHERE kind = 'subagent')"
)
"""Holds of an entry ``e`` that is not the message with which the branch of a subagent begins."""

_NAMED = 10
"""Sessions that are listed when a part of an id is ambiguous."""


def empty(connection: sqlite3.Connection) -> list[tuple[int, str | None, int]]:
    """Return number, holder and last use of the sessions in which nothing was kept.

    A program has only just begun them, or was killed before there was anything to keep.
    """
    return connection.execute(
        "SELECT number, holder, updated_at FROM sessions WHERE entry_count = 0 AND title = ''"
    ).fetchall()


def sessions(
    connection: sqlite3.Connection,
    columns: str,
    *,
    cwd: str | None,
    query: str | None,
    window: tuple[int, int],
    hidden: Sequence[int] = (),
) -> list[Any]:
    """Return rows of sessions, the last used first. ``window`` is how many, and how many to skip; ``hidden`` numbers.

    Subagents' sessions are found by a query only: they belong to the conversation they were started from.
    """
    conditions, values = ["deleted_at IS NULL"], list[object]()
    if hidden:
        conditions.append(f"number NOT IN ({', '.join(map(str, hidden))})")
    if cwd is not None:
        conditions.append("cwd = ?")
        values.append(cwd)
    if query and query.strip():
        condition, words = _mentions(valid(query))
        conditions.append(condition)
        values.extend(words)
    else:
        conditions.append("agent = ''")
    return connection.execute(
        f"SELECT {columns} FROM sessions WHERE {' AND '.join(conditions)} "  # noqa: S608 - made from constants
        "ORDER BY updated_at DESC, number DESC LIMIT ? OFFSET ?",
        (*values, *window),
    ).fetchall()


def _mentions(query: str) -> tuple[str, list[str]]:
    """Return the condition that a session mentions all words, in its columns or in an entry."""
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


def sessions_named(connection: sqlite3.Connection, columns: str, part: str) -> list[Any]:
    """Return the session with this id, or some of those whose id begins or ends with it."""
    part = valid(part)
    query = f"SELECT {columns} FROM sessions WHERE deleted_at IS NULL AND "  # noqa: S608 - a constant
    if exact := connection.execute(query + "id = ?", (part,)).fetchall():
        return exact
    if not part:
        return []
    return connection.execute(
        query + "(id LIKE ? ESCAPE '\\' OR id LIKE ? ESCAPE '\\') ORDER BY updated_at DESC LIMIT ?",
        (f"{_escaped(part)}%", f"%{_escaped(part)}", _NAMED),
    ).fetchall()


def entries(
    connection: sqlite3.Connection, query: str, limit: int, *, session: int | None, cwd: str | None
) -> list[SearchHit]:
    """Return the newest entries that match, in one session, one directory or everywhere."""
    expression = match_expression(query)
    if expression is None or limit <= 0:
        return []
    if session is not None:
        low, high = key_of(session, 0), key_of(session + 1, 0) - 1
    else:
        low, high = 0, key_of(1 << 30, 0)
    rows = connection.execute(
        "SELECT s.number, s.id, e.id, e.kind, e.created_at FROM "
        "(SELECT rowid AS key FROM entries_fts WHERE entries_fts MATCH ? AND rowid BETWEEN ? AND ? "
        "ORDER BY rowid DESC LIMIT ?) AS hits "
        "JOIN entries AS e ON e.session = hits.key >> 32 AND e.id = hits.key & 4294967295 "
        "JOIN sessions AS s ON s.number = e.session AND s.deleted_at IS NULL AND s.cwd = coalesce(?, s.cwd) "
        "ORDER BY e.created_at DESC, hits.key DESC LIMIT ?",
        (expression, low, high, max(limit, _CONSIDERED), cwd, limit),
    ).fetchall()
    return [hit for row in rows if (hit := _hit(connection, row, query)) is not None]


def ranked(connection: sqlite3.Connection, query: str, limit: int, session: int) -> list[int]:
    """Return the ids of a session's entries that fit a query best, best first: some of its words are enough."""
    expression = ranked_expression(query)
    if expression is None or limit <= 0:
        return []
    rows = connection.execute(
        "SELECT rowid & 4294967295 FROM entries_fts WHERE entries_fts MATCH ? AND rowid BETWEEN ? AND ? "
        "ORDER BY bm25(entries_fts), rowid DESC LIMIT ?",
        (expression, key_of(session, 0), key_of(session + 1, 0) - 1, limit),
    )
    return [entry_id for (entry_id,) in rows]


def totals(connection: sqlite3.Connection, session: int) -> SessionTotals:
    """Return the tokens and the US dollars of a session."""
    tokens, last, beside = connection.execute(
        "SELECT (SELECT coalesce(sum(tokens), 0) FROM entries WHERE session = sessions.number), last_id, side_cost "
        "FROM sessions WHERE number = ?",
        (session,),
    ).fetchone()
    costs = entry_table.costs(connection, session, 1, last)
    return SessionTotals(tokens, beside + sum(dollars for _entry_id, dollars in costs))


def matching(connection: sqlite3.Connection, query: str, session: int) -> list[int]:
    """Return the ids of all entries of a session that match, ascending, without reading them."""
    expression = match_expression(query)
    if expression is None:
        return []
    # One text of all numbers: a letter may be in every entry, and a row for each takes longer than finding them.
    (found,) = connection.execute(
        "SELECT json_group_array(id) FROM (SELECT rowid & 4294967295 AS id FROM entries_fts "
        "WHERE entries_fts MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid)",
        (expression, key_of(session, 0), key_of(session + 1, 0) - 1),
    ).fetchone()
    return list(json.loads(found))


def _hit(connection: sqlite3.Connection, row: Any, query: str) -> SearchHit | None:
    number, session_id, entry_id, kind, created_at = row
    found = entry_table.load(connection, number, [entry_id], lambda _damaged: None)
    if not found:
        return None
    line, highlights = snippet(found[0], query)
    return SearchHit(session_id, entry_id, kind, created_at, line, highlights)


def mentionable(connection: sqlite3.Connection, query: str, limit: int, session: int) -> list[EntryHeader]:
    """Return entries that say something and fit a query: by number, by words, by letters in order; newest first.

    SQLite does the looking: a hundred thousand entries take tenths of a second, in which other threads go on.
    """
    query = valid(query)
    in_preview = "preview LIKE ? ESCAPE '\\'"
    ways = [(in_preview, f"%{_escaped(query)}%")]
    if query.isascii() and query.isdigit():
        ways.insert(0, ("CAST(id AS TEXT) LIKE ?", f"{query}%"))
    if len(query) > 1:
        ways.append((in_preview, f"%{'%'.join(map(_escaped, query))}%"))
    found: dict[int, EntryHeader] = {}
    for condition, value in ways:
        if len(found) < limit:
            headers = entry_table.newest_headers(connection, session, _MENTIONABLE, condition, value, limit)
            found.update((header.id, header) for header in headers if header.id not in found)
    return list(found.values())[:limit]


def typed_texts(connection: sqlite3.Connection, limit: int, project: str | None = None) -> list[TypedText]:
    """Return what the user typed as messages and shell commands, distinct, the newest first.

    Those of all sessions, or of the ones in a directory and below it. What subagents were told is nobody's typing.
    """
    found: dict[str, TypedText] = {}
    where, values = "", list[str]()
    if project is not None:
        where, values = "AND (s.cwd = ? OR s.cwd LIKE ? ESCAPE '\\') ", [project, f"{_escaped(project.rstrip('/'))}/%"]
    rows = connection.execute(
        "SELECT s.id, s.title, e.id, e.parent_id, e.kind, e.preview, e.tokens, e.created_at, b.body FROM entries AS e "  # noqa: S608 - constants
        "JOIN sessions AS s ON s.number = e.session LEFT JOIN bodies AS b ON b.key = (e.session << 32) | e.id "
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
        elif isinstance(entry, UserEntry) and entry.synthetic is None:
            text = typed_text(entry.parts)
        if text.strip():
            found.setdefault(text, TypedText(text, entry.created_at, session_id, title))
    return list(found.values())
