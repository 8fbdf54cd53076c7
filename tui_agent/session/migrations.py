"""Bringing an older session file to this program's schema, without ever working on the only copy.

The file is backed up (and the backup is kept), the backup is copied, the copy is migrated and checked, and one rename
puts it in the file's place. Whatever happens before the rename leaves the old file untouched.
"""

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from tui_agent.session import unsent
from tui_agent.session.errors import StoreDamaged

__all__ = ["MIGRATIONS", "Migration", "migrate"]

Migration = Callable[[sqlite3.Connection], None]
"""Changes the schema by one version, inside the caller's transaction."""


def _distinguish_subagents(connection: sqlite3.Connection) -> None:
    """Note which sessions are subagents' and what calls cost that belong to no entry.

    A fork's entries are older than it; a subagent's session has only entries of its own.
    """
    connection.execute("ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT ''")
    connection.execute("ALTER TABLE sessions ADD COLUMN side_cost REAL NOT NULL DEFAULT 0")
    connection.execute(
        "UPDATE sessions SET agent = substr(title, 1, instr(title, ': ') - 1) WHERE parent_entry IS NOT NULL "
        "AND instr(title, ': ') > 1 AND NOT EXISTS (SELECT 1 FROM entries AS e "
        "WHERE e.session = sessions.number AND e.created_at < sessions.created_at)"
    )


def _keep_unsent(connection: sqlite3.Connection) -> None:
    connection.execute(unsent.TABLE)


def _forget_digests(connection: sqlite3.Connection) -> None:
    """Take the digest of a call's arguments, which nothing reads, out of tool results.

    A damaged body stays as it is.
    """
    connection.execute(
        "UPDATE bodies SET body = json_remove(body, '$.arguments_digest') "
        "WHERE instr(body, '\"arguments_digest\"') > 0 AND json_valid(body)"
    )


def _allow_typed(_connection: sqlite3.Connection) -> None:
    """Change nothing: from here on a message can hold what was typed, which older programs would call damaged."""


def _allow_effort(_connection: sqlite3.Connection) -> None:
    """Change nothing: from here on a path can say how much its model thinks, an entry older programs can't read."""


def _allow_scripts_and_windows(_connection: sqlite3.Connection) -> None:
    """Change nothing: from here on entries have fields (scripts, windows from notes, files that were put back …).

    A program that does not know one calls the entry damaged.
    """


def _keep_outcomes(connection: sqlite3.Connection) -> None:
    """Add the key and the outcome of runs without a screen. From here on a path can hold a check's outcome."""
    connection.execute("ALTER TABLE sessions ADD COLUMN key TEXT NOT NULL DEFAULT ''")
    connection.execute("ALTER TABLE sessions ADD COLUMN outcome TEXT NOT NULL DEFAULT ''")
    connection.execute("CREATE UNIQUE INDEX sessions_by_key ON sessions (key) WHERE key != '' AND deleted_at IS NULL")


def _allow_branches_of_subagents(_connection: sqlite3.Connection) -> None:
    """Change nothing: from here on subagents work on branches of the session, not in sessions of their own."""


MIGRATIONS: Mapping[int, Migration] = {
    1: _distinguish_subagents,
    2: _keep_unsent,
    3: _forget_digests,
    4: _allow_typed,
    5: _allow_effort,
    6: _allow_scripts_and_windows,
    7: _keep_outcomes,
    8: _allow_branches_of_subagents,
}
"""What to do from each older version to the next. Version 1 is the first one."""

_COUNTED = ("sessions", "entries", "bodies", "labels", "leaf_moves", "drafts", "blobs", "unsent")
"""Tables that must have as many rows after a migration as before."""


def migrate(path: Path, found: int, target: int, migrations: Mapping[int, Migration]) -> Path:
    """Migrate the file at ``path`` from schema ``found`` to ``target`` and return the backup's path.

    The caller is alone with the file and has no connection to it.

    Raises:
        StoreDamaged: a check failed; the file is as it was.
        sqlite3.Error: a migration failed; the file is as it was.
    """
    suffix = f".v{found}.bak"
    backup, number = path.with_name(path.name + suffix), 1
    while backup.exists():
        number += 1
        backup = path.with_name(f"{path.name}{suffix}{number}")
    copy = path.with_name(path.name + ".migrating")
    copy.unlink(missing_ok=True)
    try:
        # Killed in between, half a backup would pass for a whole one.
        _copy(path, copy)
        copy.replace(backup)
        _copy(backup, copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            for version in range(found, target):
                migrations[version](connection)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        _check(backup, copy, path)
        _sync(copy)
    except BaseException:
        for leftover in (copy, backup):
            leftover.unlink(missing_ok=True)
        raise
    copy.replace(path)
    _sync(path.parent)
    return backup


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
        # One file without a journal beside it, so that a rename moves all of it.
        new.execute("PRAGMA journal_mode = DELETE")
    target.chmod(0o600)
    _sync(target)


def _check(backup: Path, copy: Path, path: Path) -> None:
    with closing(sqlite3.connect(backup)) as old, closing(sqlite3.connect(copy)) as new:
        trouble = new.execute("PRAGMA quick_check").fetchone()[0] != "ok"
        trouble = trouble or new.execute("PRAGMA foreign_key_check").fetchone() is not None
        before, after = _counts(old), _counts(new)
        if trouble or any(after.get(table) != count for table, count in before.items()):
            raise StoreDamaged(
                f"The session file {path} could not be brought to this version without loss: it is left as it was."
            )


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
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
