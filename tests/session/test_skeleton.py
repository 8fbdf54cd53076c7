"""The headers of a whole tree: columns that SQLite makes, headers that are read when they are looked at."""

import pytest

from tests.support.big_session import fill
from tests.support.texts import answered, said
from tui_agent.session.entries import AssistantEntry, Entry, TextPart, ToolCallPart, ToolResultEntry, ToolStatus
from tui_agent.session.session import Session
from tui_agent.session.skeleton import Headers, is_silent_call


def calling(text: str, arguments: str = '{"path": "a"}') -> AssistantEntry:
    call = ToolCallPart(call_id="c", tool="read", arguments=arguments)
    return AssistantEntry(parts=(*([TextPart(text=text)] if text else []), call), model="m")


@pytest.mark.parametrize(
    "entry",
    [
        calling(""),
        calling("I look."),
        calling("", ""),
        calling("", "[]"),
        answered("{"),
        answered("{ not json"),
        answered("word {brace"),
        answered("two words {brace"),
        answered("ünï {x"),
        AssistantEntry(parts=(), model="m"),
        said("grep {x"),
        ToolResultEntry(call_id="c", tool="read", status=ToolStatus.COMPLETED, output="o", title="{x"),
    ],
)
def test_sqlite_and_python_agree_on_what_only_calls_tools(session: Session, entry: Entry) -> None:
    session.append(entry)
    headers = session.skeleton()
    assert headers.letters == Headers.of(headers).letters
    silent = entry.kind == "assistant" and is_silent_call(headers[0].preview)
    assert headers.letters.isupper() is silent


def test_columns_and_headers_tell_the_same_of_a_tree_with_branches_and_gaps(session: Session) -> None:
    fill(session, 300, branch_every=70, compact_every=40)
    store = session.store
    with store.writer() as connection:
        connection.execute("DELETE FROM entries WHERE id IN (100, 101, 250)")
    headers = Session(store, session.id, estimate=lambda _entry: 1).skeleton()
    known = Headers.of(headers)
    assert len(headers) == 297 == len(list(headers))
    assert list(headers.ids) == [header.id for header in headers] == list(known.ids)
    assert list(headers.tokens) == [header.tokens for header in headers]
    assert headers.letters == known.letters
    assert headers.runs() == known.runs()
    assert headers.position(100) is None
    half = headers.joined([slice(0, 20), slice(50, 90)])
    assert list(half) == [*list(headers)[:20], *list(headers)[50:90]]
    assert half.some([3, 25]) == [headers[3], headers[55]]
