"""Opens, creates and migrates the SQLite file of all sessions. Each thread has a connection.

The file is in WAL mode with ``synchronous=NORMAL``, so a committed transaction survives a crash of
the program. A power failure may lose the last transactions, but never corrupts the file.

Before an older file is migrated it is backed up, and the backup is kept. The migration and its
checks run in one transaction, so that nothing changes if anything fails. Other SQLite clients may
have the file open during the migration.

While a program has the store open for writing, it holds a lock on the file with the suffix
``.lock`` next to the session file. The lock file contains the session file's inode number. Once a
program finds the session file damaged, deleted or replaced, it writes nothing more to it
(`Database.refusal`).
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
"""SQL statements that change the schema by one version. They run inside the caller's transaction.
"""

MIGRATIONS: Mapping[int, Migration] = {
    1: (
        # Adds columns for a subagent's name and the cost of model calls that have no entry. Only
        # the session of a fork contains entries that are older than the session itself. A
        # subagent's session contains none.
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
    4: (),  # messages can have the command line that the user typed
    5: (),  # new kind: effort changes
    6: (),  # new fields, such as for scripts and restored files
    7: (
        # Adds a key and an outcome for runs without a screen. Entries may have a new kind for
        # checks.
        "ALTER TABLE sessions ADD COLUMN key TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE sessions ADD COLUMN outcome TEXT NOT NULL DEFAULT ''",
        "CREATE UNIQUE INDEX sessions_by_key ON sessions (key) WHERE key != '' AND deleted_at IS NULL",
    ),
    8: (),  # subagents work on branches of the session, not in sessions of their own
    9: (schema.SIDE_COSTS_TABLE,),  # costs of calls without an entry, with time and purpose
}
"""The migration from each older schema version to the following version, by the older version's
number."""

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
"""Tables whose number of rows a migration must not change. Some of them don't exist in older files.
"""

T = TypeVar("T")
IdsT = TypeVar("IdsT", bound=Sequence[int])

_JOURNAL_BYTES = 16 * 1024 * 1024
"""Size, in bytes, to which the write-ahead log is truncated after a larger transaction, such as a
fork of a long session."""

_CACHED_KIB = 512
"""Size of the page cache of each thread's connection, in KiB. It is small, because the operating
system also caches the file."""

_MINIMUM_SQLITE = (3, 37, 0)
"""Oldest version of SQLite that can be used, which is the first with STRICT tables."""

_REFUSED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""SQLite's error codes for a file that can't be opened for writing."""


