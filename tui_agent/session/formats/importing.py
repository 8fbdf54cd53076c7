"""Taking sessions in: which format a file has, and storing what is new of it in one transaction."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from pathlib import Path
from sqlite3 import Connection

from tui_agent.session import blobs, entry_table, forking, navigation
from tui_agent.session.entries import Entry, UserEntry
from tui_agent.session.errors import SessionHeld
from tui_agent.session.formats import claude_code, native, opencode, pi
from tui_agent.session.formats.incoming import IncomingSession, derived_id
from tui_agent.session.formats.reading import ImportRefused, Limits, Node, read_document, read_lines
from tui_agent.session.previews import preview_of
from tui_agent.session.rows import completed, storable
from tui_agent.session.store import Store

__all__ = ["Came", "FileFormat", "Imported", "files_of", "import_file", "read_file"]

Estimate = Callable[[Entry], int]

_SUFFIXES = frozenset({".jsonl", ".json"})
_TO_READ = frozenset({".html", ".htm", ".md", ".markdown"})
"""Endings of exports that are not all of a session."""
_HEAD_LINES = 20
"""Lines looked at to tell a format: some programs write bookkeeping first."""


class FileFormat(StrEnum):
    """Whose file it is."""

    TUI_AGENT = "tui-agent"
    PI = "pi"
    CLAUDE_CODE = "claude-code"
    OPENCODE = "opencode"


class Came(StrEnum):
    """What an import did with a session."""

    NEW = "new"
    MORE = "more"
    """It was here already, and the file went on further."""
    KNOWN = "known"
    """All of it was here already."""
    COPY = "copy"
    """It was here and went another way since: the file's became a session of its own."""


@dataclass(frozen=True, slots=True)
class Imported:
    """One session of a file, as it is in the store now."""

    session_id: str
    title: str
    source: str
    came: Came
    entries: int
    """Entries that were added."""
    left_out: Counter[str] = field(default_factory=Counter)


def files_of(path: Path) -> list[Path]:
    """Return the files that may hold sessions: the one named, or all below a directory, in order.

    Raises:
        ImportRefused: there is nothing.
    """
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
        if not found:
            raise ImportRefused(f"{path} holds no .jsonl or .json file.")
        return found
    if not path.exists():
        raise ImportRefused(f"There is no {path}.")
    if not path.is_file():
        raise ImportRefused(f"{path} is no file.")
    return [path]


def read_file(
    path: Path, *, source: FileFormat | None = None, limits: Limits | None = None, skip_damaged: bool = False
) -> list[IncomingSession]:
    """Read a file of any known format; ``source`` None finds out which.

    Raises:
        ImportRefused: it can't be read; the message says where and why.
    """
    limits = limits or Limits()
    if path.suffix.lower() in _TO_READ:
        raise ImportRefused(
            f"{path.name} is a copy to read: HTML and Markdown can't be imported. Export the session as .jsonl instead."
        )
    if source is FileFormat.OPENCODE or (source is None and _is_one_document(path, limits)):
        return [opencode.read(read_document(path, limits), limits)]
    with closing(read_lines(path, limits, skip_damaged=skip_damaged)) as lines:
        head: list[Node | None] = []
        while source is None and len(head) < _HEAD_LINES:
            try:
                head.append(next(lines))
            except StopIteration:
                break
            source = _format_of(head[-1])
        if source is None:
            names = ", ".join(one.value for one in FileFormat)
            raise ImportRefused(f"{path.name} is none of the known formats; say which with --from ({names}).")
        nodes = chain(head, lines)
        match source:
            case FileFormat.TUI_AGENT:
                return native.read(nodes, limits, cut_off=skip_damaged)
            case FileFormat.PI:
                return [pi.read(nodes, limits)]
            case _:
                return [claude_code.read(nodes, limits)]


def _format_of(node: Node | None) -> FileFormat | None:
    if node is None:
        return None
    if native.is_header(node):
        return FileFormat.TUI_AGENT
    if pi.is_header(node):
        return FileFormat.PI
    return FileFormat.CLAUDE_CODE if claude_code.is_line(node) else None


def _is_one_document(path: Path, limits: Limits) -> bool:
    """Whether a file is one JSON object over several lines, or in one line that is OpenCode's."""
    try:
        with path.open("rb") as file:
            start = file.read(4096).lstrip()
    except OSError as error:
        raise ImportRefused(f"{path.name} can't be read: {error.strerror or error}.") from error
    if not start.startswith(b"{"):
        return False
    first = start.partition(b"\n")[0].strip()
    if first == b"{":
        return True
    return start.startswith((b'{"info":', b'{ "info":')) and opencode.is_document(read_document(path, limits))


