"""What the user wrote and has not sent, the prompt's text and messages that wait, kept so that a crash loses nothing.

A place is a session, or a directory in which a new one was begun. Each program keeps its own, so that two of them in
one directory don't take each other's words away.
"""

import json
import sqlite3
from collections.abc import Callable

from tui_agent.lazy import dataclass

TABLE = """
CREATE TABLE unsent (
    place TEXT NOT NULL,
    program TEXT NOT NULL,
    text TEXT NOT NULL,
    waiting TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (place, program)
) STRICT, WITHOUT ROWID"""
"""Part of the schema; ``waiting`` is a JSON array of texts."""

RETENTION_MS = 90 * 24 * 3600 * 1000
"""Milliseconds after which what was left behind in a directory is forgotten."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """The prompt's text, and the messages that waited for the agent, oldest first."""

    text: str = ""
    waiting: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text.strip() or self.waiting)


def keep(connection: sqlite3.Connection, place: str, program: str, unsent: Unsent, at: int) -> None:
    if not unsent:
        connection.execute("DELETE FROM unsent WHERE place = ? AND program = ?", (place, program))
        return
    connection.execute(
        "INSERT OR REPLACE INTO unsent (place, program, text, waiting, updated_at) VALUES (?, ?, ?, ?, ?)",
        (place, program, unsent.text, json.dumps(unsent.waiting), at),
    )


def take(connection: sqlite3.Connection, place: str, is_free: Callable[[str], bool]) -> Unsent:
    """Remove and return what programs left at a place that ``is_free`` names: all together, the oldest first."""
    rows = connection.execute(
        "SELECT program, text, waiting FROM unsent WHERE place = ? ORDER BY updated_at, program", (place,)
    ).fetchall()
    texts: list[str] = []
    waiting: list[str] = []
    for program, text, queued in rows:
        if is_free(program):
            texts += [text] if text.strip() and text not in texts else []
            waiting += map(str, json.loads(queued))
            connection.execute("DELETE FROM unsent WHERE place = ? AND program = ?", (place, program))
    return Unsent("\n\n".join(texts), tuple(waiting))


def forget(connection: sqlite3.Connection, before: int) -> None:
    """Delete what nobody came back for."""
    connection.execute("DELETE FROM unsent WHERE updated_at < ?", (before,))
