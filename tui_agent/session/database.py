"""Opens, creates and migrates the SQLite file of all sessions, with a connection for each thread.

The file is in WAL mode with ``synchronous=NORMAL``: a committed transaction survives a crash of the
program. A power failure may lose the last transactions, but never corrupts the file.

Before an older file is migrated it is backed up, and the backup is kept. The migration and its checks
are one transaction, so that nothing changes if anything fails, and other SQLite clients may have the
file open.

A lock file next to the session file (suffix ``.lock``) is locked while a program has the store
open. Once the session file has been found damaged, deleted or replaced, this program writes nothing
more to it (`Database.refusal`).
"""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar, cast

from tui_agent.path_checks import is_there
from tui_agent.session import schema
from tui_agent.session.errors import (
    NotASessionFile,
    SchemaTooNew,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
    translate,
)
from tui_agent.session.locks import FileLock

Migration = Sequence[str]
"""Statements that change the schema by one version, inside the caller's transaction."""

MIGRATIONS: Mapping[int, Migration] = {
    1: (
        # Adds the subagent's name and the cost of model calls without an entry. A fork has entries
        # older than itself and a subagent's session doesn't, which distinguishes the two.
        "ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE sessions ADD COLUMN side_cost REAL NOT NULL DEFAULT 0",
        """
        UPDATE sessions SET agent = substr(title, 1, instr(title, ': ') - 1)
        WHERE parent_entry IS NOT NULL AND instr(title, ': ') > 1 AND NOT EXISTS (
            SELECT 1 FROM entries AS e WHERE e.session = sessions.number AND e.created_at < sessions.created_at
        )
        """,
    ),
    2: (schema.UNSENT_TABLE,),
    3: (
        # Removes an unused field from tool results. Damaged bodies are not touched.
        """
        UPDATE bodies SET body = json_remove(body, '$.arguments_digest')
        WHERE instr(body, '"arguments_digest"') > 0 AND json_valid(body)
        """,
    ),
    # Empty migrations: the tables stay the same, but entries may have new fields or kinds that
    # older programs would mistake for damage.
    4: (),  # a message can have the typed command line
    5: (),  # effort changes
    6: (),  # entries have fields for scripts, windows from notes, restored files …
    7: (
        # Runs without a screen have a key and an outcome; there are entries for checks.
        "ALTER TABLE sessions ADD COLUMN key TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE sessions ADD COLUMN outcome TEXT NOT NULL DEFAULT ''",
        "CREATE UNIQUE INDEX sessions_by_key ON sessions (key) WHERE key != '' AND deleted_at IS NULL",
    ),
    8: (),  # subagents work on branches of the session, not in sessions of their own
    9: (schema.SIDE_COSTS_TABLE,),  # costs of calls without an entry, with time and purpose
}
"""The migration from each older schema version, the first being 1, to the next."""

_COUNTED = (
    "sessions",
    "entries",
    "bodies",
    "labels",
    "leaf_moves",
    "drafts",
    "blobs",
    "blob_uses",
    "unsent",
    "side_costs",
)
"""Tables that must have the same number of rows before and after a migration, if they existed before."""

T = TypeVar("T")
IdsT = TypeVar("IdsT", bound=Sequence[int])

_JOURNAL_BYTES = 16 * 1024 * 1024
"""Size to which the write-ahead log is cut after a larger transaction, such as a long fork."""

_CACHED_KIB = 512
"""Page cache of each thread's connection, in KiB; small because the system caches the file anyway."""

_MINIMUM_SQLITE = (3, 37, 0)
"""Oldest usable version of SQLite: the first with STRICT tables."""

