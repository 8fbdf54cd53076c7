"""Imports sessions: finds other programs' session files, reads them, and stores the new entries.

If a session was imported before, only its new entries are added. If its earlier entries differ from
the stored ones, the session is stored as a copy. A session that was deleted since the last import
is restored. The imported files are never changed.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from operator import ne
from pathlib import Path
from sqlite3 import Connection

from tui_agent.json_text import as_text, table_in
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_directory, is_file, real_path
from tui_agent.safe_text import valid
from tui_agent.session import entry_table, forking
from tui_agent.session.entries import Entry, is_by_user, typed_text
from tui_agent.session.errors import SessionHeld
from tui_agent.session.formats.incoming import IncomingSession, derived_id
from tui_agent.session.formats.reading import ImportRefused, SourceFile
from tui_agent.session.formats.table import FORMATS, Format, format_of
from tui_agent.session.ids import short_id
from tui_agent.session.rows import completed, essence_of, sound
from tui_agent.session.store import Store

ImportEstimate = Callable[[Entry], int]
"""A function that returns the estimated number of tokens of an entry."""

_TO_READ = frozenset({".html", ".htm", ".md", ".markdown"})
"""Suffixes of exported files that are only for reading, from which no session can be restored."""

_TITLE_CHARS = 60

_BATCH = 200
"""Maximum number of entries that are stored, or kept in memory, at a time."""


@frozen
class DetectedFile:
    """A session file of another program, found in the directory where the program keeps them."""

    path: Path
    format: str
    """Name of the format, as given to the option ``--from``."""
    program: str
    """Name, as shown to the user, of the program that wrote the file."""
    project: str
    """The working directory of the file's sessions; "" if the file doesn't name it.

    For a database of OpenCode with several directories, this is the number of directories
    (``3 projects``).
    """
    changed_at: int
    """Time of the file's last change, in milliseconds since the epoch."""
    size: int
    """Size of the file, in bytes."""


def find_sessions(home: Path, environ: Mapping[str, str] = os.environ) -> list[DetectedFile]:
    """Return the session files that other programs keep in their usual directories, newest first.

    ``home`` is the user's home directory; variables in ``environ`` may name other directories.
    Empty files are left out.
    """
    found: dict[Path, DetectedFile] = {}
    for row in FORMATS:
        for place, pattern in _places(row, home, environ):
            for path in place.glob(pattern):
                if path in found or not is_file(path):
                    continue
                try:
                    facts = path.stat()
                except OSError:  # The file was removed in the meantime.
                    continue
                if facts.st_size:
                    found[path] = DetectedFile(
                        path,
                        row.name,
                        row.program,
                        project=_project(row, path),
                        changed_at=int(facts.st_mtime * 1000),
                        size=facts.st_size,
                    )
    return sorted(found.values(), key=lambda one: (-one.changed_at, str(one.path)))


