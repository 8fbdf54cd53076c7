"""Whatever is wrong with the file: one clear sentence, nothing overwritten, and reading where that is possible."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from scripts.faults.full_disk import NO_DISK, PREFIX
from scripts.faults.rows import ROWS
from tests.support.texts import answered, said, texts
from tests.support.thoroughness import NIGHTLY
from tui_agent.session import schema
from tui_agent.session.database import salvage
from tui_agent.session.entries import Entry, ToolResultEntry, ToolStatus
from tui_agent.session.errors import (
    EntryDamaged,
    NotASessionFile,
    SchemaTooNew,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from tui_agent.session.records import DraftText, Unsent
from tui_agent.session.schema import SCHEMA_VERSION
from tui_agent.session.session import Session
from tui_agent.session.store import Store

Reopen = Callable[..., Session]
T = TypeVar("T")
NOBODY = 65_534


def filled(path: Path, count: int = 40) -> str:
    """Make a file with one session of ``count`` messages and return the session's id."""
    with Store(path) as store:
        session = Session(store, store.create_session("/").id, estimate=lambda _entry: 1)
        session.append_many(
            [said(f"message {number} {'x' * 300}") for number in range(1, count + 1)]
        )
        return session.id


def open_session(store: Store, session_id: str) -> Session:
    return Session(store, session_id, estimate=lambda _entry: 1)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Be somebody whom file permissions apply to."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_dir() -> Iterator[Path]:
    """A directory anybody can reach, unlike pytest's own."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


def test_a_full_disk_loses_nothing_and_can_be_overcome(
    session: Session, store: Store, reopen: Reopen
) -> None:
    session.append_many([said("a"), answered("b")])
    pages = _pragma(store, "page_count")
    _pragma(store, f"max_page_count = {pages}")
    huge = said("x" * 200_000)
    attempts: list[Callable[[], object]] = [
        lambda: session.append(huge),
        lambda: session.append_many([huge, huge]),
        lambda: session.save_draft(DraftText("x" * 200_000)),
        lambda: store.put_blob(b"x" * 200_000),
    ]
    for attempt in attempts:
        with pytest.raises(StoreFull, match="no space on the disk"):
            attempt()
    assert texts(session.path()) == ["a", "b"] == texts(reopen(session).path())
    assert (session.leaf, session.info.entry_count, store.read_only) == (2, 2, None)
    _pragma(store, "max_page_count = 1000000")
    assert session.append(huge).id == 3


def _pragma(store: Store, statement: str) -> int:
    with store.reader() as connection:
        value: int = connection.execute(f"PRAGMA {statement}").fetchone()[0]
        return value


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_deleted_while_it_is_open_is_told_and_can_still_be_read(
    session: Session, store: Store, *, replaced: bool
) -> None:
    session.append(said("a"))
    store.path.unlink()
    if replaced:
        store.path.write_bytes(b"somebody else's")
    with pytest.raises(StoreReadOnly, match="was deleted or replaced while it was open"):
        session.append(said("b"))
    with pytest.raises(StoreReadOnly, match="was deleted or replaced while it was open"):
        store.rewrite()
    assert texts(session.path()) == ["a"]
    assert in_thread(lambda: texts(open_session(store, session.id).path())) == ["a"]
    assert session.read_only


def in_thread(work: Callable[[], T]) -> T:
    """Return what ``work`` returns in a new thread, which ends before this returns."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result(timeout=60)


def session_in_log(store: Store) -> Session:
    """Return a new session whose 40 entries are in the write-ahead log only."""
    session = open_session(store, store.create_session("/").id)
    session.append_many([said("in the log only") for _ in range(40)])
    return session


