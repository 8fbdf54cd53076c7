"""What a session promises to everything above it: entries, paths, moves, labels."""

import json
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.big_session import fill
from tests.support.entry_strategies import paths
from tests.support.numbered import answer, compaction, edit, prune, result, user
from tests.support.stores import open_store
from tests.support.texts import answered, said, texts
from tests.support.thoroughness import examples
from tui_agent.context.view import resolve
from tui_agent.safe_text import valid
from tui_agent.session.entries import (
    AssistantEntry,
    CheckpointEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    ModelChangeEntry,
    PruneEntry,
    ShellEntry,
    SubagentEntry,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    Usage,
)
from tui_agent.session.errors import EntryNotFound, NothingToUndo, SessionNotFound, StoreReadOnly
from tui_agent.session.path_queries import since
from tui_agent.session.reading import EntryReader
from tui_agent.session.session import Session
from tui_agent.session.skeleton import Headers, is_silent_call
from tui_agent.session.store import Store

Reopen = Callable[..., Session]


def test_entries_kept_at_hand_are_bounded_by_their_length(session: Session) -> None:
    first = session.append(said("x" * 100_000))
    rest = [session.append(said("y" * 100_000)) for _ in range(30)]
    again = session.entry(first.id)
    assert again == first
    assert again is not first
    assert session.entry(rest[-1].id) is rest[-1]


def test_paths_are_read_by_threads_while_entries_come_and_go(session: Session) -> None:
    texts_of = {
        entry.id: entry.text
        for entry in (session.append(said(str(at) * 150_000)) for at in range(20))
    }

    def read(seed: int) -> bool:
        chance = random.Random(seed)
        wanted = [chance.sample(sorted(texts_of), 3) for _ in range(200)]
        return all(
            [entry.text for entry in session.entries(ids)] == [texts_of[at] for at in ids]
            for ids in wanted
        )

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as threads:
            assert all(threads.map(read, range(12)))
    finally:
        sys.setswitchinterval(before)
    kept = session.append(said("kept"))
    assert session.entry(kept.id) is kept


@pytest.mark.parametrize("text", ["half \ud800 pair", "nul\0", "both halves \ud83d\ude00"])
def test_what_was_stored_before_texts_were_made_valid_is_repaired_as_it_is_read(
    session: Session, reopen: Reopen, text: str
) -> None:
    session.append(said("TEXT"))
    with session.store.writer() as connection:
        connection.execute(
            "UPDATE bodies SET body = replace(body, '\"TEXT\"', ?)", (json.dumps(text),)
        )
    found = reopen(session).entry(1)
    assert found.parts == (TextPart(text=valid(text)),)


def test_what_came_since_the_newest_of_a_kind_is_told_newest_first() -> None:
    assert [entry.id for entry in since([answer(1), user(2), user(3)], AssistantEntry)] == [3, 2]


def test_headers_agree_with_entries(session: Session, reopen: Reopen) -> None:
    session.append(said("hello"))
    entry = session.append(answered("four", ("c", "ls", "{}")))
    header = reopen(session).skeleton()[1]
    for one in (session, reopen(session)):
        assert one.path_outline()[1] == (header.id, header.kind, header.size)
    assert (header.id, header.parent_id, header.kind, header.preview) == (2, 1, "assistant", "four")
    assert (header.tokens, header.created_at, header.size) == (
        7,
        entry.created_at,
        len("four" + "ls" + "{}"),
    )
    with session.store.reader() as connection:
        (body,) = connection.execute("SELECT body FROM bodies").fetchone()
    assert body == '{"parts":[{"type":"text","text":"hello"}],"synthetic":null,"mid_run":false}', (
        "no column's content"
    )


def test_work_beside_a_session_leaves_no_trace_in_where_it_is_opened(
    session: Session, reopen: Reopen
) -> None:
    session.append_many([said("a"), said("b")])
    other = session.beside(1)
    other.append(said("elsewhere"))
    other.move(1)
    assert other.leaf == 1
    for one in (session, reopen(session)):
        assert one.leaf == 2
        assert one.moves() == []