def is_own_file(path: Path, home: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Return True if a file is in a directory where another program keeps this user's sessions.

    The project directories named in such a file can be trusted.
    """
    for row in FORMATS:
        for place, _pattern in _places(row, home, environ):
            if path.absolute().is_relative_to(place):
                return True
    return False


def _places(row: Format, home: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield the directories in which a program keeps session files, each with their pattern."""
    for variable, below_home, pattern in row.places:
        yield Path((variable and environ.get(variable)) or home / below_home), pattern


def _project(row: Format, path: Path) -> str:
    """Return the working directory of a file's sessions; "" if the file doesn't name it."""
    source = SourceFile(path, skip_damaged=True)
    try:
        if (project_of := row.function("project_of")) is not None:
            return str(project_of(source))
        for node in source.first_nodes():
            for table in (node.value, table_in(node.value, "payload")):
                if cwd := as_text(table.get("cwd")):
                    return cwd
    except ImportRefused:
        pass  # The file is listed anyway; its import reports the error.
    return ""


class ImportChange(StrEnum):
    """What the import of a session changed in the store."""

    NEW = "new"
    MORE = "more"
    """The session was already stored, and the new entries in the file were added."""
    KNOWN = "known"
    """All entries of the imported session were already stored."""
    COPY = "copy"
    """The stored session's entries differ from the file's, so a new session was stored."""


@frozen
class Imported:
    """The result of importing one session."""

    session_id: str
    """The session's id in the store."""
    title: str
    source: str
    """Name, as shown to the user, of the program that wrote the session."""
    came: ImportChange
    entries: int
    """Number of entries that the import added."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many parts of the file were left out, by the kind of part."""
    damaged: list[int] = field(default_factory=list)
    """Numbers, counted from 1, of the lines in the file that could not be read."""
    refused: tuple[str, ...] = ()
    """Error messages about other sessions in the file that could not be imported."""
    named_directory: str = ""
    """The working directory that the file names, if the session was given another one; otherwise
    ""."""
    of_subagent: bool = False
    """Whether the session belongs to a subagent of another session."""


def read_file(
    path: Path, *, source: str | None = None, skip_damaged: bool = False
) -> list[IncomingSession]:
    """Return the sessions of a file, without storing them.

    ``source`` is the name of the file's format; None to detect it. With ``skip_damaged``, lines
    that can't be read are skipped. If a database has unreadable sessions, only the others are
    returned.

    Raises:
        ImportRefused: the file can't be read, or has no readable session; the message says where
            and why.
    """
    file = SourceFile(path, skip_damaged=skip_damaged)
    row = _format(file, source)
    sessions = [session for together in _read(row, file) for session in together]
    if file.refused and not sessions:
        raise file.refused[0]
    return sessions


def _format(file: SourceFile, source: str | None) -> Format:
    """Return the format named ``source``, or detect it if None. Refuses HTML and Markdown."""
    if file.path.suffix.lower() in _TO_READ:
        raise ImportRefused(
            f"{file.path.name} is a copy for reading: HTML and Markdown can't be imported. "
            "Export the session as .jsonl instead."
        )
    if source is None:
        return format_of(file)
    return next(row for row in FORMATS if row.name == source)


def _read(row: Format, file: SourceFile) -> Iterator[Sequence[IncomingSession]]:
    """Yield the sessions of a file in groups, each of which is stored as a whole or not at all.

    The first session of each group has the list of the file's damaged lines.
    """
    for together in row.read(file):
        together[0].damaged = file.damaged
        yield together


def import_file(
    store: Store,
    path: Path,
    *,
    estimate: ImportEstimate,
    source: str | None = None,
    skip_damaged: bool = False,
    belongs_to: Path | None = None,
) -> list[Imported]:
    """Read a file and store its sessions; return what was done with each.

    A session and its subagents' sessions are stored together or not at all. If a file has several
    sessions, those that can be read are stored.

    Args:
        store: the store to add to.
        path: the file.
        estimate: Function that returns the number of tokens of an entry that has no count.
        source: name of the file's format; None to detect it.
        skip_damaged: skip lines that can't be read.
        belongs_to: a directory. New sessions work in the directory that the file names if that is
            inside ``belongs_to``, else in ``belongs_to`` itself. None to trust the file's
            directory.

    Raises:
        ImportRefused: the file can't be read, or has no readable session.
        SessionHeld: the file has new entries for a session that another running program has open.
        StoreError: the sessions can't be stored.
    """
    file = SourceFile(path, skip_damaged=skip_damaged)
    row = _format(file, source)
    imported: list[Imported] = []
    for together in _read(row, file):
        # A database changes with every session in it, so its digest can't identify a copy of a
        # session. The session's content is used instead.
        digest = ""
        if row.function("is_line") is not None and not file.is_database:
            with path.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
        with store.writer() as connection:
            taking = _SessionImport(store, connection, estimate, digest, belongs_to)
            stored = [taking.take(session) for session in together]
            for session in together:
                for content in session.blobs.values():
                    entry_table.put_blob(connection, content, store.clock())
        imported += stored
    if file.refused and not imported:
        raise file.refused[0]
    if file.refused:
        imported[-1] = replace(imported[-1], refused=tuple(error.message for error in file.refused))
    return imported


def _directory_in(place: Path, named: str) -> str:
    """Return the directory ``named`` if it exists and is inside ``place``, otherwise ``place``.

    The result is absolute and contains no symbolic links, so it always means the same directory.
    """
    here = real_path(place)
    there = real_path(here / named)
    if there.is_relative_to(here) and is_directory(there):
        return str(there)
    return str(here)


@frozen
class _SessionImport:
    """Stores imported sessions inside a transaction.

    If a copy is stored, its id depends on ``digest``, the SHA-256 of the file. If ``digest`` is "",
    the id depends on the session's content instead.
    """

    store: Store
    connection: Connection
    estimate: ImportEstimate
    digest: str
    belongs_to: Path | None

    def take(self, session: IncomingSession) -> Imported:
        """Store an imported session, add its new entries to the stored one, or store a copy.

        Raises SessionHeld if there are new entries and a running program holds the stored session.
        """
        # The derived ids (UUID version 8) of two files of one thread may differ only in the time,
        # so that they have the same short id. Another id is then derived.
        while session.id[14:15] == "8" and self._number(session.id) is None:
            like = (f"%{short_id(session.id)}",)
            if (
                self.connection.execute("SELECT 1 FROM sessions WHERE id LIKE ?", like).fetchone()
                is None
            ):
                break
            session.id = derived_id(session.created_at, session.id)
        number = self._number(session.id)
        if number is None:
            return self._new(session, session.id, ImportChange.NEW)
        row = self.connection.execute(
            "SELECT count(*) FROM entries WHERE session = ?", (number,)
        ).fetchone()
        here = int(row[0])
        if self._alike(number, session.entries, min(here, len(session.entries))):
            self._bring_back(number)
            return self._more(session, number, here)
        content = self.digest
        if not content:
            own = hashlib.sha256()
            for entry in session.entries:
                own.update(essence_of(sound(entry)).model_dump_json().encode())
            content = own.hexdigest()
        copy_id = derived_id(session.created_at, content, session.id)
        if (number := self._number(copy_id)) is not None:
            self._bring_back(number)
            return self._told(session, copy_id, ImportChange.KNOWN, 0)
        return self._new(session, copy_id, ImportChange.COPY)

    def _new(self, session: IncomingSession, session_id: str, came: ImportChange) -> Imported:
        at = session.created_at or self.store.clock()
        named = valid(session.cwd)
        cwd = named
        if self.belongs_to is not None:
            cwd = _directory_in(self.belongs_to, named)
        number = forking.insert_session(
            self.connection,
            session_id=session_id,
            cwd=cwd,
            title=valid(session.title or _first_words(session)),
            at=at,
            origin=session.origin,
        )
        for move in session.moves:
            entry_table.log_move(self.connection, number, move)
        self._store(session, number, 0)
        told = self._told(session, session_id, came, len(session.entries))
        if self.belongs_to is None:
            return told
        if session.leaf is not None and session.leaf not in session.labels:
            label = f"imported ({session.source})"
            entry_table.set_label(self.connection, number, session.leaf, label, at)
        if str(real_path(self.belongs_to / named)) == cwd:
            return told
        return replace(told, named_directory=session.cwd)

    def _more(self, session: IncomingSession, number: int, known: int) -> Imported:
        new = max(0, len(session.entries) - known)
        if new:
            session_id, writer, *holder = self.connection.execute(
                "SELECT id, holder, holder_pid, holder_host, held_since FROM sessions WHERE number = ?",
                (number,),
            ).fetchone()
            if self.store.alive(writer):
                raise SessionHeld(session_id, *holder)
            self._store(session, number, known)
        return self._told(
            session, session.id, ImportChange.MORE if new else ImportChange.KNOWN, new
        )

    def _store(self, session: IncomingSession, number: int, first: int) -> None:
        """Store a session's entries from the index ``first`` on, its labels, and its row."""
        entries = session.entries
        at = session.created_at or self.store.clock()
        for start in range(first, len(entries), _BATCH):
            batch = [
                completed(entry, entry.id, entry.parent_id, at, self.estimate)
                for entry in entries[start : start + _BATCH]
            ]
            entry_table.append(self.connection, number, batch)
            entry_table.note(self.connection, number, batch)
        for entry_id, text in session.labels.items():
            entry_table.set_label(self.connection, number, entry_id, text, session.updated_at)
        self.connection.execute(
            "UPDATE sessions SET last_id = max(last_id, ?), leaf = ?, updated_at = ?, side_cost = max(side_cost, ?), "
            "entry_count = (SELECT count(*) FROM entries WHERE session = sessions.number) WHERE number = ?",
            (
                session.last_id,
                session.leaf,
                session.updated_at or session.created_at,
                session.side_cost,
                number,
            ),
        )

    def _number(self, session_id: str) -> int | None:
        """Return the row number of a session; None if no session has its id.

        Deleted sessions count, because they keep their ids until they are purged.
        """
        row = self.connection.execute(
            "SELECT number FROM sessions WHERE id = ?", (session_id,)
        ).fetchone()
        if row is None:
            return None
        return int(row[0])

    def _alike(self, number: int, entries: Sequence[Entry], count: int) -> bool:
        """Return True if the first ``count`` stored entries of a session equal the given entries.

        Fields that a store computes are not compared.
        """
        rows = self.connection.execute(
            "SELECT id FROM entries WHERE session = ? ORDER BY id LIMIT ?", (number, count)
        )
        start = 0
        for ids in entry_table.chunks((row[0] for row in rows.fetchall()), _BATCH):
            here = entry_table.load(self.connection, number, ids, lambda _damaged: None)
            there = [sound(entry) for entry in entries[start : start + len(ids)]]
            if len(here) != len(there) or any(
                map(ne, map(essence_of, here), map(essence_of, there))
            ):
                return False
            start += len(ids)
        return True

    def _bring_back(self, number: int) -> None:
        """Restore a deleted session."""
        self.connection.execute(
            "UPDATE sessions SET deleted_at = NULL, deleted_by = NULL WHERE number = ?", (number,)
        )

    @staticmethod
    def _told(
        session: IncomingSession, session_id: str, came: ImportChange, entries: int
    ) -> Imported:
        title = session.title or _first_words(session)
        return Imported(
            session_id,
            title,
            session.source,
            came=came,
            entries=entries,
            left_out=session.left_out,
            damaged=session.damaged,
            of_subagent=bool(session.origin[2]),
        )


def _first_words(session: IncomingSession) -> str:
    """Return the beginning of the user's first message, for use as a title; "" if there is none."""
    for entry in session.entries:
        if is_by_user(entry):
            words = " ".join(typed_text(entry.parts).split())
            if len(words) <= _TITLE_CHARS:
                return words
            return f"{words[: _TITLE_CHARS - 1].rstrip()}…"
    return ""
