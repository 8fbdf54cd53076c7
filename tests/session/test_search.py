"""Finding entries by their words, in every script, whatever is typed."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.texts import answered, said
from tui_agent.session.entries import CompactionEntry, Entry, ShellEntry, SystemEntry, ToolResultEntry, ToolStatus
from tui_agent.session.search import match_expression
from tui_agent.session.session import Session
from tui_agent.session.store import Store


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
        ("scroll_offset of src/my-file.py:12", ["scroll_off", "offset", "my-file.py", "py:12", "src/my"], ["my_dir"]),
        ("修复登录重定向的问题", ["登录", "登", "重定向", "修复 问题", "登录重定向"], ["录登", "登向"]),
        ("ログインのリダイレクト", ["ログイン", "リダイ"], ["インログ"]),
        ("로그인 리디렉션이 깨졌다", ["로그인", "리디렉션", "디렉"], ["인로"]),
        ("Crème brûlée à la ÅNGSTRÖM", ["creme", "brulee", "ångström"], ["cremes"]),
        ("исправить вход", ["ИСПРАВ", "вход"], ["выход"]),
    ],
)
def test_words_are_found_in_any_script(session: Session, text: str, queries: list[str], misses: list[str]) -> None:
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
        CompactionEntry(summary="a needle", first_kept_id=None, tokens_before=1, tokens_after=1, trigger="manual"),
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


def test_all_branches_are_searched_newest_first_in_a_session_or_directory(store: Store, session: Session) -> None:
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
