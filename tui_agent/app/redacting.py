"""Finds and removes given secrets in everything that the program keeps: the store and other files.

In files, secrets are overwritten in place, so that a log to which another program is writing stays
intact. Backups of the store that contain a secret are deleted, and so are all project copies that
races left behind. ``session.redacting`` changes the store; the caller closes the open session
first.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from tui_agent.agent.race.copies import abandoned_homes, remove_left
from tui_agent.app.format import one_line, plural, short_path, visible
from tui_agent.files.notes import NOTES_FILE
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_file, is_link
from tui_agent.secret_detector import find_secrets
from tui_agent.secret_forms import MIN_CHARS, SecretForms
from tui_agent.session.entries import CONTENT, Entry, ToolResultEntry
from tui_agent.session.records import SessionInfo
from tui_agent.session.redacting import Removal, StoreFinding, emptied, find, holders, remove
from tui_agent.session.rows import text_of
from tui_agent.session.store import Store

log = logging.getLogger(__name__)

_PIECE = 1 << 22
"""Number of bytes of a file that are read and searched at a time."""
_FEWEST_IN_BLOCK = 80
"""Minimum length, in characters, of a redacted entry's text whose copies are removed, too."""
_EXPORTED = (".md", ".html", ".jsonl")
"""File suffixes of exported sessions."""
_MOST_NAMED = 12
"""Maximum number of places that are listed in the question whether to remove the secret."""


@frozen
class OwnPlaces:
    """The places in which the program keeps files, which can contain secrets.

    ``directories`` are the program's own. ``races`` is the parent directory of the project copies
    that races use. ``exports`` are the directories to which exports are written by default. In
    ``project``, only the notes file is searched.
    """

    directories: Sequence[Path]
    races: Path | None
    project: Path
    exports: Sequence[Path] = ()


@frozen
class Finding:
    """The places where secrets were found: the store, its backups and other files.

    ``copies`` are project copies that races left behind; these are deleted without being searched.
    """

    store: StoreFinding
    files: Sequence[Path] = ()
    backups: Sequence[Path] = ()
    copies: Sequence[Path] = ()
    unread: Sequence[Path] = ()
    """Files that could not be searched for the secrets."""
    is_deleted: bool = False
    """Whether secrets are left in the store's file, but only in the remains of deleted rows."""

    def __bool__(self) -> bool:
        return bool(self.store or self.files or self.backups or self.copies or self.is_deleted)


class Redaction:
    """Searches for secrets and removes them. The methods are slow, so call them in a thread."""

    def __init__(self, store: Store, removal: Removal, places: OwnPlaces) -> None:
        self._store = store
        self._removal = removal
        self._places = places

    def find(self) -> Finding:
        """Search the store and the program's files for the secrets, without changing anything."""
        found = find(self._store, self._removal)
        files: list[Path] = []
        unread: list[Path] = []
        for path in self._own_files(found):
            try:
                if self._is_in(path):
                    files.append(path)
            except OSError as error:
                log.warning("%s can't be searched for the secret: %s", path, error.strerror)
                unread.append(path)
        backups = [path for path in self._backups() if _holds(path, self._removal.forms)]
        if self._places.races is None:
            copies = []
        else:
            copies = abandoned_homes(self._places.races)
        is_deleted = not found and any(map(self._is_in, self._parts_of_store()))
        return Finding(found, files, backups, copies=copies, unread=unread, is_deleted=is_deleted)

    def holders(self, finding: Finding, *, but: str) -> list[str]:
        """Return the titles of the sessions in ``finding`` that other programs have open.

        ``but`` is the id of the session that this program has open.
        """
        open_now = holders(self._store, finding.store)
        return [self._title(info) for info in open_now if info.id != but]

    def lines(self, finding: Finding) -> list[str]:
        """Return lines that name the places to change, at most `_MOST_NAMED`, without any secrets.

        If there are more places, the last line gives the number of the others.
        """
        stored = finding.store
        found = []
        for session_id, count in stored.entries.items():
            title = self._title(self._store.session(session_id))
            found.append(f"{plural(count, 'entry')} of “{title}”")
        if stored.deleted:
            found.append(f"{plural(stored.deleted, 'entry')} of deleted sessions")
        if stored.blobs:
            found.append(f"{plural(stored.blobs, 'blob')} (full outputs, file snapshots)")
        if stored.texts:
            found.append(f"{plural(stored.texts, 'text')} of sessions (titles, labels, drafts)")
        found += map(self._shown, finding.files)
        for path in finding.backups:
            found.append(f"{self._shown(path)}, which will be deleted")
        if finding.is_deleted:
            found.append("remains of deleted data in the session file")
        if finding.copies:
            found.append(f"copies of {plural(len(finding.copies), 'race')}, which will be deleted")
        if len(found) > _MOST_NAMED:
            more = len(found) - _MOST_NAMED + 1
            found = [*found[: _MOST_NAMED - 1], f"{more} more places"]
        return found

    def _title(self, info: SessionInfo) -> str:
        title = self._removal.forms.text(info.title or info.first_message)
        return visible(one_line(title, 50)) or "(empty)"

    def _shown(self, path: Path) -> str:
        return visible(self._removal.forms.text(short_path(path)))

    def carry_out(self, finding: Finding) -> list[Path]:
        """Remove the secrets everywhere; return the files and copies that could not be changed.

        Raises:
            StoreError: the store could not be changed, so nothing was changed; or its file could
            not be rewritten at the end and still contains the secret in the remains of deleted
            rows.
        """
        if finding.store:
            remove(self._store, self._removal)
        left = [path for path in finding.copies if not remove_left(path)]
        for path in finding.backups:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                log.warning("%s can't be deleted: %s", path, error.strerror)
                left.append(path)
        for path in finding.files:
            try:
                _mask(path, self._removal.forms)
            except OSError as error:
                log.warning("%s can't be rewritten: %s", path, error.strerror)
                left.append(path)
        self._store.rewrite()
        return left

    def _is_in(self, path: Path) -> bool:
        return any(_offsets(path, self._removal.forms))

    # -- files

    def _own_files(self, found: StoreFinding) -> Iterator[Path]:
        """Yield each file to search once, except the files of the store itself."""
        listed = [*self._in_directories(), self._places.project / NOTES_FILE]
        for session_id in found.entries:
            listed.extend(self._exports(session_id))
        for path in dict.fromkeys(listed):
            if is_file(path) and not is_link(path):
                yield path

    def _in_directories(self) -> Iterator[Path]:
        for directory in self._places.directories:
            for folder, names, files in os.walk(directory):
                if Path(folder) == self._places.races:
                    names.clear()
                    continue
                for name in sorted(files):
                    if not name.startswith(self._store.path.name):
                        yield Path(folder, name)

    def _exports(self, session_id: str) -> Iterator[Path]:
        """Yield the exports of a session; their file names contain the end of its id."""
        for directory in self._places.exports:
            for path in sorted(directory.glob(f"*{session_id[-8:]}*")):
                if path.suffix in _EXPORTED:
                    yield path

    def _parts_of_store(self) -> list[Path]:
        path = self._store.path
        return [part for part in (path, path.with_name(f"{path.name}-wal")) if is_file(part)]

    def _backups(self) -> list[Path]:
        path = self._store.path
        return sorted(path.parent.glob(f"{path.name}.v*.bak*"))