def test_an_entry_knows_on_which_subagents_branch_it_is(session: Session) -> None:
    session.append_many([said("a"), answered("b")])
    firsts: list[int] = []
    for number in range(2):
        branch = session.beside(None)
        task = SubagentEntry(agent="explore", task="look", call_id=f"c{number}")
        firsts.append(branch.append(task).id)
        branch.append_many([said("look"), answered("seen")])
    spine = session.reader.spine()
    assert [spine.subagent_of(entry_id) for entry_id in range(1, 9)] == [
        *[None] * 2, *[firsts[0]] * 3, *[firsts[1]] * 3,
    ]  # fmt: skip


def test_what_is_not_there_is_refused_and_costs_nothing(session: Session) -> None:
    session.append(said("a"))
    with pytest.raises(EntryNotFound):
        session.beside(17).append(said("lost"))
    with pytest.raises(EntryNotFound):
        session.move(9)
    with pytest.raises(EntryNotFound):
        session.label(9, "nothing there")
    session.move(1)
    assert session.moves() == [], "moving nowhere is no move"
    with pytest.raises(SessionNotFound, match="no-such"):
        Session(session.store, "no-such", estimate=lambda _entry: 1)
    assert session.info.entry_count == 1
    assert session.append(said("b")).id == 2


def test_entries_come_in_the_order_asked_for(session: Session, reopen: Reopen) -> None:
    session.append_many([said(str(number)) for number in range(900)])
    ids = [5, 900, 3, 5, 12_345, 1]
    assert [entry.id for entry in reopen(session).entries(ids)] == [5, 900, 3, 5, 1]
    for get in (session.path, session.active_path):
        get().clear()
        assert len(get()) == 900, "a returned path can be changed without harm"
    with pytest.raises(EntryNotFound):
        session.entry(12_345)


def test_moves_are_undone_and_redone_after_reopening_too(session: Session, reopen: Reopen) -> None:
    session.append_many([said("a"), answered("b"), said("c")])
    session.move(1)
    session.append(said("b2"))
    again = reopen(session)
    assert [again.undo(), again.undo()] == [1, 3]
    assert [reopen(session).redo(), reopen(session).redo()] == [1, 4]
    assert [(move.from_leaf, move.to_leaf, move.action) for move in again.moves()] == [
        (3, 1, "move"),
        (4, 1, "undo"),
        (1, 3, "undo"),
        (3, 1, "redo"),
        (1, 4, "redo"),
    ]


def test_undoing_walks_back_move_by_move_and_a_new_move_forgets_what_was_undone(
    session: Session,
) -> None:
    session.append_many([said(letter) for letter in "abcd"])
    session.move(3)
    session.move(1)
    assert [session.undo() for _ in range(6)] == [3, 4, 3, 2, 1, None]
    with pytest.raises(NothingToUndo):
        session.undo()
    assert [session.redo() for _ in range(5)] == [1, 2, 3, 4, 3]
    session.move(2)
    assert session.history.next() is None
    with pytest.raises(NothingToUndo):
        session.redo()
    assert session.undo() == 3


def test_entries_are_undone_until_they_are_brought_back_or_something_new_is_said(
    session: Session,
) -> None:
    def undone() -> list[int]:
        return [number for number in range(1, 5) if session.history.is_undone(number)]

    session.append_many([said(letter) for letter in "abcd"])
    assert undone() == []
    session.undo()
    assert undone() == [4]
    session.undo()
    assert undone() == [3, 4]
    session.redo()
    assert undone() == [4]
    session.append(ModelChangeEntry(model="m"))
    assert undone() == [4], "nothing was said"
    session.append(said("new"))
    assert undone() == []


def test_a_turn_is_undone_with_the_head_that_was_made_for_it(session: Session) -> None:
    session.append(SystemEntry(blocks=("a",), model="m"))
    session.append(said("one"))
    first = session.append(answered("yes"))
    session.append(SystemEntry(blocks=("b",), model="m"))
    asked = session.append(said("two"))
    session.append(answered("no"))
    step = session.history.newest()
    assert (step.start, step.entry) == (first.id, asked.id)