_REFUSED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""SQLite's error codes for a file that can't be opened for writing."""


def migrate(path: Path, found: int, target: int, migrations: Mapping[int, Migration]) -> Path:
    """Migrate the file at ``path`` from schema ``found`` to ``target``; return the backup's path.

    Raises:
        StoreDamaged: the migrated tables failed their check; the file is unchanged.
        sqlite3.Error: a statement failed; the file is unchanged.
        OSError: the backup can't be written; the file is unchanged.
    """
    backup = _free_backup_name(path, found)
    try:
        _back_up(path, backup)
        # Closing the connection rolls back a transaction that failed.
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            before = _counts(connection)
            for version in range(found, target):
                for statement in migrations[version]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            _check(connection, before, path)
            connection.execute("COMMIT")
    except BaseException:
        backup.unlink(missing_ok=True)
        raise
    return backup


def _free_backup_name(path: Path, found: int) -> Path:
    suffix = f".v{found}.bak"
    backup = path.with_name(path.name + suffix)
    number = 1
    while backup.exists():
        number += 1
        backup = path.with_name(f"{path.name}{suffix}{number}")
    return backup


def _back_up(path: Path, backup: Path) -> None:
    # The backup gets its name only once it is complete, as the program may be killed meanwhile.
    unfinished = path.with_name(path.name + ".migrating")
    unfinished.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(unfinished)) as new:
            old.backup(new)
            # A single file without a journal, so that a rename moves all of it.
            new.execute("PRAGMA journal_mode = DELETE")
        unfinished.chmod(0o600)
        _sync(unfinished)
        unfinished.replace(backup)
        _sync(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def _check(connection: sqlite3.Connection, before: Mapping[str, int], path: Path) -> None:
    """Raise StoreDamaged if the migrated tables are damaged or have lost rows."""
    is_damaged = connection.execute("PRAGMA quick_check").fetchone()[0] != "ok"
    is_orphaned = connection.execute("PRAGMA foreign_key_check").fetchone() is not None
    after = _counts(connection)
    has_lost = any(after.get(table) != count for table, count in before.items())
    if is_damaged or is_orphaned or has_lost:
        raise StoreDamaged(
            f"The session file {path} could not be converted to this version without loss. "
            "It was not changed."
        )


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    present = {
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    return {
        table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - names from above
        for table in _COUNTED
        if table in present
    }


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Database:
    """The open session file.

    Every thread has its own connection; only one thread writes at a time.

    Args:
        path: The file; it and its directory are created when missing, unless ``read_only``.
        busy_timeout: Milliseconds to wait for another program that is writing.
        read_only: Open for reading even if the file can be written.
        migrations: The migration from each older schema version to the next.

    Raises:
        StoreError: the file can't be opened, and was not changed.
    """

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout: int = 2_000,
        read_only: bool = False,
        migrations: Mapping[int, Migration] = MIGRATIONS,
    ) -> None:
        if sqlite3.sqlite_version_info < _MINIMUM_SQLITE:
            raise StoreUnavailable(
                f"SQLite {sqlite3.sqlite_version} is too old: 3.37 or newer is needed."
            )
        self.path = path.absolute()
        self._busy_timeout = busy_timeout
        self._migrations = migrations
        self._version = max(migrations) + 1
        self._mode = "mode=rwc"
        self.refusal: StoreError | None = None
        """The error to raise for a write, None if the file can be written."""
        self._write_lock = threading.RLock()
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._presence: FileLock | None = None
        self._file: tuple[int, int] | None = None
        try:
            with self._translated():
                if not read_only:
                    with contextlib.suppress(OSError):
                        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                        self._presence = FileLock(self.path.with_name(self.path.name + ".lock"))
                if self._presence is not None:
                    # Every program that has the file open shares this lock; a migration takes it
                    # exclusively.
                    self._share(self._presence)
                if self._presence is None or not self._open_for_writing():
                    self._open_for_reading()
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Return the calling thread's connection for reading, for a ``with`` block.

        Raises:
            StoreError: SQLite reported an error in the block.
        """
        with self._translated():
            yield self._connection()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction for a ``with`` block: committed at its end, undone if it raises.

        Raises:
            StoreError: the file can't be written, or the transaction failed; nothing was stored.
        """
        if self.refusal is None and self._file is not None and _identity(self.path) != self._file:
            self.refusal = StoreReadOnly(
                f"The session file {self.path} was deleted or replaced while it was open: nothing can be saved any "
                "more. /export writes this session to a file; then start the program again."
            )
        if self.refusal is not None:
            raise self.refusal
        with self._write_lock, self._translated():
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # After some errors, such as a full disk, SQLite has already rolled back.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def rewrite(self) -> None:
        """Rewrite the file, so that its free pages and its journal contain no deleted data.

        Raises StoreBusy if another program is reading or writing the file, or another StoreError if
        SQLite reports an error.
        """
        with self._write_lock, self._translated():
            connection = self._connection()
            connection.execute("VACUUM")
            busy, *_pages = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreBusy(f"Another program is using the session file {self.path}.")

    def close(self) -> None:
        """Close all connections. Idempotent."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        self._local = threading.local()
        if self._presence is not None:
            self._presence.close()
            self._presence = None

    # -- connections -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            translated = translate(error, self.path)
            if isinstance(translated, StoreDamaged):
                self.refusal = translated
            raise translated from error

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect(self._mode)
            self._keep(connection)
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?{mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,  # `close` may be called from another thread
        )
        connection.execute(f"PRAGMA busy_timeout = {self._busy_timeout}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
        connection.execute(f"PRAGMA cache_size = -{_CACHED_KIB}")
        return connection

    # -- opening -----------------------------------------------------------------------------------

    def _share(self, lock: FileLock) -> None:
        if not lock.take(shared=True, timeout=self._busy_timeout / 1000):
            raise StoreBusy(
                f"Another program is converting the session file {self.path}: try again in a moment."
            )

    def _open_for_writing(self) -> bool:
        """Open the file, creating or migrating it if necessary; return False if it can only be read."""
        deadline = time.monotonic() + self._busy_timeout / 1000
        while True:
            try:
                connection = self._connect("mode=rwc")
                found = self._inspect(connection)
            except sqlite3.OperationalError as error:
                if _primary(error) in _REFUSED:
                    return False
                raise
            if found == self._version:
                return self._settle(connection)
            connection.close()
            if not self._build_alone(found) and time.monotonic() > deadline:
                raise StoreBusy(
                    f"The session file {self.path} must be converted, but other programs have it open: "
                    "close them first."
                )

    def _settle(self, connection: sqlite3.Connection) -> bool:
        """Keep the connection and return True if it can write; else close it and return False."""
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            # Older versions of SQLite let a transaction begin on a file they can't write.
            connection.execute(f"PRAGMA user_version = {self._version}")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if _primary(error) == sqlite3.SQLITE_READONLY:
                connection.close()
                return False
            if _primary(error) != sqlite3.SQLITE_BUSY:
                raise
        connection.execute(f"PRAGMA busy_timeout = {self._busy_timeout}")
        self._keep(connection)
        self._file = _identity(self.path)
        self._mode = "mode=rw"
        return True

    def _keep(self, connection: sqlite3.Connection) -> None:
        self._local.connection = connection
        self._connections.append(connection)

    def _inspect(self, connection: sqlite3.Connection) -> int:
        """Return the version of the file's schema, 0 for an empty file.

        Raises:
            NotASessionFile: the file is another program's.
            SchemaTooNew: the file was written by a newer version of this program.
        """
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application != schema.APPLICATION_ID:
            empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
            if empty and version == 0 and application == 0:
                return 0
            raise NotASessionFile(f"{self.path} is another program's database. It was not changed.")
        if version > self._version:
            raise SchemaTooNew(self.path, version, self._version)
        return version

    def _build_alone(self, found: int) -> bool:
        """Create or migrate the file; return False if another program has it open."""
        lock = self._presence
        if lock is None:
            return False
        # Two programs that both kept the shared lock would wait for each other forever.
        lock.release()
        try:
            if not lock.take():
                # The pause is random, so that two waiting programs don't retry in step.
                time.sleep(os.urandom(1)[0] / 10_000)
                return False
            with contextlib.closing(self._connect("mode=rwc")) as connection:
                if self._inspect(connection) != found:
                    return True
                if not found:
                    self.path.chmod(0o600)
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.execute("BEGIN IMMEDIATE")
                    schema.create(connection)
                    connection.execute("COMMIT")
            if found:
                migrate(self.path, found, self._version, self._migrations)
            return True
        finally:
            self._share(lock)

    def _open_for_reading(self) -> None:
        if not is_there(self.path):
            raise StoreUnavailable(
                f"The session file {self.path} does not exist and can't be created here."
            )
        try:
            connection = self._connect("mode=ro")
            found = self._inspect(connection)
            self._mode = "mode=ro"
        except sqlite3.OperationalError as error:
            # WAL mode creates files beside the database, which isn't possible in a read-only
            # directory: read the database file alone.
            if _primary(error) not in _REFUSED:
                raise
            wal = self.path.with_name(self.path.name + "-wal")
            if is_there(wal) and wal.stat().st_size:
                raise StoreUnavailable(
                    f"The session file {self.path} was not closed properly and can't be read in a directory that "
                    "can't be written. Copy it, with the files beside it, to a writable directory."
                ) from error
            self._mode = "mode=ro&immutable=1"
            connection = self._connect(self._mode)
            found = self._inspect(connection)
        self._keep(connection)
        if found != self._version:
            raise StoreReadOnly(
                f"The session file {self.path} is from an older version and can't be converted: "
                "it is read-only."
            )
        self.refusal = StoreReadOnly(
            f"The session file {self.path} is read-only: nothing can be saved."
        )


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of the file at a path, None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _primary(error: sqlite3.Error) -> int:
    return error.sqlite_errorcode & 0xFF


def salvage(fetch: Callable[[IdsT], list[T]], ids: IdsT, lost: Callable[[int], None]) -> list[T]:
    """Return ``fetch(ids)``; if a page of the file is damaged, only the rows of readable ids.

    Calls ``lost`` with every id that can't be read.
    """
    try:
        return fetch(ids)
    except StoreDamaged:
        if len(ids) == 1:
            lost(ids[0])
            return []
    middle = len(ids) // 2
    halves = cast("tuple[IdsT, IdsT]", (ids[:middle], ids[middle:]))
    return salvage(fetch, halves[0], lost) + salvage(fetch, halves[1], lost)
