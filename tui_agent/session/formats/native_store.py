"""Reads this program's sessions from an exported file, or from another machine's ``sessions.db``.

A database is copied first, because it may have to be migrated to this version's schema, but the
file itself must not be changed and may be in use by another program. Each session is then converted
to the lines of an exported file, and checked like an exported file.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from tui_agent.path_checks import is_there
from tui_agent.session.errors import StoreError
from tui_agent.session.formats import native
from tui_agent.session.formats.copies import copies_of
from tui_agent.session.formats.incoming import IncomingSession
from tui_agent.session.formats.native import is_line
from tui_agent.session.formats.reading import ImportRefused, Node, SourceFile, shown_name
from tui_agent.session.schema import APPLICATION_ID
from tui_agent.session.store import Store

__all__ = ["is_file", "is_line", "read"]

_ALL = -1
"""The value by which SQLite means that there is no limit."""
_APPLICATION_ID_AT = 68
"""Offset, in bytes, of SQLite's four-byte application id in the header of a database file."""


def is_file(source: SourceFile) -> bool:
    """Return True if a file is a ``sessions.db`` of this program.

    Raises:
        ImportRefused: the file can't be read.
    """
    at = _APPLICATION_ID_AT
    if not source.is_database or source.head[at : at + 4] == APPLICATION_ID.to_bytes(4, "big"):
        return source.is_database
    if not is_there(source.path.with_name(f"{source.path.name}-wal")):
        return False
    # The file must be opened as a database, because if the program was killed during its first
    # session, all data is still in the write-ahead log.
    with source.database() as connection:
        return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)


def read(source: SourceFile) -> Iterator[Sequence[IncomingSession]]:
    """Yield the sessions of a file, in lists.

    For a database, each list contains one session and the sessions of its subagents. For an
    exported file, a single list contains all sessions.

    Raises:
        ImportRefused: the file can't be read.
    """
    if is_file(source):
        yield from _store(source)
    else:
        yield native.LineReader(skip_damaged=source.skip_damaged).read(source.lines())


def _store(source: SourceFile) -> Iterator[list[IncomingSession]]:
    with tempfile.TemporaryDirectory(prefix="tui-agent-import-") as place:
        try:
            with Store(_copied(source.path, Path(place))) as store:
                for info in store.sessions(limit=_ALL):
                    sessions = source.attempt(partial(_sessions, store, info.id, source))
                    if sessions:
                        yield sessions
        except ImportRefused:
            raise
        except (OSError, sqlite3.Error, StoreError) as error:
            raise ImportRefused(f"{shown_name(source.path)} can't be read: {error}") from error


def _copied(path: Path, place: Path) -> Path:
    """Copy a session file into the directory ``place``, with the changes in the write-ahead log.

    Returns the path of the copy.
    """
    target = place / "sessions.db"
    # With ``immutable``, SQLite can read the file without creating other files beside it. This is
    # safe if there is no write-ahead log, because no program then has the session file open.
    how = "mode=ro&immutable=1"
    if is_there(path.with_name(f"{path.name}-wal")):
        how = "mode=ro"
    try:
        with (
            closing(
                sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=5)
            ) as original,
            closing(sqlite3.connect(target)) as copy,
        ):
            original.backup(copy)
    except sqlite3.Error:
        # The file is copied, because in a read-only directory SQLite can't create the files that it
        # needs for reading.
        target.unlink(missing_ok=True)
        for ending in ("", "-wal"):
            if is_there(part := path.with_name(path.name + ending)):
                shutil.copyfile(part, target.with_name(target.name + ending))
    return target


def _sessions(store: Store, session_id: str, source: SourceFile) -> list[IncomingSession]:
    where = f"{shown_name(source.path)}, session {session_id[-8:]}"
    sessions = native.LineReader().read(
        Node(line, where) for line in native.lines_of(copies_of(store, session_id))
    )
    if any(len(session.entries) for session in sessions):
        return sessions
    return []
