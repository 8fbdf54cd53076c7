"""What a session says of its requests, of every branch, without reading their text; and where branches part."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.texts import said
from tests.support.thoroughness import examples
from tui_agent.session.entries import AssistantEntry, CompactionEntry, TextPart, Usage
from tui_agent.session.session import Session
from tui_agent.session.store import Store


def answered(**fields: object) -> AssistantEntry:
    return AssistantEntry(parts=(TextPart(text="so"),), model="m", **fields)  # type: ignore[arg-type]


def test_answers_and_summaries_of_all_branches_are_there_as_they_are_stored(session: Session) -> None:
    assert session.reader.costs() == {}
    session.append(said("go"))
    usage = Usage(input=10, output=20, cache_read=30, cache_write=40)
    first = session.append(answered(usage=usage, cost=0.5, estimate=90))
    session.append(answered(error="refused"))
    session.move(first.id)
    session.append(
        CompactionEntry(summary="s", first_kept_id=None, tokens_before=9, tokens_after=1, trigger="manual", cost=0.1)
    )
    whole, failed, summary = session.reader.requests()
    assert (whole.id, whole.kind, whole.model, whole.cost, whole.estimate) == (first.id, "assistant", "m", 0.5, 90)
    assert (whole.input, whole.output, whole.cache_read, whole.cache_write, whole.prompt) == (10, 20, 30, 40, 80)
    assert (failed.failed, failed.prompt, failed.output, failed.cost) == (True, 0, 0, None)
    assert (summary.kind, summary.cost, summary.model) == ("compaction", 0.1, "")
    assert session.reader.costs() == {first.id: 0.5, summary.id: 0.1}
    last = session.append(answered(cost=1.0))
    assert session.reader.costs()[last.id] == 1.0
    assert [record.cost for record in session.reader.requests()] == [0.5, None, 0.1, 1.0]


def test_subagents_of_a_session_are_told_of_and_forks_are_not(store: Store, session: Session) -> None:
    session.append(answered(cost=1.0))
    child = Session(
        store, store.create_session("/p", parent=(session.id, 1), agent="explore").id, estimate=lambda _entry: 1
    )
    child.append(answered(cost=0.25))
    store.fork(session.id, 1)
    assert [record.cost for record in store.subagent_requests(session.id)] == [0.25]


@settings(max_examples=examples(60), deadline=None)
@given(moves=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), max_size=8))
def test_branches_part_where_the_tree_says(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[int, int]]
) -> None:
    with Store(tmp_path_factory.mktemp("tree") / "s.db") as store:
        session = Session(store, store.create_session("/project").id, estimate=lambda _entry: 7)
        session.append_many([said("go"), said("go")])
        for target, count in moves:
            last = session.info.entry_count
            session.move(target % (last + 1) or None)
            session.append_many([said("go")] * count)
        path = session.path()
        on_path = {entry.id for entry in path}
        ids = range(1, session.info.entry_count + 1)
        parents = {header.id: header.parent_id for header in session.skeleton()}

        def departure(entry_id: int) -> int:
            while (parent := parents[entry_id]) is not None and parent not in on_path:
                entry_id = parent
            return entry_id

        wanted = {entry_id: departure(entry_id) for entry_id in ids if entry_id not in on_path}
        assert session.departures(ids) == wanted
        assert session.returns() == [entry.id for entry in path if (entry.parent_id or 0) != entry.id - 1]
        leaf = session.info.entry_count // 2 or 1
        assert session.reader.load_active(leaf) == session.path(leaf)
