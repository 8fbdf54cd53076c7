"""Sessions as a whole: listing, naming, forking, deleting; blobs and the prompt history."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import count, cycle
from pathlib import Path
from sqlite3 import Connection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.texts import answered, said, texts
from tui_agent.session import forking
from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CheckpointEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    FileChange,
    PruneEntry,
    ShellEntry,
    SystemEntry,
    TextPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.errors import (
    AmbiguousSession,
    EntryNotFound,
    SessionHeld,
    SessionNotFound,
    StoreError,
    StoreFull,
)
from tui_agent.session.records import DraftText, Unsent
from tui_agent.session.search import match_expression
from tui_agent.session.session import Session
from tui_agent.session.store import RETENTION_MS, Store

NewSession = Callable[..., Session]
HOUR = 3_600_000


@pytest.fixture
def new(store: Store) -> NewSession:
    def make(*messages: str, cwd: str = "/project") -> Session:
        session = Session(store, store.create_session(cwd).id, estimate=lambda _entry: 1)
        session.append_many([said(message) for message in messages])
        return session

    return make


def test_sessions_are_listed_by_last_use_and_filtered_by_directory_and_text(
    store: Store, new: NewSession
) -> None:
    assert store.path.stat().st_mode & 0o077 == 0
    first, second = new("one"), new("two")
    assert first.id < second.id
    assert first.id[14] == "7", "ids are UUIDs that ascend with time"
    assert [info.id for info in store.sessions()] == [second.id, first.id]
    first.append(said("again"))
    assert [info.first_message for info in store.sessions()] == ["one", "two"]
    assert [info.id for info in store.sessions(limit=1, offset=1)] == [second.id]

    shop, other = new("fix the login", cwd="/src/shop"), new("write docs", cwd="/src/100%_docs")
    other.append(answered("The login page is described in chapter two"))
    store.rename(shop.id, "Redirects")
    listed = {
        query: [info.id for info in store.sessions(query=query)]
        for query in ("LOGIN", "redir", "chapt", "100%_")
    }
    assert listed == {
        "LOGIN": [other.id, shop.id],
        "redir": [shop.id],
        "chapt": [other.id],
        "100%_": [other.id],
    }
    assert [info.id for info in store.sessions(cwd="/src/shop", query="login")] == [shop.id]
    assert store.sessions(query="0%_nothing") == []


def test_a_session_is_found_by_either_end_of_its_id(store: Store) -> None:
    for name, title in (("aaaa-1111", "tides"), ("aaaa-2222", ""), ("bbbb", "")):
        made = store.create_session("/", title=title)
        with store.writer() as connection:
            connection.execute("UPDATE sessions SET id = ? WHERE id = ?", (name, made.id))
    assert store.session("aaaa-2").id == "aaaa-2222"
    assert store.session("1111").id == "aaaa-1111"
    with pytest.raises(AmbiguousSession, match="aaa-1111 “tides”") as caught:
        store.session("aaaa")
    assert set(caught.value.ids) == {"aaaa-1111", "aaaa-2222"}
    for wanted in ("zzzz", "", "_", "%"):
        with pytest.raises(SessionNotFound):
            store.session(wanted)


def test_a_forks_cost_is_what_it_spent_itself(store: Store, new: NewSession) -> None:
    def paid(cost: float) -> AssistantEntry:
        return answered("yes").model_copy(update={"cost": cost})

    source = new("a")
    source.append(paid(2.0))
    fork = Session(
        store, store.fork(source.id, source.leaf).id, estimate=lambda _entry: 1, clock=store.clock
    )
    assert (store.totals(fork.id).cost, fork.reader.own_cost()) == (0.0, None)
    fork.append(paid(1.0))
    assert (store.totals(fork.id).cost, fork.reader.own_cost()) == (1.0, 1.0)
    assert sum(fork.reader.costs().values()) == 3.0
    assert store.totals(source.id).cost == 2.0


def test_a_fork_has_the_path_and_nothing_else(store: Store, new: NewSession) -> None:
    source = new("a", "b", "c")
    source.beside(2).append(answered("other branch"))
    source.label(1, "start")
    source.label(3, "beyond")
    fork = Session(store, store.fork(source.id, 2).id, estimate=lambda _entry: 1)
    assert texts(fork.path()) == ["a", "b"] == texts(fork.skeleton())
    assert fork.path() == source.path(leaf=2)
    assert fork.labels() == {1: "start"}
    assert (fork.info.parent_session, fork.info.parent_entry) == (source.id, 2)
    assert (fork.info.entry_count, fork.info.first_message, fork.reader.damaged) == (2, "a", 0)
    assert [hit.entry_id for hit in store.search("b", session_id=fork.id)] == [2]
    assert store.fork(source.id, None).entry_count == 0
    with pytest.raises(EntryNotFound):
        store.fork(source.id, 9)
    assert len(store.sessions()) == 3


def test_others_write_while_a_session_is_forked(
    store: Store, new: NewSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = new()
    source.append_many([said(f"n{number}") for number in range(900)])
    seen: list[int] = []
    writer = store.writer
    with Store(store.path, busy_timeout=0) as other:

        def between() -> AbstractContextManager[Connection]:
            other.put_blob(b"meanwhile")
            seen.append(len(other.sessions()))
            return writer()

        monkeypatch.setattr(store, "writer", between)
        fork = store.fork(source.id, 900)
    assert len(seen) > 3
    assert set(seen) == {1}, "nobody sees a part of it"
    assert len(Session(store, fork.id, estimate=lambda _entry: 1).path()) == 900


def test_a_fork_that_fails_leaves_nothing(
    store: Store, new: NewSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = new()
    source.append_many([said("a"), answered("b")])

    def fails(*_arguments: object) -> None:
        raise StoreFull("There is no room left on the disk.")

    monkeypatch.setattr(forking, "finish", fails)
    with pytest.raises(StoreFull):
        store.fork(source.id, 2)
    assert [info.id for info in store.sessions()] == [source.id]
    assert [hit.session_id for hit in store.search("a")] == [source.id]
    assert store.purge() == 1


def test_references_in_a_fork_mean_what_they_meant(store: Store, new: NewSession) -> None:
    source = new("a", "b", "left behind")
    source.move(2)
    source.append_many(
        [
            BranchSummaryEntry(summary="tried #3", from_id=3),
            CompactionEntry(
                summary="s", first_kept_id=2, tokens_before=2, tokens_after=1, trigger="manual"
            ),
            PruneEntry(targets=(1, 2), tokens_freed=1, reason="r"),
            ContextEditEntry(target=2, action="pin"),
        ]
    )
    fork = Session(store, store.fork(source.id, source.leaf).id, estimate=lambda _entry: 1)
    assert fork.path() == source.path()
    assert fork.active_path() == source.active_path()
    added = fork.append(said("goes on"))
    assert added.id > 7
    with pytest.raises(EntryNotFound):
        fork.entry(3)


@pytest.mark.parametrize(
    ("source", "fork"),
    [
        ("The shop", "The shop (fork)"),
        ("The shop (fork)", "The shop (fork 2)"),
        ("The shop (fork 9)", "The shop (fork 10)"),
        ("", "why is the total wrong? (fork)"),
    ],
)
def test_a_fork_is_told_from_its_source_in_lists(
    store: Store, new: NewSession, source: str, fork: str
) -> None:
    session = new("why is the total wrong?")
    store.rename(session.id, source)
    assert store.fork(session.id, 1).title == fork


def test_what_a_killed_program_left_empty_is_not_listed_and_goes_in_time(
    store: Store, new: NewSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, named, held = new("hello"), new(), new()
    store.rename(named.id, "mine")
    held.hold()
    left = new().id
    assert {info.id for info in store.sessions()} == {kept.id, named.id, held.id}
    assert store.purge() == 0
    later = store.clock() + 25 * HOUR
    monkeypatch.setattr(store, "clock", lambda: later)
    assert store.purge() == 1
    with pytest.raises(SessionNotFound):
        store.number(left)
    assert store.number(held.id)


def test_a_deleted_session_is_gone_from_everywhere_until_it_is_brought_back(
    store: Store, new: NewSession
) -> None:
    session = new("secret plan")
    for change in (
        lambda: store.rename("x", "t"),
        lambda: store.delete("x"),
        lambda: store.undelete("x"),
    ):
        with pytest.raises(SessionNotFound):
            change()
    session.hold()
    with pytest.raises(SessionHeld):
        store.delete(session.id)
    session.release()
    store.delete(session.id)
    assert store.sessions() == []
    assert store.search("secret") == []
    assert store.typed_in(None, 9) == []
    with pytest.raises(SessionNotFound):
        store.session(session.id)
    store.undelete(session.id)
    assert texts(session.path()) == ["secret plan"]
    assert len(store.search("secret")) == 1
    assert store.purge() == 0


def test_a_key_belongs_to_one_session_that_is_not_deleted(store: Store) -> None:
    first = store.create_session("/").id
    second = store.create_session("/").id
    store.set_key(first, "nightly")
    with pytest.raises(StoreError, match="Another session has the same key"):
        store.set_key(second, "nightly")
    store.delete(first)
    store.set_key(second, "nightly")
    with pytest.raises(StoreError, match="Another session has the same key"):
        store.undelete(first)


def test_purging_deletes_for_good_but_not_what_another_program_just_deleted(
    store: Store, new: NewSession
) -> None:
    session, other = new("first words"), new("other words")
    store.delete(session.id)
    assert store.purge() == 1
    with pytest.raises(SessionNotFound):
        store.undelete(session.id)
    assert [hit.session_id for hit in store.search("words")] == [other.id]
    with store.reader() as connection:
        rest = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("sessions", "entries", "bodies")
        }
        index = connection.execute(
            "SELECT count(*) FROM entries_fts WHERE entries_fts MATCH 'first'"
        ).fetchone()[0]
    assert (rest, index) == ({"sessions": 1, "entries": 1, "bodies": 1}, 0)

    session = new("a")
    store.delete(session.id)
    with Store(store.path, clock=count(2_000).__next__) as other:
        assert other.purge() == 0
    with Store(store.path, clock=count(25 * HOUR).__next__) as next_day:
        assert next_day.purge() == 1


def test_blobs_go_with_their_last_session_and_images_unless_they_are_outputs(
    store: Store, new: NewSession
) -> None:
    used, fresh, needed = (store.put_blob(content) for content in (b"used", b"fresh", b"needed"))
    session, other = new("a"), new("b")
    for owner, digest in ((session, used), (session, needed), (other, needed)):
        owner.append(
            ToolResultEntry(
                call_id="c", tool="t", status=ToolStatus.COMPLETED, output="", full_output=digest
            )
        )
    store.delete(session.id)
    with Store(store.path, clock=lambda: 48 * HOUR) as later:
        later.put_blob(b"fresh")
        later.purge()
        assert [later.blob(digest) for digest in (used, fresh, needed)] == [
            None,
            b"fresh",
            b"needed",
        ]

    image, output = store.put_blob(b"x" * 500), store.put_blob(b"y" * 500)
    session = new("a")
    changes = tuple(FileChange(path=digest, after=digest) for digest in (image, output))
    session.append(CheckpointEntry(files=changes))
    session.append(
        ToolResultEntry(
            call_id="c", tool="t", status=ToolStatus.COMPLETED, output="", full_output=output
        )
    )
    assert store.trim_file_images(0) == 1
    assert [store.blob(digest) is None for digest in (image, output)] == [True, False]


def test_the_prompt_history_is_distinct_and_newest_first(store: Store, new: NewSession) -> None:
    new("one", "two")
    last = new("one", "three")
    last.append(said("not typed", synthetic="continue"))
    last.append(UserEntry(parts=(TextPart(text="Look for bugs.", typed="/review"),)))
    last.append(ShellEntry(command="ls", output="a"))
    last.append(ShellEntry(command="pwd", output="/", excluded=True))
    assert [typed.text for typed in store.typed_in(None, 9)] == [
        "!!pwd",
        "!ls",
        "/review",
        "three",
        "one",
        "two",
    ]
    assert [typed.text for typed in store.typed_in(None, 2)] == ["!!pwd", "!ls"]


def test_the_prompt_history_of_a_project_is_that_of_its_directory_and_those_below(
    store: Store,
) -> None:
    for place in ("/a_b", "/a_b/src", "/a_bc", "/axb/src", "/a_b2/a_b", "/"):
        session = Session(store, store.create_session(place).id, estimate=lambda _entry: 1)
        session.append(said(f"in {place}"))
    assert {typed.text for typed in store.typed_in("/a_b", 9)} == {"in /a_b", "in /a_b/src"}
    assert {typed.text for typed in store.typed_in("/axb", 9)} == {"in /axb/src"}
    assert len(store.typed_in("/", 9)) == 6


@pytest.mark.parametrize(("limit", "kept"), [(600, 2), (599, 1), (500, 1), (499, 0)])
def test_the_oldest_file_images_go_until_four_fifths_of_the_limit_are_left(
    store: Store, new: NewSession, limit: int, kept: int
) -> None:
    session = new("a")
    for image in (store.put_blob(b"x" * 200), store.put_blob(b"y" * 400)):
        session.append(CheckpointEntry(files=(FileChange(path="a", before=None, after=image),)))
    assert store.trim_file_images(limit) == 2 - kept


@pytest.mark.parametrize("days", [(0, -400), (0, 400, -1), (400, 0, 0, 0, -400)])
def test_a_clock_that_jumps_loses_nothing(tmp_path: Path, days: tuple[int, ...]) -> None:
    """A conversation with two branches ends in the middle of an answer, and is opened again."""
    offsets, looks = cycle(days), count(1_800_000_000_000)
    path, clock = tmp_path / "jumping.db", lambda: next(looks) + next(offsets) * 24 * HOUR
    with Store(path, clock=clock) as store:
        session = Session(store, store.create_session("/").id, estimate=lambda _entry: 1)
        session.hold()
        session.append_many([said("one"), answered("first"), said("two"), answered("second")])
        session.move(2)
        session.append(said("another"))
        session.save_draft(DraftText("half an answer"))
    with Store(path, clock=clock) as store:
        again = Session(store, session.id, estimate=lambda _entry: 1)
        again.hold()
        again.recover()
        store.purge()
        assert texts(again.path()) == ["one", "first", "another", "half an answer"]
        assert texts(again.path(4)) == ["one", "first", "two", "second"]
        assert [info.id for info in store.sessions()] == [session.id]


HERE = "/home/ada/shop"


def test_what_was_kept_is_there_for_the_next_program_once_its_own_has_ended(tmp_path: Path) -> None:
    kept = Unsent("half a thou\ud800ght", ("first", "second"))
    with Store(tmp_path / "s.db") as store:
        store.keep_unsent(HERE, Unsent("an older state"))
        store.keep_unsent(HERE, kept)
    with Store(tmp_path / "s.db") as store:
        assert store.take_unsent("/elsewhere") == Unsent()
        assert store.take_unsent(HERE) == Unsent("half a thou\ufffdght", ("first", "second"))
        assert not store.take_unsent(HERE)

    with Store(tmp_path / "s.db") as other, Store(tmp_path / "s.db") as store:
        other.keep_unsent(HERE, Unsent("hers"))
        store.keep_unsent(HERE, Unsent("mine"))
        assert store.take_unsent(HERE).text == "mine"
        assert other.take_unsent(HERE).text == "hers"


def test_what_several_programs_left_comes_back_together_and_nothing_of_deleted_sessions(
    tmp_path: Path,
) -> None:
    for text in ("one", "two", "one"):
        with Store(tmp_path / "s.db") as store:
            store.keep_unsent(HERE, Unsent(text, (text.upper(),)))
    with Store(tmp_path / "s.db") as store:
        assert store.take_unsent(HERE) == Unsent("one\n\ntwo", ("ONE", "TWO", "ONE"))

    now = [1_000]
    with Store(tmp_path / "s.db", clock=lambda: now[0]) as store:
        session = store.create_session("/")
        store.keep_unsent(session.id, Unsent("words"))
        store.keep_unsent(HERE, Unsent("words"))
        store.keep_unsent(HERE, Unsent("  "))
        store.keep_unsent("/old", Unsent("words"))
        store.delete(session.id)
        store.purge()
        now[0] += RETENTION_MS + 1
        assert not store.take_unsent(session.id)
        assert not store.take_unsent(HERE)
        assert not store.take_unsent("/old")


def found(session: Session, query: str) -> list[int]:
    return sorted(hit.entry_id for hit in session.store.search(query, session_id=session.id))


@pytest.mark.parametrize(
    ("text", "queries", "misses"),
    [
        (
            "The login redirect loses the query",
            ["login", "LOGIN red", "loses quer", "redirect the"],
            ["ogin", "lose que", "redir login"],
        ),
        (
            "call getUserName and HTTPServer",
            ["getUserName", "username", "getusern", "User", "server", "HttpS"],
            ["name x"],
        ),
        (
            "scroll_offset of src/my-file.py:12",
            ["scroll_off", "offset", "my-file.py", "py:12", "src/my"],
            ["my_dir"],
        ),
        (
            "修复登录重定向的问题",
            ["登录", "登", "重定向", "修复 问题", "登录重定向"],
            ["录登", "登向"],
        ),
        ("ログインのリダイレクト", ["ログイン", "リダイ"], ["インログ"]),
        ("로그인 리디렉션이 깨졌다", ["로그인", "리디렉션", "디렉"], ["인로"]),
        ("Crème brûlée à la ÅNGSTRÖM", ["creme", "brulee", "ångström"], ["cremes"]),
        ("исправить вход", ["ИСПРАВ", "вход"], ["выход"]),
    ],
)
def test_words_are_found_in_any_script(
    session: Session, text: str, queries: list[str], misses: list[str]
) -> None:
    session.append(said(text))
    session.append(said("something else entirely"))
    assert {query: found(session, query) for query in queries} == {query: [1] for query in queries}
    assert {query: found(session, query) for query in misses} == {query: [] for query in misses}


@given(query=st.text(max_size=12))
def test_any_query_is_a_valid_expression(shared_store: Store, query: str) -> None:
    shared_store.search(query)
    shared_store.sessions(query=query)
    assert match_expression(query) is None or '"' in str(match_expression(query))


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("search") / "s.db") as opened:
        yield opened


@pytest.mark.parametrize(
    "entry",
    [
        answered("the needle"),
        answered("", ("c", "bash", '{"command": "find needle"}')),
        ShellEntry(command="grep needle", output=""),
        ShellEntry(command="ls", output="needle.py"),
        ToolResultEntry(call_id="c", tool="t", status=ToolStatus.COMPLETED, output="a\nneedle\nb"),
        CompactionEntry(
            summary="a needle",
            first_kept_id=None,
            tokens_before=1,
            tokens_after=1,
            trigger="manual",
        ),
    ],
    ids=lambda entry: entry.kind,
)
def test_everything_a_reader_sees_is_searched(session: Session, entry: Entry) -> None:
    session.append(entry)
    assert found(session, "needle") == [1]


def test_a_hit_says_where_the_words_are_and_the_prompt_is_not_searched(session: Session) -> None:
    session.append(said("x " * 500 + "the\nNeedle is   here " + "y " * 500))
    (hit,) = session.store.search("needle here", session_id=session.id)
    assert (hit.session_id, hit.entry_id, hit.kind) == (session.id, 1, "user")
    assert "Needle is here" in hit.snippet
    assert "\n" not in hit.snippet
    assert len(hit.snippet) < 200
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["Needle", "here"]

    session.append(SystemEntry(blocks=("You are helpful",), model="m"))
    assert found(session, "helpful") == []


def test_all_branches_are_searched_newest_first_in_a_session_or_directory(
    store: Store, session: Session
) -> None:
    session.append_many([said("needle one"), said("needle two")])
    session.move(None)
    session.append(said("needle three"))
    other = Session(store, store.create_session("/elsewhere").id, estimate=lambda _entry: 1)
    other.append(said("needle, too"))
    assert [hit.entry_id for hit in store.search("needle", session_id=session.id)] == [3, 2, 1]
    assert [hit.entry_id for hit in store.search("needle", 2, session_id=session.id)] == [3, 2]
    assert store.search("needle", 0, session_id=session.id) == []
    assert [hit.session_id for hit in store.search("needle")] == [other.id, *[session.id] * 3]
    assert [hit.session_id for hit in store.search("needle", cwd="/elsewhere")] == [other.id]


def test_the_directory_made_for_sessions_is_the_users_alone(tmp_path: Path) -> None:
    with Store(tmp_path / "new" / "sessions.db"):
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