def test_the_leaf_before_a_step_is_before_all_that_was_made_for_it(session: Session) -> None:
    def prune(reason: str) -> PruneEntry:
        return PruneEntry(targets=(2,), tokens_freed=1, reason=reason)

    session.append(SystemEntry(blocks=("a",), model="m"))
    asked = session.append(said("one"))
    answer = session.append(answered("yes"))
    assert session.history.before(answer.id) == asked.id
    shell = session.append(ShellEntry(command="ls", output="a"))
    assert session.history.before(shell.id) == answer.id
    last = session.append(prune("threshold"))
    session.append(prune("compaction"))
    compaction = session.append(
        CompactionEntry(
            summary="s", first_kept_id=2, tokens_before=9, tokens_after=1, trigger="manual"
        )
    )
    assert session.history.before(compaction.id) == last.id
    *_, hidden = session.append_many(
        [ContextEditEntry(target=target, action="mask") for target in (2, 3)]
    )
    assert session.history.before(hidden.id) == compaction.id
    changed = session.append(ContextEditEntry(target=2, action="pin"))
    assert session.history.before(changed.id) == hidden.id
    assert session.history.before(asked.id, asked.parent_id) == asked.parent_id


def test_what_is_not_the_tree_is_kept_with_the_session(session: Session) -> None:
    session.append(SystemEntry(blocks=("x",), model="first/model"))
    session.append(said("by the program", synthetic="continue"))
    session.append(said("what I asked"))
    session.append(said("what I asked next"))
    session.append(answered("ok", model="second/model"))
    session.append(CheckpointEntry(files=()))
    session.set_title("A \ud800 title")
    session.label(1, "nul\0")
    info = session.info
    assert session.labels() == {1: "nul\ufffd"}
    assert (info.first_message, info.model, info.title) == (
        "what I asked",
        "second/model",
        "A \ufffd title",
    )
    assert (info.entry_count, info.leaf, info.cwd) == (6, 6, "/project")


def test_a_read_only_session_can_be_read_and_refuses_changes(
    session: Session, reopen: Reopen
) -> None:
    session.append_many([said("a"), said("b")])
    reading = reopen(session, read_only=True)
    assert reading.read_only
    assert texts(reading.path()) == ["a", "b"]
    changes: list[Callable[[], object]] = [
        lambda: reading.append(said("c")),
        lambda: reading.move(1),
        lambda: reading.label(1, "x"),
        lambda: reading.set_title("x"),
        reading.hold,
    ]
    for change in changes:
        with pytest.raises(StoreReadOnly):
            change()
    assert (session.info.entry_count, session.labels(), reading.leaf) == (2, {}, 2)


def active(session: Session) -> list[int]:
    return [entry.id for entry in session.active_path()]


def fresh(session: Session) -> Session:
    return Session(session.store, session.id, estimate=lambda _entry: 1)


def test_the_compaction_of_another_branch_does_not_count(session: Session) -> None:
    session.append_many([said("1"), said("2"), compaction(0, 2)])
    session.move(1)
    session.append(said("4"))
    assert active(session) == [1, 4]
    session.undo()
    session.undo()
    assert active(session) == [2, 3]


def test_pinned_entries_come_along_with_their_calls_results_and_prunes(session: Session) -> None:
    session.append_many(
        [
            said("1"),
            answered("2", ("a", "t", "{}"), ("b", "t", "{}")),
            result(0, "a"),
            result(0, "b"),
            said("5"),
            answered("6"),
            edit(0, 3, "pin"),
            edit(0, 5, "pin"),
            edit(0, 5, "restore"),
            prune(0, 4),
            prune(0, 6),
            compaction(0, None),
        ]
    )
    assert active(session) == [2, 3, 4, 7, 8, 9, 10, 12]
    session.append(edit(0, 1, "pin"))
    assert active(session) == [1, 2, 3, 4, 7, 8, 9, 10, 12, 13]
    session.append(edit(0, 3, "restore"))
    assert active(session) == [1, 7, 8, 9, 12, 13, 14]


@given(path=paths(max_size=20))
@settings(max_examples=examples(150), deadline=None)
def test_it_resolves_to_the_same_view_as_the_whole_path(path: list[Entry]) -> None:
    with TemporaryDirectory() as directory, open_store(Path(directory) / "s.db") as store:
        session = Session(store, store.create_session("/").id, estimate=lambda _entry: 1)
        for entry in path:
            session.append(entry)
            session.active_path()
        assert resolve(session.active_path()) == resolve(session.path())
        assert fresh(session).active_path() == session.active_path()
        assert fresh(session).path() == session.path()


