"""Defines the errors of the session layer, with messages for the user.

All of them are subclasses of `StoreError`.
"""

# ruff: noqa: N818 - the names state conditions, which callers often expect and handle

import os
import sqlite3
from itertools import zip_longest
from pathlib import Path
from typing import ClassVar

from tui_agent.errors import UserFacingError
from tui_agent.session.ids import short_id


class StoreError(UserFacingError):
    """Raised if an operation of the session store failed, in which case it changed nothing.

    ``message`` is a sentence for the user, which is ``sentence`` with ``about`` inserted.
    """

    sentence: ClassVar[str] = "{}"
    """Template of the error message. ``{}`` stands for the argument of the error."""

    def __init__(self, about: object) -> None:
        self.message = self.sentence.format(about)
        super().__init__(self.message)


class StoreUnavailable(StoreError):
    """Raised if the session file can't be opened, created, read or written at all."""


class StoreReadOnly(StoreError):
    """Raised if a session can't be changed because it was opened only for reading.

    Also raised if the session file can't be written, or if it was deleted or replaced while it was
    open. A file that can't be written can still be read unless it has an older version.
    """


class StoreBusy(StoreError):
    """Raised if another program kept the session file locked for longer than the timeout."""


class StoreFull(StoreError):
    """Raised if the disk has no space for the data."""


class StoreDamaged(StoreError):
    """Raised if the session file is damaged, or if converting it to this version would lose data.

    The program writes nothing more to the file, so that the damage doesn't spread.
    """


class NotASessionFile(StoreError):
    """Raised if the file at the path wasn't written by tui-agent."""


class SchemaTooNew(StoreError):
    """Raised if the session file was written by a newer version of the program."""

    def __init__(self, path: Path, found: int, supported: int) -> None:
        super().__init__(
            f"The session file {path} has schema version {found}, but this program supports only "
            f"versions up to {supported}. Update tui-agent, or use another file."
        )


class SessionNotFound(StoreError):
    """Raised if no session has the given text as its id, or as the beginning or end of its id."""

    sentence = "There is no session “{}”. To list all sessions, run tui-agent sessions."


class AmbiguousSession(StoreError):
    """Raised if the ids of several sessions begin or end with the given text.

    ``ids`` has up to ten of these ids, most recently used first; the message lists them.
    """

    def __init__(self, wanted: str, ids: tuple[str, ...], names: tuple[str, ...] = ()) -> None:
        ends = [short_id(session_id) for session_id in ids]
        if len(set(ends)) < len(ends):  # Old versions could create several ids with the same end.
            ends = list(ids)
        listed = [f"{end} “{name}”" if name else end for end, name in zip_longest(ends, names)]
        super().__init__(f"Several sessions match “{wanted}”; give one of: {', '.join(listed)}.")
        self.ids = ids


class EntryNotFound(StoreError):
    """Raised if the session has no entry with the given id."""

    sentence = "There is no entry #{} in this session."


class EntryDamaged(StoreError):
    """Raised if the entry with the given id exists but can't be read."""

    sentence = "Entry #{} is damaged and can't be read."


class SessionHeld(StoreError):
    """Raised if a running program has claimed the session.

    ``since`` is the time of the claim in milliseconds since the epoch.
    """

    def __init__(self, session_id: str, pid: int, host: str, since: int) -> None:
        if pid == os.getpid():
            where = "already open here"
        else:
            where = f"open in another program (process {pid} on {host})"
        super().__init__(f"Session {session_id} is {where}. Close it first.")
        self.session_id = session_id
        self.pid = pid
        self.host = host
        self.since = since


class SessionTakenOver(StoreError):
    """Raised if another program took over the session.

    This program can now only read and fork the session, unless it takes the session back.
    """

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"Another program took over session {short_id(session_id)}. Fork it to continue here, or take it back."
        )
        self.session_id = session_id


class NothingToUndo(StoreError):
    """Raised if there is no step that can be undone or redone."""


_FULL = (StoreFull, "There is no space on the disk for the session file {path}. Free some space.")
_SENTENCES: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: _FULL,
    sqlite3.SQLITE_READONLY: (
        StoreReadOnly,
        "The session file {path} is read-only, so nothing can be saved.",
    ),
    sqlite3.SQLITE_PERM: (
        StoreReadOnly,
        "The session file {path} can't be written. Check its permissions.",
    ),
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "Another program keeps the session file {path} locked. Try again.",
    ),
    sqlite3.SQLITE_LOCKED: (
        StoreBusy,
        "Another program keeps the session file {path} locked. Try again.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        StoreDamaged,
        (
            "The session file {path} is damaged, so nothing more is written to it. What can be read "
            "is shown; make a copy of the file."
        ),
    ),
    sqlite3.SQLITE_NOTADB: (
        NotASessionFile,
        "{path} is not a session file of tui-agent. It was not changed.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        StoreUnavailable,
        "The session file {path} can't be opened. Check its path and permissions.",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreUnavailable,
        "The session file {path} can't be read or written, because the disk reports an error.",
    ),
}


def translate(error: sqlite3.Error, path: Path) -> StoreError:
    """Convert an SQLite error to an error of the store, which has a message for the user.

    ``path`` is the session file that the message names.
    """
    code = getattr(error, "sqlite_errorcode", 0)
    unknown = StoreError, f"Using the session file {{path}} failed: {error}."
    kind, sentence = _SENTENCES.get(code) or _SENTENCES.get(code & 0xFF, unknown)
    return kind(sentence.replace("{path}", str(path)))