def import_file(
    store: Store,
    path: Path,
    *,
    estimate: Estimate,
    source: FileFormat | None = None,
    skip_damaged: bool = False,
) -> list[Imported]:
    """Read a file and store its sessions: all of them, or nothing.

    ``estimate`` gives the tokens of entries that come without.

    Raises:
        ImportRefused: the file can't be read.
        SessionHeld: it goes on a session that another live program works on.
        StoreError: it can't be stored.
    """
    incoming = read_file(path, source=source, skip_damaged=skip_damaged)
    digest = _digest(path)
    with store.writer() as connection:
        imported = [_TakeIn(store, connection, estimate, digest).take(session) for session in incoming]
        for session in incoming:
            for content in session.blobs.values():
                blobs.put(connection, content, store.clock())
    return imported


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class _TakeIn:
    """Stores one session inside a transaction. ``digest`` is the file's."""

    store: Store
    connection: Connection
    estimate: Estimate
    digest: str

    def take(self, session: IncomingSession) -> Imported:
        """Store what is new of a session."""
        number = self._number(session.id)
        if number is None:
            return self._new(session, session.id, Came.NEW)
        here = self._stored(number)
        if _begins(session.entries, here):
            self._bring_back(number)
            return self._more(session, number, len(here))
        if _begins(here, session.entries):
            self._bring_back(number)
            return self._told(session, session.id, Came.KNOWN, 0)
        copy_id = derived_id(session.created_at, self.digest, session.id)
        if (number := self._number(copy_id)) is not None:
            self._bring_back(number)
            return self._told(session, copy_id, Came.KNOWN, 0)
        return self._new(session, copy_id, Came.COPY)

    def _new(self, session: IncomingSession, session_id: str, came: Came) -> Imported:
        at = session.created_at or self.store.clock()
        number = forking.insert_session(
            self.connection,
            session_id=session_id,
            cwd=storable(session.cwd),
            title=storable(session.title),
            at=at,
            origin=session.origin,
        )
        self._append(session, number, session.entries)
        for move in session.moves:
            navigation.log_move(self.connection, number, move)
        self._finish(session, number)
        return self._told(session, session_id, came, len(session.entries))

    def _more(self, session: IncomingSession, number: int, known: int) -> Imported:
        row = self.connection.execute(
            "SELECT id, holder, holder_pid, holder_host, held_since FROM sessions WHERE number = ?", (number,)
        ).fetchone()
        new = session.entries[known:]
        if new and self.store.alive(row[1]):
            raise SessionHeld(row[0], row[2], row[3], row[4])
        if new:
            self._append(session, number, new)
            self._finish(session, number)
        return self._told(session, session.id, Came.MORE if new else Came.KNOWN, len(new))

    def _append(self, session: IncomingSession, number: int, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        at = session.created_at or self.store.clock()
        entry_table.append(
            self.connection,
            number,
            [completed(entry, entry.id, entry.parent_id, at, self.estimate) for entry in entries],
        )

    def _finish(self, session: IncomingSession, number: int) -> None:
        """Set what the session's row says of its entries, and its labels."""
        for entry_id, text in session.labels.items():
            navigation.set_label(self.connection, number, entry_id, text, session.updated_at)
        self.connection.execute(
            "UPDATE sessions SET last_id = max(last_id, ?), leaf = ?, updated_at = ?, side_cost = max(side_cost, ?), "
            "entry_count = (SELECT count(*) FROM entries WHERE session = sessions.number) WHERE number = ?",
            (session.last_id, session.leaf, session.updated_at or session.created_at, session.side_cost, number),
        )

    def _number(self, session_id: str) -> int | None:
        """Return the number of a session, deleted ones included: their ids are taken until they are purged."""
        row = self.connection.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return None if row is None else int(row[0])

    def _stored(self, number: int) -> list[Entry]:
        rows = self.connection.execute("SELECT id FROM entries WHERE session = ? ORDER BY id", (number,))
        return entry_table.load(self.connection, number, [row[0] for row in rows], lambda _damaged: None)

    def _bring_back(self, number: int) -> None:
        self.connection.execute("UPDATE sessions SET deleted_at = NULL, deleted_by = NULL WHERE number = ?", (number,))

    @staticmethod
    def _told(session: IncomingSession, session_id: str, came: Came, entries: int) -> Imported:
        first = next((one for one in session.entries if isinstance(one, UserEntry) and one.synthetic is None), None)
        title = session.title or (preview_of(first) if first is not None else "")
        return Imported(session_id, title, session.source, came, entries, session.left_out)


def _begins(whole: Sequence[Entry], start: Sequence[Entry]) -> bool:
    """Whether a list of entries begins with another one, apart from what each store works out for itself."""
    same = zip(whole, start, strict=False)
    return len(start) <= len(whole) and all(_essence(left) == _essence(right) for left, right in same)


def _essence(entry: Entry) -> Entry:
    return entry.model_copy(update={"tokens": 0, "preview": "", "created_at": 0})