@pytest.mark.parametrize("refused_first", [False, True])
def test_a_backup_put_in_the_place_of_the_open_file_stays_whole(
    tmp_path: Path, *, refused_first: bool
) -> None:
    backup = tmp_path / "backup.db"
    restored = filled(backup, 400)
    path = tmp_path / "s.db"
    with Store(path) as store:
        session = session_in_log(store)
        path.rename(tmp_path / "moved.db")
        backup.rename(path)
        assert in_thread(lambda: len(open_session(store, session.id).path())) == 40
        if refused_first:
            with pytest.raises(StoreReadOnly, match="replaced while it was open"):
                store.create_session("/")
    with Store(path) as store:
        assert (store.damage(), len(open_session(store, restored).path())) == ("", 400)
    with Store(tmp_path / "moved.db") as store:
        assert (store.damage(), len(open_session(store, session.id).path())) == ("", 40)


def test_a_file_that_replaced_an_open_one_is_not_opened_before_that_is_closed(
    tmp_path: Path,
) -> None:
    backup = tmp_path / "backup.db"
    restored = filled(backup, 400)
    path = tmp_path / "s.db"
    with Store(path) as store:
        session_in_log(store)
        backup.rename(path)
        with pytest.raises(StoreBusy, match="other programs have the old file open"):
            Store(path, busy_timeout=50)
    for _ in range(2):
        with Store(path) as store, Store(path):
            assert (store.damage(), len(open_session(store, restored).path())) == ("", 400)


def test_the_last_of_several_programs_empties_the_log_of_a_replaced_file(tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    restored = filled(backup, 400)
    path = tmp_path / "s.db"
    with Store(path), Store(path) as store:
        session_in_log(store)
        backup.rename(path)
    with Store(path) as store:
        assert (store.damage(), len(open_session(store, restored).path())) == ("", 400)


def test_a_path_that_is_lost_while_the_file_is_open_is_a_store_error(tmp_path: Path) -> None:
    place = tmp_path / "place"
    with Store(place / "s.db") as store:
        place.rename(tmp_path / "elsewhere")
        place.touch()
        with pytest.raises(StoreReadOnly, match="deleted or replaced"):
            store.create_session("/")


def test_a_writer_that_waited_while_the_file_was_replaced_is_refused(store: Store) -> None:
    with ThreadPoolExecutor(max_workers=1) as pool:
        with store.writer():
            written = pool.submit(store.create_session, "/")
            assert not wait([written], timeout=0.1).done
            store.path.rename(store.path.with_name("moved.db"))
        with pytest.raises(StoreReadOnly, match="deleted or replaced"):
            written.result(timeout=60)


def test_a_closed_store_is_neither_read_nor_written(store: Store) -> None:
    store.close()
    store.close()
    uses: list[Callable[[], object]] = [
        store.sessions,
        store.rewrite,
        lambda: store.create_session("/"),
    ]
    for use in uses:
        with pytest.raises(StoreUnavailable, match="has been closed"):
            use()


def test_threads_that_ended_leave_no_open_connections(store: Store) -> None:
    def open_files() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    before = open_files()
    for _ in range(30):
        in_thread(store.sessions)
    assert open_files() < before + 10


def test_nothing_damaged_is_nothing_to_salvage() -> None:
    def fetch(_ids: Sequence[int]) -> list[int]:
        raise StoreDamaged("")

    lost: list[int] = []
    assert salvage(fetch, [], lost.append) == salvage(fetch, [1, 2, 3], lost.append) == []
    assert lost == [1, 2, 3]


@pytest.mark.parametrize("what", ["file", "directory", "both"])
def test_a_read_only_file_or_directory_can_be_read(public_dir: Path, what: str) -> None:
    path = public_dir / "s.db"
    session_id = filled(path)
    path.chmod(0o666 if what == "directory" else 0o444)
    public_dir.chmod(0o777 if what == "file" else 0o555)
    with without_privileges(), Store(path) as store:
        assert isinstance(store.read_only, StoreReadOnly)
        session = open_session(store, session_id)
        assert session.read_only
        assert len(session.path()) == 40
        assert len(session.store.search("message 7", session_id=session.id)) == 1
        assert session.recover() is None
        changes: list[Callable[[], object]] = [
            lambda: session.append(said("no")),
            lambda: session.save_draft(DraftText("no")),
            lambda: session.move(1),
            session.hold,
            lambda: store.create_session("/"),
            lambda: store.delete(session_id),
        ]
        for change in changes:
            with pytest.raises(StoreReadOnly, match="read-only"):
                change()
        assert session.leaf == 40


def test_what_only_the_log_holds_is_not_silently_left_out(public_dir: Path) -> None:
    path = public_dir / "s.db"
    with Store(path) as store:
        store.create_session("/")
        copies = {
            suffix: path.with_name(path.name + suffix).read_bytes() for suffix in ("", "-wal")
        }
    for suffix, content in copies.items():
        path.with_name(path.name + suffix).write_bytes(content)
    path.chmod(0o444)
    public_dir.chmod(0o555)
    with without_privileges(), pytest.raises(StoreUnavailable, match="not closed properly"):
        Store(path)


def test_a_path_that_can_not_be_a_file_is_refused_and_an_empty_file_is_a_new_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnavailable):
        Store(tmp_path / "file" / "s.db")
    with pytest.raises(StoreError):
        Store(tmp_path)
    with pytest.raises(StoreUnavailable, match="does not exist"):
        Store(tmp_path / "missing.db", read_only=True)
    assert not (tmp_path / "missing.db").exists()

    (tmp_path / "s.db").touch()
    with pytest.raises(StoreUnavailable, match="is empty"):
        Store(tmp_path / "s.db", read_only=True)
    with Store(tmp_path / "s.db") as store:
        assert store.sessions() == []