def removal_of_entry(
    entry: Entry, session_id: str, store: Store, estimate: Callable[[Entry], int]
) -> Removal:
    """Plan the removal of an entry's content, and of copies of its secrets and long texts.

    Raises:
        EntryNotFound: entries of this kind have no content.
    """
    emptied(entry)
    contents = [text_of(entry), *entry.texts(*CONTENT)]
    if isinstance(entry, ToolResultEntry):
        contents.append(entry.whole_output(store.blob))
    secrets = []
    for text in contents:
        for secret in find_secrets(text):
            secrets.append(text[secret.start : secret.end])
    blocks = [text for text in contents if len(text) >= _FEWEST_IN_BLOCK]
    forms = SecretForms([one for one in secrets if len(one) >= MIN_CHARS], blocks)
    return Removal(forms, estimate, (session_id, entry.id))


def _offsets(path: Path, forms: SecretForms) -> Iterator[tuple[int, int]]:
    """Yield the offset and length, in bytes, of the pieces of a file that contain a secret.

    The searched pieces overlap, so that a secret at the border between two pieces is found.
    """
    with path.open("rb") as file:
        at = 0
        kept = b""
        while piece := file.read(_PIECE):
            data = kept + piece
            if forms.is_in(data):
                yield at - len(kept), len(data)
            at += len(piece)
            kept = data[-forms.longest :]


def _mask(path: Path, forms: SecretForms) -> None:
    """Overwrite each secret in a file with asterisks, in place."""
    pieces = list(_offsets(path, forms))
    with path.open("r+b") as file:
        for at, length in pieces:
            file.seek(at)
            # Read the piece again: masking the previous piece, which overlaps it, may have changed
            # it.
            data = file.read(length)
            file.seek(at)
            file.write(forms.masked(data))
        file.flush()
        os.fsync(file.fileno())


def _holds(backup: Path, forms: SecretForms) -> bool:
    """Return whether a backup of the store contains a secret; True if the backup can't be read."""
    try:
        with closing(sqlite3.connect(f"{backup.as_uri()}?mode=ro", uri=True)) as connection:
            return any(forms.is_in(value) for value in _values(connection))
    except sqlite3.Error:
        return True


def _values(connection: sqlite3.Connection) -> Iterator[bytes]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        for row in connection.execute(f'SELECT * FROM "{table}"'):  # noqa: S608 - the database's own table name
            for value in row:
                if isinstance(value, str):
                    yield value.encode("utf-8", "replace")
                elif isinstance(value, bytes):
                    yield value
