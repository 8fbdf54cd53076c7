"""The leaf, the log of its moves, and labels, as stored. Callers own the transaction."""

import sqlite3

from tui_agent.safe_text import valid
from tui_agent.session.records import LeafMove

__all__ = ["labels", "log_move", "moves", "set_label", "set_leaf"]


def set_leaf(connection: sqlite3.Connection, session: int, leaf: int | None, at: int) -> None:
    """Make an entry the leaf, and the session used at ``at``."""
    connection.execute("UPDATE sessions SET leaf = ?, updated_at = ? WHERE number = ?", (leaf, at, session))


def log_move(connection: sqlite3.Connection, session: int, move: LeafMove) -> None:
    connection.execute(
        "INSERT INTO leaf_moves (session, from_leaf, to_leaf, action, created_at) VALUES (?, ?, ?, ?, ?)",
        (session, move.from_leaf, move.to_leaf, move.action, move.at),
    )
    set_leaf(connection, session, move.to_leaf, move.at)


def moves(connection: sqlite3.Connection, session: int) -> list[LeafMove]:
    rows = connection.execute(
        "SELECT from_leaf, to_leaf, action, created_at FROM leaf_moves WHERE session = ? ORDER BY number", (session,)
    )
    return [LeafMove(*row) for row in rows]


def set_label(connection: sqlite3.Connection, session: int, entry_id: int, text: str | None, at: int) -> None:
    """Set or, with None or "", remove an entry's label."""
    if text:
        connection.execute(
            "INSERT OR REPLACE INTO labels (session, id, text, created_at) VALUES (?, ?, ?, ?)",
            (session, entry_id, valid(text), at),
        )
    else:
        connection.execute("DELETE FROM labels WHERE session = ? AND id = ?", (session, entry_id))


def labels(connection: sqlite3.Connection, session: int) -> dict[int, str]:
    rows = connection.execute("SELECT id, text FROM labels WHERE session = ? ORDER BY id", (session,))
    return dict(rows.fetchall())
