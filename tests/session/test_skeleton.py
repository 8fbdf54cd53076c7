"""The headers of a whole tree: columns that SQLite makes, headers that are read when they are looked at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.big_session import fill
from tests.support.texts import answered, said
from tui_agent.session.entries import AssistantEntry, Entry, TextPart, ToolCallPart, ToolResultEntry, ToolStatus
from tui_agent.session.records import EntryHeader
from tui_agent.session.session import Session
from tui_agent.session.skeleton import Headers, is_silent_call
from tui_agent.session.tree_index import Spine, SpineRows


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


def header(entry_id: int, parent: int | None) -> EntryHeader:
    return EntryHeader(entry_id, parent, "user", "", 0, 0, 0)


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[EntryHeader], int | None, int | None]:
    """Headers with ids that may have gaps, each below any earlier one or a root, and two of the ids or None."""
    ids = sorted(draw(st.sets(st.integers(1, 40), min_size=1, max_size=25)))
    headers = [header(i, draw(st.sampled_from([None, *[j for j in ids if j < i]]))) for i in ids]
    ends = st.sampled_from([None, *ids])
    return headers, draw(ends), draw(ends)


def ancestors(headers: list[EntryHeader], leaf: int | None) -> list[int]:
    parents = {one.id: one.parent_id for one in headers}
    line = []
    while leaf is not None:
        line.append(leaf)
        leaf = parents[leaf]
    return line[::-1]


def rows_of(headers: list[EntryHeader]) -> SpineRows:
    return SpineRows.of((one.id, one.parent_id, one.kind, one.size) for one in headers)


@given(forests())
def test_the_spine_knows_paths_and_where_two_part(case: tuple[list[EntryHeader], int | None, int | None]) -> None:
    headers, leaf, target = case
    spine = Spine()
    half = len(headers) // 2
    for part in (headers[:half], headers[half:]):
        spine.extend(rows_of(part))
    assert (spine.count, spine.last, spine.reattached) == (len(headers), headers[-1].id, set())
    one, other = ancestors(headers, leaf), ancestors(headers, target)
    assert list(spine.path(leaf)) == one
    shared = [a for a, b in zip(one, other, strict=False) if a == b]
    parting = spine.parting(leaf, target)
    assert (parting.leaf, parting.ancestor) == (leaf, shared[-1] if shared else None)
    assert [entry.id for entry in parting.left] == [i for i in one if i not in other]