def test_a_locked_file_is_reported_and_reading_goes_on(tmp_path: Path) -> None:
    session_id = filled(tmp_path / "s.db")
    blocker = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with Store(tmp_path / "s.db", busy_timeout=20) as store:
        session = open_session(store, session_id)
        with pytest.raises(StoreBusy, match="locked"):
            session.append(said("later"))
        assert len(session.path()) == 40 == session.leaf
        blocker.execute("ROLLBACK")
        assert session.append(said("now")).id == 41
    blocker.close()


def test_a_newer_schema_is_refused_and_both_versions_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(SchemaTooNew, match=rf"version 99.* up to {SCHEMA_VERSION}\b"):
            Store(path, read_only=read_only)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["text", "binary", "database"])
def test_a_file_of_another_program_is_left_as_it_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "notes.db"
    if kind == "database":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE notes (text)")
        connection.close()
    else:
        path.write_bytes(b"my notes\n" * 500 if kind == "text" else bytes(range(256)) * 64)
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(NotASessionFile, match="was not changed") as caught:
            Store(path, read_only=read_only)
        assert str(path) in caught.value.message
        assert "\n" not in caught.value.message
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "body", ["", "{", "{}", "null", '{"parts": 3}', '{"parts": [], "unknown": 1}', "[1]", "\ufffd"]
)
def test_one_damaged_entry_costs_one_entry(tmp_path: Path, body: str) -> None:
    session_id = filled(tmp_path / "s.db")
    with Store(tmp_path / "s.db") as store:
        _execute(store, "UPDATE bodies SET body = ? WHERE key & 4294967295 = 7", body)
        session = open_session(store, session_id)
        assert session.reader.damaged == 0
        assert [entry.id for entry in session.path()] == [i for i in range(1, 41) if i != 7]
        assert session.reader.damaged == 1
        assert len(session.path_outline()) == 40
        with pytest.raises(EntryDamaged, match="#7"):
            session.entry(7)
        assert session.append(said("goes on")).parent_id == 40
        session.store.search("message", session_id=session.id)
        assert len(store.typed_in(None, 99)) == 40
        fork = open_session(store, store.fork(session_id, 10).id)
        assert len(fork.path()) == 9
        store.delete(session_id)
        assert store.purge() == 1


def test_lost_rows_are_counted_and_what_hung_on_them_is_kept(tmp_path: Path) -> None:
    session_id = filled(tmp_path / "s.db")
    with Store(tmp_path / "s.db") as store:
        _execute(store, "DELETE FROM entries WHERE id = 20")
        _execute(store, "DELETE FROM bodies WHERE key & 4294967295 = 30")
        session = open_session(store, session_id)
        assert [entry.id for entry in session.path()] == [
            i for i in range(1, 41) if i not in (20, 30)
        ]
        assert session.skeleton()[19].parent_id == 19
        assert session.reader.damaged == 3


