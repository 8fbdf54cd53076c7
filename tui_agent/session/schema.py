"""Defines the tables of the session file.

Reasons for this design:

- ``entries`` contains only headers and is clustered by session, so that the tree of 100,000 entries
  is read in one short range scan. The JSON bodies are in ``bodies``; a body contains no field that
  is a column of ``entries``.
- ``bodies.key`` and the rowid of ``entries_fts`` are ``session * 2**32 + id`` (`key_of`): one
  integer identifies an entry in the whole file, and the entries of a session are a range.
- Sessions are numbered with AUTOINCREMENT, so a number is never used twice, and rows left by a
  failed purge can't appear in another session.
- ``entries_fts`` is contentless, because the text is already in the bodies. Removing a row needs
  the indexed text again, so changing `tui_agent.session.search.index_text` needs a migration.
- There is no foreign key from an entry to its parent: with one, deleting a session would look for
  children row by row. Appending checks that the parent exists, and an id is always greater than its
  parent's, so there are no cycles.
"""

import sqlite3

SCHEMA_VERSION = 10
"""The version of the tables and of the entries' format, stored as ``PRAGMA user_version``. Programs
that know only lower versions refuse to open the file."""

APPLICATION_ID = 0x54554941
"""Value of ``PRAGMA application_id`` ("TUIA") by which a session file is recognised."""

_TABLES = """
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    cwd TEXT NOT NULL,
    title TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    model TEXT NOT NULL DEFAULT '',
    first_message TEXT NOT NULL DEFAULT '',
    leaf INTEGER,
    last_id INTEGER NOT NULL DEFAULT 0,
    entry_count INTEGER NOT NULL DEFAULT 0,
    parent_session TEXT,
    parent_entry INTEGER,
    agent TEXT NOT NULL DEFAULT '',
    side_cost REAL NOT NULL DEFAULT 0,
    key TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL DEFAULT '',
    holder TEXT,
    holder_pid INTEGER NOT NULL DEFAULT 0,
    holder_host TEXT NOT NULL DEFAULT '',
    held_since INTEGER NOT NULL DEFAULT 0,
    deleted_at INTEGER,
    deleted_by TEXT
) STRICT;
CREATE UNIQUE INDEX sessions_by_key ON sessions (key) WHERE key != '' AND deleted_at IS NULL;
CREATE INDEX sessions_by_use ON sessions (updated_at DESC, number DESC);

CREATE TABLE entries (
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    id INTEGER NOT NULL CHECK (id > 0 AND id < 4294967296),
    parent_id INTEGER CHECK (parent_id < id),
    kind TEXT NOT NULL,
    preview TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX entries_typed ON entries (created_at) WHERE kind IN ('user', 'shell');

CREATE TABLE bodies (
    key INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE labels (
    session INTEGER NOT NULL,
    id INTEGER NOT NULL,
    text TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (session, id),
    FOREIGN KEY (session, id) REFERENCES entries (session, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE leaf_moves (
    number INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    from_leaf INTEGER,
    to_leaf INTEGER,
    action TEXT NOT NULL CHECK (action IN ('move', 'undo', 'redo')),
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX leaf_moves_of_session ON leaf_moves (session, number);

CREATE TABLE drafts (
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    writer TEXT NOT NULL,
    leaf INTEGER,
    updated_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, writer)
) STRICT;

CREATE TABLE blobs (
    digest TEXT PRIMARY KEY,
    used_at INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

CREATE TABLE blob_uses (
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    PRIMARY KEY (session, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_uses_by_digest ON blob_uses (digest);

CREATE VIRTUAL TABLE entries_fts USING fts5 (
    text, content = '', columnsize = 0, tokenize = "unicode61 remove_diacritics 2"
);
"""

SIDE_COSTS_TABLE = """
CREATE TABLE side_costs (
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    cost REAL NOT NULL
) STRICT"""
"""Table of the costs whose sum is in ``sessions.side_cost``, with US dollars, time and purpose."""

UNSENT_TABLE = """
CREATE TABLE unsent (
    place TEXT NOT NULL,
    program TEXT NOT NULL,
    text TEXT NOT NULL,
    waiting TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (place, program)
) STRICT, WITHOUT ROWID"""
"""Table of the unsent texts by place (a session id or a directory) and program. ``waiting`` is a
JSON array of the queued messages."""


def create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(UNSENT_TABLE)
    connection.execute(SIDE_COSTS_TABLE)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def key_of(session: int, entry_id: int) -> int:
    return (session << 32) | entry_id


def key_range(session: int) -> tuple[int, int]:
    return session << 32, (session << 32) | 0xFFFFFFFF
