"""Creates, forks and deletes whole sessions in transactions that the caller opens.

`Store.fork` makes a fork in several transactions: `begin` and `path_to`, `copy` for each batch of
entries, then `finish`. `Store.purge` decides which sessions are removed for good.
"""

import re
import sqlite3
from collections.abc import Sequence

from tui_agent.lazy import LazyPattern
from tui_agent.session import entry_table
from tui_agent.session.entries import SubagentEntry
from tui_agent.session.schema import key_of, key_range
from tui_agent.session.search import index_text
from tui_agent.session.tree_index import Spine

_FORKED = LazyPattern(r"(.*) \(fork(?: (\d{1,6}))?\)", re.DOTALL)
_TITLE_LENGTH = 60
"""Maximum number of characters of the original session's title that are used in a fork's title."""


def insert_session(
    connection: sqlite3.Connection,
    *,
    session_id: str,
    cwd: str,
    title: str,
    at: int,
    origin: tuple[str | None, int | None, str],
) -> int:
    """Insert an empty session and return its number.

    ``origin`` contains the id of the session that the new one comes from (or None), the entry
    there, and the name of the subagent that works in the new session ("" for none).
    """
    number = connection.execute(
        "INSERT INTO sessions (id, cwd, title, created_at, updated_at, parent_session, parent_entry, agent) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (session_id, cwd, title, at, at, *origin),
    ).lastrowid
    if number is None:
        raise RuntimeError("an inserted row has a number")
    return number


def begin(
    connection: sqlite3.Connection,
    source: int,
    at_entry: int | None,
    *,
    fork: tuple[str, str],
    at: int,
) -> int:
    """Insert the session for a fork of ``source`` at ``at_entry``, and return its number.

    ``fork`` is the new session's id and the token of the program that creates the fork. Until
    `finish` is called, the session is marked as deleted by that program. It is therefore not
    listed, and it is purged if the fork is never completed.
    """
    new_id, program = fork
    source_id, cwd, title, first_message = connection.execute(
        "SELECT id, cwd, title, first_message FROM sessions WHERE number = ?", (source,)
    ).fetchone()
    # The title must differ from the source's, because lists show both.
    source_title = title or first_message
    if match := _FORKED.fullmatch(source_title):
        title = f"{match[1]} (fork {int(match[2] or 1) + 1})"
    else:
        title = ""
        if source_title.strip():
            title = f"{source_title[:_TITLE_LENGTH].strip()} (fork)"
    target = insert_session(
        connection, session_id=new_id, cwd=cwd, title=title, at=at, origin=(source_id, at_entry, "")
    )
    connection.execute(
        "UPDATE sessions SET deleted_at = ?, deleted_by = ? WHERE number = ?", (at, program, target)
    )
    connection.execute(
        "INSERT INTO blob_uses SELECT ?, digest FROM blob_uses WHERE session = ?", (target, source)
    )
    return target


def path_to(
    connection: sqlite3.Connection, session: int, entry_id: int | None
) -> tuple[int | None, Sequence[int]]:
    """Return the leaf of a fork made at ``entry_id``, and the ascending ids of the entries to copy.

    The entries on the path are copied, along with the branches of subagents started there. Subagent
    entries on the path itself are left out, so that a fork made on a subagent's branch becomes an
    ordinary conversation.
    """
    spine = Spine()
    for rows in entry_table.spine_rows(connection, session, range(1, (entry_id or 0) + 1)):
        spine.extend(rows)
    beginnings = spine.subagents
    path = [one for one in spine.path(entry_id) if one not in beginnings]
    on_path = set(path)
    found = entry_table.load(connection, session, sorted(beginnings), lambda _damaged: None)
    wanted: set[int] = set()
    for entry in found:
        if isinstance(entry, SubagentEntry) and entry.call in on_path:
            wanted.add(entry.id)
    beside: set[int] = set()
    if wanted:
        beside.update(one for one in spine if spine.subagent_of(one) in wanted)
    return (path[-1] if path else None), sorted(on_path | beside)


def copy(connection: sqlite3.Connection, source: int, target: int, ids: list[int]) -> None:
    """Copy entries with their ids into the session of the fork, and index the readable entries."""
    marks = ", ".join("?" * len(ids))
    connection.execute(
        "INSERT INTO entries (session, id, parent_id, kind, preview, tokens, created_at, size) "  # noqa: S608 - question marks only
        "SELECT ?, id, parent_id, kind, preview, tokens, created_at, size FROM entries "
        f"WHERE session = ? AND id IN ({marks})",
        (target, source, *ids),
    )
    first_source = key_range(source)[0]
    first_target = key_range(target)[0]
    connection.execute(
        f"INSERT INTO bodies (key, body) SELECT key - ? + ?, body FROM bodies WHERE key IN ({marks})",  # noqa: S608 - question marks only
        (first_source, first_target, *(first_source + entry_id for entry_id in ids)),
    )
    entries = entry_table.load(connection, target, ids, lambda _damaged: None)
    for entry in entries:
        connection.execute(
            "INSERT INTO entries_fts (rowid, text) VALUES (?, ?)",
            (key_of(target, entry.id), index_text(entry)),
        )
    entry_table.note(connection, target, entries)


def finish(
    connection: sqlite3.Connection, source: int, target: int, leaf: int | None, count: int
) -> None:
    """Store the labels, parents and leaf of a fork of ``count`` entries, and make the fork visible.

    If an entry's parent is a subagent entry that wasn't copied, the entry is attached to the parent
    of that subagent entry. New ids in the fork begin above all ids of the source, so that a
    reference to an entry that wasn't copied never names a new one.
    """
    connection.execute(
        "INSERT INTO labels (session, id, text, created_at) "
        "SELECT entries.session, labels.id, text, labels.created_at FROM labels "
        "JOIN entries ON entries.session = ? AND entries.id = labels.id WHERE labels.session = ?",
        (target, source),
    )
    connection.execute(
        "UPDATE entries SET parent_id = (SELECT parent_id FROM entries AS begun "
        "WHERE begun.session = ? AND begun.id = entries.parent_id) WHERE session = ? AND parent_id IN "
        "(SELECT id FROM entries WHERE session = ? AND kind = 'subagent' "
        "EXCEPT SELECT id FROM entries WHERE session = ? AND kind = 'subagent')",
        (source, target, source, target),
    )
    connection.execute(
        "UPDATE sessions SET last_id = (SELECT last_id FROM sessions WHERE number = ?), entry_count = ?, leaf = ?, "
        "deleted_at = NULL, deleted_by = NULL WHERE number = ?",
        (source, count, leaf, target),
    )


def remove_session(connection: sqlite3.Connection, session: int) -> None:
    """Delete a session with its entries, labels, moves, drafts and unsent text, but not its blobs.

    The texts of unreadable entries stay in the search index, but searches skip them.
    """
    ids = [
        row[0] for row in connection.execute("SELECT id FROM entries WHERE session = ?", (session,))
    ]
    for entry in entry_table.load(connection, session, ids, lambda _damaged: None):
        connection.execute(
            "INSERT INTO entries_fts (entries_fts, rowid, text) VALUES ('delete', ?, ?)",
            (key_of(session, entry.id), index_text(entry)),
        )
    connection.execute("DELETE FROM bodies WHERE key BETWEEN ? AND ?", key_range(session))
    connection.execute(
        "DELETE FROM unsent WHERE place = (SELECT id FROM sessions WHERE number = ?)", (session,)
    )
    connection.execute("DELETE FROM sessions WHERE number = ?", (session,))