def test_only_what_is_needed_is_read(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(session, 3_000, compact_every=1_000)
    opened = fresh(session)
    loaded: list[Entry] = []
    keep = EntryReader.keep
    monkeypatch.setattr(
        EntryReader, "keep", lambda reader, entries: (loaded.extend(entries), keep(reader, entries))
    )
    needed = opened.active_path()
    assert len({entry.id for entry in loaded}) == len(needed) < 1_700


def replied(**fields: object) -> AssistantEntry:
    return AssistantEntry(parts=(TextPart(text="so"),), model="m", **fields)  # type: ignore[arg-type]


def test_answers_and_summaries_of_all_branches_are_there_as_they_are_stored(
    session: Session,
) -> None:
    assert session.reader.costs() == {}
    session.append(said("go"))
    usage = Usage(input=10, output=20, cache_read=30, cache_write=40)
    first = session.append(replied(usage=usage, cost=0.5, estimate=90))
    session.append(replied(error="refused"))
    session.move(first.id)
    session.append(
        CompactionEntry(
            summary="s",
            first_kept_id=None,
            tokens_before=9,
            tokens_after=1,
            trigger="manual",
            cost=0.1,
        )
    )
    whole, failed, summary = session.reader.requests()
    assert (whole.id, whole.kind, whole.model, whole.cost, whole.estimate) == (
        first.id,
        "assistant",
        "m",
        0.5,
        90,
    )
    assert (whole.input, whole.output, whole.cache_read, whole.cache_write, whole.prompt) == (
        10,
        20,
        30,
        40,
        80,
    )
    assert (failed.failed, failed.prompt, failed.output, failed.cost) == (True, 0, 0, None)
    assert (summary.kind, summary.cost, summary.model) == ("compaction", 0.1, "")
    assert session.reader.costs() == {first.id: 0.5, summary.id: 0.1}
    last = session.append(replied(cost=1.0))
    assert session.reader.costs()[last.id] == 1.0
    assert [record.cost for record in session.reader.requests()] == [0.5, None, 0.1, 1.0]


def test_subagents_of_a_session_are_told_of_and_forks_are_not(
    store: Store, session: Session
) -> None:
    session.append(replied(cost=1.0))
    child = Session(
        store,
        store.create_session("/p", parent=(session.id, 1), agent="explore").id,
        estimate=lambda _entry: 1,
    )
    child.append(replied(cost=0.25))
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
        assert session.returns() == [
            entry.id for entry in path if (entry.parent_id or 0) != entry.id - 1
        ]
        leaf = session.info.entry_count // 2 or 1
        assert session.reader.load_active(leaf) == session.path(leaf)


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
        ToolResultEntry(
            call_id="c", tool="read", status=ToolStatus.COMPLETED, output="o", title="{x"
        ),
    ],
)
def test_sqlite_and_python_agree_on_what_only_calls_tools(session: Session, entry: Entry) -> None:
    session.append(entry)
    headers = session.skeleton()
    assert headers.letters == Headers.of(headers).letters
    silent = entry.kind == "assistant" and is_silent_call(headers[0].preview)
    assert headers.letters.isupper() is silent


@pytest.mark.parametrize(
    "kinds",
    [{"assistant"}, {"user"}, {"tool_result"}, {"user", "assistant"}, {"shell"}],
    ids=lambda kinds: " and ".join(sorted(kinds)),
)
def test_entries_are_found_by_kind_and_answers_that_only_call_tools_are_answers(
    session: Session, kinds: set[str]
) -> None:
    session.append_many([said("go"), calling(""), result(0, "c"), calling("I look."), said("on")])
    headers = session.skeleton()
    wanted = [at for at, header in enumerate(headers) if header.kind in kinds]
    assert headers.of_kinds(kinds) == wanted
    assert Headers.of(headers).of_kinds(kinds) == wanted


def test_columns_and_headers_tell_the_same_of_a_tree_with_branches_and_gaps(
    session: Session,
) -> None:
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
