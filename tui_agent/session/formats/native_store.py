"""Our own session files, ``sessions.db``, as a place that sessions come from: another machine's, a container's.

Sessions are read one after the other from a copy, which may be brought to this program's schema: the file itself is
not touched, and a program that works with it goes on. What is read takes the way of an exported file and is checked
like one.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from tui_agent.session.errors import StoreError
from tui_agent.session.formats import native
from tui_agent.session.formats.copies import copies_of
from tui_agent.session.formats.incoming import IncomingSession
from tui_agent.session.formats.reading import ImportRefused
from tui_agent.session.formats.source import SourceFile
from tui_agent.session.schema import APPLICATION_ID
from tui_agent.session.store import Store

__all__ = ["is_store", "read"]

_PAGE = 200
"""Sessions listed at once."""
_APPLICATION_ID_AT = 68
"""Where SQLite keeps it in a file's header, four bytes."""


def is_store(source: SourceFile) -> bool:
    """Whether a file is one of ours.

    Raises:
        ImportRefused: it can't be read.
    """
    at = _APPLICATION_ID_AT
    if not source.is_database or source.head[at : at + 4] == APPLICATION_ID.to_bytes(4, "big"):
        return source.is_database
    if not source.path.with_name(f"{source.path.name}-wal").exists():
        return False
    # A program that was killed in its first session left everything beside the file.
    with source.database() as connection:
        return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)


def read(source: SourceFile) -> Iterator[list[IncomingSession]]:
    """Yield the sessions of a store, each with those of its subagents.

    Raises:
        ImportRefused: the store can't be read.
    """
    with tempfile.TemporaryDirectory(prefix="tui-agent-import-") as place:
        try:
            with Store(_copied(source.path, Path(place))) as store:
                for session_id in list(_ids(store)):
                    sessions = source.attempt(partial(_sessions, store, session_id, source))
                    if sessions:
                        yield sessions
        except ImportRefused:
            raise
        except (OSError, sqlite3.Error, StoreError) as error:
            raise ImportRefused(f"{source.path.name} can't be read: {error}") from error


def _copied(path: Path, place: Path) -> Path:
    """Copy a store as it is at a moment, with what its program has not written back into it yet."""
    target = place / "sessions.db"
    # Nobody has a store open that has nothing beside it; then SQLite need not put anything there to read it.
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    try:
        with (
            closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=5)) as original,
            closing(sqlite3.connect(target)) as copy,
        ):
            original.backup(copy)
    except sqlite3.Error:
        # Beside a file in a directory that can't be written to SQLite can't keep what it needs to read it.
        target.unlink(missing_ok=True)
        for ending in ("", "-wal"):
            if (part := path.with_name(path.name + ending)).exists():
                shutil.copyfile(part, target.with_name(target.name + ending))
    return target


def _ids(store: Store) -> Iterator[str]:
    offset = 0
    while page := store.sessions(limit=_PAGE, offset=offset):
        yield from (info.id for info in page)
        offset += len(page)


def _sessions(store: Store, session_id: str, source: SourceFile) -> list[IncomingSession]:
    where = f"{source.path.name}, session {session_id[-8:]}"
    sessions = native.read(native.nodes(copies_of(store, session_id), where), source.limits)
    return sessions if any(len(session.entries) for session in sessions) else []