def migrate(path: Path, found: int, target: int, migrations: Mapping[int, Migration]) -> Path:
    """Migrate the file at ``path`` from schema version ``found`` to ``target``.

    Returns the path of the backup.

    Raises:
        StoreDamaged: the migrated tables failed their check; the file is unchanged.
        sqlite3.Error: a statement failed; the file is unchanged.
        OSError: the backup can't be written; the file is unchanged.
    """
    backup = _free_backup_name(path, found)
    try:
        _back_up(path, backup)
        # If a statement fails, closing the connection rolls back the transaction.
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
    # The backup gets its final name only once it is complete, because the program may be killed.
    unfinished = path.with_name(path.name + ".migrating")
    unfinished.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(unfinished)) as new:
            old.backup(new)
            # Otherwise a part of the database could be in a journal beside the backup, which the
            # renaming below would not move.
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
        path: The file. If it is missing, it is created with its directory, unless ``read_only``.
        busy_timeout: Milliseconds to wait for another program that is writing.
        read_only: Open for reading even if the file can be written.
        migrations: The migration from each older schema version to the next.

    Raises:
        StoreError: the file can't be opened. If it contains sessions, it was not changed.
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
        """The error that any write raises; None if the file can be written."""
        self._write_lock = threading.RLock()
        self._opener: sqlite3.Connection | None = None
        """The connection that opened the file; None before that and after `close`."""
        self._connections: dict[threading.Thread, sqlite3.Connection] = {}
        self._presence: FileLock | None = None
        self._file: tuple[int, int] | None = None
        try:
            with self._translated():
                self._open(read_only=read_only)
        except OSError as error:
            self.close()
            raise StoreUnavailable(
                f"The session file {self.path} can't be opened: {error.strerror}."
            ) from error
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Return the calling thread's connection, to read from it in a ``with`` block.

        Raises:
            StoreError: the file can't be read, or SQLite reported an error in the block.
        """
        with self._translated():
            yield self._connection()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction for a ``with`` block.

        It is committed at the end of the block, and rolled back if the block raises.

        Raises:
            StoreError: the file can't be written, or SQLite reported an error; nothing was stored.
        """
        with self._write_lock, self._translated():
            self._check_writable()
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # After some errors, such as a full disk, SQLite has already rolled back the
                # transaction.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def rewrite(self) -> None:
        """Rewrite the session file, so that its free pages and its journal contain no deleted data.

        Raises StoreBusy if another program is reading or writing the file, or another StoreError if
        it can't be written or SQLite reports an error.
        """
        with self._write_lock, self._translated():
            self._check_writable()
            connection = self._connection()
            connection.execute("VACUUM")
            busy, *_pages = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreBusy(f"Another program is using the session file {self.path}.")

    def close(self) -> None:
        """Close all connections and unlock the file. Idempotent.

        Every later read or write raises StoreError.
        """
        for connection in list(self._connections.values()):
            if connection is not self._opener:
                connection.close()
        self._connections.clear()
        if self._opener is not None:
            if self._is_replaced():
                self._empty_log(self._opener)
            self._opener.close()
            self._opener = None
        if self._presence is not None:
            self._presence.close()
            self._presence = None

    # -- the lock file -------------------------------------------------------------------------------

    def _share(self, lock: FileLock) -> None:
        if not lock.take(shared=True, timeout=self._busy_timeout / 1000):
            raise StoreBusy(
                f"Another program is converting the session file {self.path}. Try again in a moment."
            )

    @contextlib.contextmanager
    def _alone(self, lock: FileLock) -> Iterator[bool]:
        """Try to make the shared lock exclusive for a ``with`` block; yield True if that succeeded.

        If other programs share the lock, this program doesn't hold it in the block, because two
        programs that kept their shared locks while trying would wait for each other forever. After
        the block, this program holds the shared lock again.
        """
        lock.release()
        try:
            is_alone = lock.take()
            if not is_alone:
                # The pause is random, so that two waiting programs don't retry at the same moments.
                time.sleep(os.urandom(1)[0] / 10_000)
            yield is_alone
        finally:
            self._share(lock)

    def _require_same_file(self, lock: FileLock) -> None:
        """Refuse the file at the path if it replaced a file that other programs still have open.

        The write-ahead log of the replaced file is still there, and SQLite would apply it to the
        new file.

        Raises:
            StoreBusy: other programs still had the replaced file open after the timeout.
        """
        found = _identity(self.path)
        if found is None:
            return
        inode = str(found[1])
        deadline = time.monotonic() + self._busy_timeout / 1000
        while lock.read() not in {"", inode}:
            with self._alone(lock) as is_alone:
                if is_alone:
                    lock.write(inode)
                    return
            if time.monotonic() > deadline:
                raise StoreBusy(
                    f"The session file {self.path} was replaced, but other programs have the old "
                    "file open. Close them first."
                )

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
        """Return the calling thread's connection.

        After the file has been deleted or replaced, it can't be opened by its path. A thread
        without a connection then shares the connection that opened the file; SQLite allows this.
        """
        if self._opener is None:
            raise StoreUnavailable(f"The session file {self.path} has been closed.")
        connection = self._connections.get(threading.current_thread())
        if connection is None and self._is_replaced():
            return self._opener
        if connection is None:
            connection = self._connect(self._mode)
            self._close_unused()
            self._connections[threading.current_thread()] = connection
        return connection

    def _close_unused(self) -> None:
        """Close the connections of ended threads, except the connection that opened the file."""
        for thread, connection in list(self._connections.items()):
            if not thread.is_alive() and connection is not self._opener:
                connection.close()
                self._connections.pop(thread, None)

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?{mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,  # Other threads may close or share it (`_connection`).
        )
        connection.execute(f"PRAGMA busy_timeout = {self._busy_timeout}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
        connection.execute(f"PRAGMA cache_size = -{_CACHED_KIB}")
        return connection

    # -- a file that was deleted or replaced ---------------------------------------------------------

    def _is_replaced(self) -> bool:
        """Return True if the file that this object opened is no longer at its path."""
        return self._file is not None and _identity(self.path) != self._file

    def _check_writable(self) -> None:
        """Raise StoreError if nothing can be written now. The caller must hold the write lock."""
        if self.refusal is None and self._opener is not None and self._is_replaced():
            self.refusal = StoreReadOnly(
                f"The session file {self.path} was deleted or replaced while it was open, so nothing can be saved "
                "any more. Use /export to write this session to a file, then start the program again."
            )
            self._empty_log(self._opener)
        if self.refusal is not None:
            raise self.refusal

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        """Write a replaced file's write-ahead log into that file, which may have been renamed.

        Otherwise, SQLite would apply the log to the file that is now at the path. Does nothing if
        another program has the store open, because it may use the log for the new file.
        """
        if self._presence is None:
            return
        with (
            contextlib.suppress(sqlite3.Error, StoreBusy),
            self._alone(self._presence) as is_alone,
        ):
            if is_alone:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # -- opening -----------------------------------------------------------------------------------

    def _open(self, *, read_only: bool) -> None:
        if not read_only:
            with contextlib.suppress(OSError):
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._presence = FileLock(self.path.with_name(self.path.name + ".lock"))
        connection = None
        if self._presence is not None:
            # Every program that may write the file shares this lock, and a program that creates or
            # migrates the file takes it exclusively.
            self._share(self._presence)
            self._require_same_file(self._presence)
            connection = self._open_for_writing(self._presence)
        if connection is None:
            connection = self._open_for_reading()
        self._opener = connection
        self._connections[threading.current_thread()] = connection
        self._file = _identity(self.path)
        if self._presence is not None and self._file is not None:
            inode = str(self._file[1])
            if self._presence.read() != inode:  # a new file
                self._presence.write(inode)

    def _connect_and_inspect(self, mode: str) -> tuple[sqlite3.Connection, int]:
        """Return a new connection, and the version of the file's schema (see `_inspect`)."""
        connection = self._connect(mode)
        try:
            return connection, self._inspect(connection)
        except BaseException:
            connection.close()
            raise

    def _inspect(self, connection: sqlite3.Connection) -> int:
        """Return the version of the file's schema, 0 for an empty file.

        Raises:
            NotASessionFile: the file belongs to another program.
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

    # -- opening for writing -----------------------------------------------------------------------

    def _open_for_writing(self, lock: FileLock) -> sqlite3.Connection | None:
        """Open the file, creating or migrating it if necessary; return None if it can only be read.

        The caller holds ``lock`` as a shared lock.
        """
        deadline = time.monotonic() + self._busy_timeout / 1000
        while True:
            try:
                connection, found = self._connect_and_inspect("mode=rwc")
            except sqlite3.OperationalError as error:
                if _primary(error) in _REFUSED:
                    return None
                raise
            if found == self._version:
                break
            connection.close()
            # Inspect the file again, because another program that has it open may have created the
            # tables in the meantime.
            if not self._build_if_alone(lock) and time.monotonic() > deadline:
                raise StoreBusy(
                    f"The session file {self.path} must be converted, but other programs have it open. "
                    "Close them first."
                )
        if not self._can_write(connection):
            connection.close()
            return None
        self._mode = "mode=rw"
        return connection

    def _build_if_alone(self, lock: FileLock) -> bool:
        """Create or migrate the file; return False if another program has it open."""
        with self._alone(lock) as is_alone:
            if is_alone:
                self._build()
        return is_alone

    def _build(self) -> None:
        """Create or migrate the file, unless another program has just done it."""
        connection, found = self._connect_and_inspect("mode=rwc")
        with contextlib.closing(connection):
            if found == 0:
                self.path.chmod(0o600)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                schema.create(connection)
                connection.execute("COMMIT")
        if 0 < found < self._version:
            migrate(self.path, found, self._version, self._migrations)

    def _can_write(self, connection: sqlite3.Connection) -> bool:
        """Switch the file to WAL mode and return True if it can be written."""
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            # Older versions of SQLite let a transaction begin on a file they can't write, so try to
            # write.
            connection.execute(f"PRAGMA user_version = {self._version}")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if _primary(error) == sqlite3.SQLITE_READONLY:
                return False
            if _primary(error) != sqlite3.SQLITE_BUSY:
                raise
        connection.execute(f"PRAGMA busy_timeout = {self._busy_timeout}")
        return True

    # -- opening for reading -----------------------------------------------------------------------

    def _open_for_reading(self) -> sqlite3.Connection:
        if not is_there(self.path):
            raise StoreUnavailable(
                f"The session file {self.path} does not exist and can't be created here."
            )
        connection, found = self._connect_for_reading()
        if found != self._version:
            connection.close()
        if found == 0:
            raise StoreUnavailable(f"The session file {self.path} is empty.")
        if found != self._version:
            raise StoreReadOnly(
                f"The session file {self.path} is from an older version of tui-agent and can't be "
                "converted, because the file or its directory is read-only. Make both writable."
            )
        self.refusal = StoreReadOnly(
            f"The session file {self.path} is read-only, so nothing can be saved."
        )
        return connection

    def _connect_for_reading(self) -> tuple[sqlite3.Connection, int]:
        """Return a connection for reading and the version of the file's schema.

        Also sets the SQLite mode with which later connections are opened.
        """
        self._mode = "mode=ro"
        try:
            return self._connect_and_inspect(self._mode)
        except sqlite3.OperationalError as error:
            if _primary(error) not in _REFUSED:
                raise
            # WAL mode creates files beside the database, which isn't possible in a read-only
            # directory: read the database file alone.
            wal = self.path.with_name(self.path.name + "-wal")
            if is_there(wal) and wal.stat().st_size:
                raise StoreUnavailable(
                    f"The session file {self.path} was not closed properly and can't be read, because "
                    "its directory can't be written. Copy it, with the files beside it, to a writable "
                    "directory."
                ) from error
        self._mode = "mode=ro&immutable=1"
        return self._connect_and_inspect(self._mode)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode numbers of the file at a path; None if it can't be accessed."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _primary(error: sqlite3.Error) -> int:
    return error.sqlite_errorcode & 0xFF


def salvage(fetch: Callable[[IdsT], list[T]], ids: IdsT, lost: Callable[[int], None]) -> list[T]:
    """Return the rows of ``fetch(ids)``, or only the readable rows if the file is damaged.

    Calls ``lost`` with the id of every row that can't be read.
    """
    try:
        return fetch(ids)
    except StoreDamaged:
        if len(ids) <= 1:
            for lost_id in ids:
                lost(lost_id)
            return []
    middle = len(ids) // 2
    halves = cast("tuple[IdsT, IdsT]", (ids[:middle], ids[middle:]))
    return salvage(fetch, halves[0], lost) + salvage(fetch, halves[1], lost)