def _execute(store: Store, statement: str, *values: object) -> None:
    with store.writer() as connection:
        connection.execute(statement, values)


def damage(path: Path, marker: bytes) -> None:
    """Overwrite the pages that hold ``marker``."""
    content = bytearray(path.read_bytes())
    at = content.find(marker)
    assert at > 0
    while at >= 0:
        page = at // 4096 * 4096
        content[page : page + 4096] = b"\xa5" * 4096
        at = content.find(marker, page + 4096)
    path.write_bytes(content)


def test_unreadable_pages_and_headers_hide_only_what_is_on_them_and_nothing_is_written_any_more(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    session_id = filled(path, 400)
    damage(path, b'"message 200 x')
    with Store(path) as store:
        session = open_session(store, session_id)
        readable = session.path()
        lost = {200} | (set(range(1, 401)) - {entry.id for entry in readable})
        assert 200 not in {entry.id for entry in readable}
        assert len(lost) < 40
        assert session.reader.damaged == len(lost)
        assert isinstance(store.read_only, StoreDamaged)
        before = path.read_bytes()
        changes: list[Callable[[Entry], object]] = [session.append, lambda _entry: session.move(1)]
        for change in changes:
            with pytest.raises(StoreDamaged, match="nothing more is written to it"):
                change(said("no"))
        assert session.leaf == 400
    assert path.read_bytes() == before

    path = tmp_path / "headers.db"
    session_id = filled(path, 400)
    damage(path, b"usermessage 300 x")
    with Store(path) as store:
        session = open_session(store, session_id)
        headers = session.skeleton()
        assert 350 < len(headers) < 400
        assert [entry.id for entry in session.path()] == [header.id for header in headers]
        assert session.reader.damaged >= 400 - len(headers)


def count_free_pages(path: Path) -> None:
    """Let the file say that it has five free pages, of which there are none."""
    content = bytearray(path.read_bytes())
    content[32:40] = bytes((0, 0, 0, 0, 0, 0, 0, 5))
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (count_free_pages, r"(?i).*freelist.* 5\b.*"),
        (lambda path: damage(path, b'"message 200 x'), r"The session file .* is damaged.*"),
    ],
    ids=["found", "unreadable"],
)
def test_what_is_damaged_is_told_in_one_line(
    tmp_path: Path, harm: Callable[[Path], None], told: str
) -> None:
    path = tmp_path / "s.db"
    filled(path, 400)
    with Store(path) as store:
        assert store.damage() == ""
    harm(path)
    with Store(path) as store:
        line = store.damage()
    assert re.fullmatch(told, line)
    assert line == " ".join(line.split())


OLD = schema.SCHEMA_VERSION


NEWER = {
    OLD: (
        "ALTER TABLE sessions ADD COLUMN notes TEXT NOT NULL DEFAULT ''",
        "UPDATE sessions SET notes = 'migrated'",
    ),
    OLD + 1: ("UPDATE sessions SET title = upper(title)",),
}


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    with Store(path) as store:
        session = Session(
            store, store.create_session("/", title="old").id, estimate=lambda _entry: 1
        )
        session.append_many([said("a"), answered("b")])
        session.move(1)
        session.label(2, "green")
        store.put_blob(b"blob")
    return path


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version


def test_an_older_file_is_migrated_step_by_step_and_kept(old_file: Path) -> None:
    with Store(old_file, migrations=NEWER) as store:
        (info,) = store.sessions()
        assert info.title == "OLD"
        session = Session(store, info.id, estimate=lambda _entry: 1)
        assert texts(session.skeleton()) == ["a", "b"]
        assert (session.leaf, session.labels(), len(session.moves())) == (1, {2: "green"}, 1)
        assert [hit.entry_id for hit in session.store.search("b", session_id=session.id)] == [2]
        with store.reader() as connection:
            assert connection.execute("SELECT notes FROM sessions").fetchone() == ("migrated",)
        assert session.append(said("c")).id == 3
    assert version_of(old_file) == OLD + 2
    backup = old_file.with_name(f"s.db.v{OLD}.bak")
    assert version_of(backup) == OLD
    with Store(backup) as kept:
        assert kept.sessions()[0].title == "old"
    with Store(old_file, migrations=NEWER):
        assert not old_file.with_name(f"s.db.v{OLD}.bak2").exists()


