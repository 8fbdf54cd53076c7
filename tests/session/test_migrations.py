"""An older file becomes a current one completely, or stays what it was."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.texts import answered, said, texts
from tui_agent.session import schema
from tui_agent.session.entries import ToolResultEntry, ToolStatus
from tui_agent.session.errors import StoreBusy, StoreDamaged, StoreError, StoreReadOnly
from tui_agent.session.records import Unsent
from tui_agent.session.session import Session
from tui_agent.session.store import Store

OLD = schema.SCHEMA_VERSION


NEWER = {
    OLD: ("ALTER TABLE sessions ADD COLUMN notes TEXT NOT NULL DEFAULT ''", "UPDATE sessions SET notes = 'migrated'"),
    OLD + 1: ("UPDATE sessions SET title = upper(title)",),
}


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    with Store(path) as store:
        session = Session(store, store.create_session("/", title="old").id, estimate=lambda _entry: 1)
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


@pytest.mark.parametrize(("step", "error"), [(FAIL, StoreError), (LOSE, StoreDamaged), (ORPHAN, StoreDamaged)])
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
        Session(store, store.sessions()[0].id, estimate=lambda _entry: 1).append(answered("in the log only"))
        crashed = tmp_path / "crashed.db"
        for suffix in ("", "-wal"):
            crashed.with_name(crashed.name + suffix).write_bytes(old_file.with_name("s.db" + suffix).read_bytes())
    with Store(crashed, migrations=NEWER) as store:
        assert store.sessions()[0].entry_count == 3


def test_a_file_in_use_or_read_only_is_not_migrated(old_file: Path) -> None:
    with Store(old_file) as store:
        with pytest.raises(StoreBusy, match="close them first"):
            Store(old_file, migrations=NEWER, busy_timeout=50)
        Session(store, store.sessions()[0].id, estimate=lambda _entry: 1).append(said("still works"))
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


def test_a_file_of_the_first_version_has_its_subagents_told_from_forks_and_loses_digests(tmp_path: Path) -> None:
    path, now = tmp_path / "s.db", [1_000]
    quoting = ToolResultEntry(call_id="c", tool="read", status=ToolStatus.COMPLETED, output='"arguments_digest": "é"')
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
        connection.execute("INSERT INTO bodies (key, body) VALUES (1, '{\"arguments_digest\" broken')")
        connection.execute("DROP INDEX sessions_by_key")
        for column in ("key", "outcome", "agent", "side_cost"):
            connection.execute(f"ALTER TABLE sessions DROP COLUMN {column}")
        connection.execute("DROP TABLE unsent")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    with Store(path) as store:
        assert {info.id for info in store.sessions()} == {parent.id, fork.id}
        assert (store.session(child.id).agent, store.session(child.id).side_cost) == ("explore", 0)
        assert Session(store, parent.id, estimate=lambda _entry: 1).path() == before
        store.keep_unsent("/", Unsent("words"))
        assert store.take_unsent("/").text == "words", "the table for it was made"