FAIL = ("DELETE FROM labels", "SELECT no_such_column FROM sessions")
LOSE = ("DELETE FROM bodies",)
ORPHAN = ("PRAGMA foreign_keys = OFF", "UPDATE leaf_moves SET session = 77")


@pytest.mark.parametrize(
    ("step", "error"), [(FAIL, StoreError), (LOSE, StoreDamaged), (ORPHAN, StoreDamaged)]
)
def test_a_migration_that_fails_or_loses_something_changes_nothing(
    old_file: Path, step: tuple[str, ...], error: type[StoreError]
) -> None:
    before = old_file.read_bytes()
    with pytest.raises(error):
        Store(old_file, migrations={OLD: step})
    assert old_file.read_bytes() == before
    assert {path.name for path in old_file.parent.iterdir()} <= {"s.db", "s.db.lock", "s.db.locks"}
    with Store(old_file) as store:
        assert store.sessions()[0].entry_count == 2


def test_what_was_not_checkpointed_yet_is_migrated_too(old_file: Path, tmp_path: Path) -> None:
    with Store(old_file) as store:
        Session(store, store.sessions()[0].id, estimate=lambda _entry: 1).append(
            answered("in the log only")
        )
        crashed = tmp_path / "crashed.db"
        for suffix in ("", "-wal"):
            crashed.with_name(crashed.name + suffix).write_bytes(
                old_file.with_name("s.db" + suffix).read_bytes()
            )
    with Store(crashed, migrations=NEWER) as store:
        assert store.sessions()[0].entry_count == 3


def test_a_file_is_migrated_while_another_sqlite_client_has_it_open(old_file: Path) -> None:
    with closing(sqlite3.connect(old_file)) as other:
        with Store(old_file) as store:
            store.rename(store.sessions()[0].id, "in the log only")
            assert other.execute("SELECT title FROM sessions").fetchone() == ("in the log only",)
        with Store(old_file, migrations=NEWER) as store:
            (info,) = store.sessions()
            assert (info.title, info.entry_count, store.damage()) == ("IN THE LOG ONLY", 2, "")
        assert other.execute("SELECT notes FROM sessions").fetchone() == ("migrated",)
    with Store(old_file, migrations=NEWER) as store:
        assert store.sessions()[0].title == "IN THE LOG ONLY"
    assert not old_file.with_name(f"s.db.v{OLD}.bak2").exists()


def test_a_file_that_can_not_be_backed_up_is_refused(old_file: Path) -> None:
    old_file.with_name("s.db.migrating").mkdir()
    with pytest.raises(StoreUnavailable, match=r"can't be opened: Is a directory\."):
        Store(old_file, migrations=NEWER)
    assert version_of(old_file) == OLD


def test_a_migration_that_loses_costs_changes_nothing(old_file: Path) -> None:
    with Store(old_file) as store, store.writer() as connection:
        connection.execute("INSERT INTO side_costs VALUES (1, 1, 'title', 0.5)")
    with pytest.raises(StoreDamaged, match="without loss"):
        Store(old_file, migrations={OLD: ("DELETE FROM side_costs",)})


def test_a_file_in_use_or_read_only_is_not_migrated(old_file: Path) -> None:
    with Store(old_file) as store:
        with pytest.raises(StoreBusy, match="Close them first"):
            Store(old_file, migrations=NEWER, busy_timeout=50)
        Session(store, store.sessions()[0].id, estimate=lambda _entry: 1).append(
            said("still works")
        )
    assert version_of(old_file) == OLD

    with pytest.raises(StoreReadOnly, match="can't be converted"):
        Store(old_file, migrations=NEWER, read_only=True)


def test_several_programs_may_make_the_file_at_once(tmp_path: Path) -> None:
    stores: list[Store] = []
    gate = threading.Barrier(6)

    def open_store() -> None:
        gate.wait(timeout=60)
        stores.append(Store(tmp_path / "new.db", busy_timeout=10_000))

    threads = [threading.Thread(target=open_store) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(stores) == 6
    for store in stores:
        store.create_session("/", title="kept")
    assert len(stores[0].sessions()) == 6
    for store in stores:
        store.close()


def test_a_file_of_the_first_version_has_its_subagents_told_from_forks_and_loses_digests(
    tmp_path: Path,
) -> None:
    path, now = tmp_path / "s.db", [1_000]
    quoting = ToolResultEntry(
        call_id="c", tool="read", status=ToolStatus.COMPLETED, output='"arguments_digest": "é"'
    )
    with Store(path, clock=lambda: now[0]) as store:
        parent = Session(store, store.create_session("/").id, estimate=lambda _entry: 1)
        parent.append_many([said("a"), quoting])
        before = parent.path()
        now[0] += 10
        fork = store.fork(parent.id, 2)
        store.rename(fork.id, "explore: a fork")
        child = store.create_session("/", title="explore: the code", parent=(parent.id, 2))
        now[0] += 10
        Session(store, child.id, estimate=lambda _entry: 1).append(said("the code"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE bodies SET body = json_insert(body, '$.arguments_digest', '0123') WHERE body LIKE '%digest%'"
        )
        connection.execute(
            "INSERT INTO bodies (key, body) VALUES (1, '{\"arguments_digest\" broken')"
        )
        connection.execute("DROP INDEX sessions_by_key")
        for column in ("key", "outcome", "agent", "side_cost"):
            connection.execute(f"ALTER TABLE sessions DROP COLUMN {column}")
        connection.execute("DROP TABLE unsent")
        connection.execute("DROP TABLE side_costs")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    with Store(path) as store:
        assert {info.id for info in store.sessions()} == {parent.id, fork.id}
        assert (store.session(child.id).agent, store.session(child.id).side_cost) == ("explore", 0)
        assert Session(store, parent.id, estimate=lambda _entry: 1).path() == before
        store.keep_unsent("/", Unsent("words"))
        assert store.take_unsent("/").text == "words", "the table for it was made"


ROOT = Path(__file__).parents[2]
KILLED = ("compaction", "move with summary", "restore", "import", "migration")
"""Rows killed by day; the others write once, and a run, whose writes are those of the others: see `kill_rounds.py`."""
FULL = ("compaction", "export")
NAMES = tuple(row.name for row in ROWS)


def once(names: Sequence[str]) -> dict[str, list[str]]:
    """Do each row once; return what was wrong by name."""
    command = [sys.executable, "-m", "scripts.faults", *names, "--times", "1", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    outcomes = {outcome["name"]: outcome for outcome in map(json.loads, done.stdout.splitlines())}
    assert set(outcomes) == set(names), done.stderr
    wrong = {name: outcome["wrong"] for name, outcome in outcomes.items() if outcome["wrong"]}
    assert all(outcome["kills"] == 1 for name, outcome in outcomes.items() if name not in wrong)
    return wrong


def test_work_killed_at_a_random_moment_leaves_nothing_broken() -> None:
    assert once(NAMES if NIGHTLY else KILLED) == {}


def test_work_on_a_disk_that_is_full_leaves_nothing_broken() -> None:
    wrong = once([PREFIX + name for name in (NAMES if NIGHTLY else FULL)])
    if any(NO_DISK in fault for faults in wrong.values() for fault in faults):
        pytest.skip(NO_DISK)
    assert wrong == {}


ROUNDS = int(os.environ.get("TUI_AGENT_TEST_KILLS", "500" if NIGHTLY else "50"))
SEED = 20_250_607


def test_a_killed_writer_loses_nothing_it_had_committed(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.session.kill_rounds",
        str(tmp_path / "s.db"),
        str(ROUNDS),
        str(SEED),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["wrong"] == []
    assert outcome["rounds"] == ROUNDS
    assert outcome["reports"] > 5 * ROUNDS
    assert outcome["drafts"] > ROUNDS // 20
