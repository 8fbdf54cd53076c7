"""What a session promises to everything above it: entries, paths, moves, labels."""

import json
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.texts import answered, said, texts
from tui_agent.safe_text import valid
from tui_agent.session.entries import CheckpointEntry, SystemEntry, TextPart
from tui_agent.session.errors import EntryNotFound, NothingToUndo, SessionNotFound, StoreReadOnly
from tui_agent.session.session import Session

Reopen = Callable[..., Session]


def test_entries_kept_at_hand_are_bounded_by_their_length(session: Session) -> None:
    first = session.append(said("x" * 100_000))
    rest = [session.append(said("y" * 100_000)) for _ in range(30)]
    again = session.entry(first.id)
    assert again == first
    assert again is not first
    assert session.entry(rest[-1].id) is rest[-1]


def test_paths_are_read_by_threads_while_entries_come_and_go(session: Session) -> None:
    texts_of = {entry.id: entry.text for entry in (session.append(said(str(at) * 150_000)) for at in range(20))}

    def read(seed: int) -> bool:
        chance = random.Random(seed)
        wanted = [chance.sample(sorted(texts_of), 3) for _ in range(200)]
        return all([entry.text for entry in session.entries(ids)] == [texts_of[at] for at in ids] for ids in wanted)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as threads:
            assert all(threads.map(read, range(12)))
    finally:
        sys.setswitchinterval(before)
    kept = session.append(said("kept"))
    assert session.entry(kept.id) is kept


@pytest.mark.parametrize(
    "text",
    ["half \ud800 pair", "\0", "上下文 👩‍👩‍👧", "x" * 100_000, "", "'; DROP TABLE entries; --"],
    ids=["surrogate", "nul", "wide", "long", "empty", "quotes"],
)
def test_any_text_can_be_stored_and_searched(session: Session, reopen: Reopen, text: str) -> None:
    stored = session.append(said(text))
    assert reopen(session).entry(1).parts == stored.parts == (TextPart(text=valid(text)),)
    session.store.search(text, session_id=session.id)
    session.label(1, text)
    session.set_title(text)


@pytest.mark.parametrize("text", ["half \ud800 pair", "nul\0", "both halves \ud83d\ude00"])
def test_what_was_stored_before_texts_were_made_valid_is_repaired_as_it_is_read(
    session: Session, reopen: Reopen, text: str
) -> None:
    session.append(said("TEXT"))
    with session.store.writer() as connection:
        connection.execute("UPDATE bodies SET body = replace(body, '\"TEXT\"', ?)", (json.dumps(text),))
    found = reopen(session).entry(1)
    assert found.parts == (TextPart(text=valid(text)),)


def test_headers_agree_with_entries(session: Session, reopen: Reopen) -> None:
    session.append(said("hello"))
    entry = session.append(answered("four", ("c", "ls", "{}")))
    header = reopen(session).skeleton()[1]
    for one in (session, reopen(session)):
        assert one.path_outline()[1] == (header.id, header.kind, header.size)
    assert (header.id, header.parent_id, header.kind, header.preview) == (2, 1, "assistant", "four")
    assert (header.tokens, header.created_at, header.size) == (7, entry.created_at, len("four" + "ls" + "{}"))
    with session.store.reader() as connection:
        (body,) = connection.execute("SELECT body FROM bodies").fetchone()
    assert body == '{"parts":[{"type":"text","text":"hello"}],"synthetic":null,"mid_run":false}', "no column's content"


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


def test_undoing_walks_back_move_by_move_and_a_new_move_forgets_what_was_undone(session: Session) -> None:
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


def test_a_turn_is_undone_with_the_head_that_was_made_for_it(session: Session) -> None:
    session.append(SystemEntry(blocks=("a",), model="m"))
    session.append(said("one"))
    first = session.append(answered("yes"))
    session.append(SystemEntry(blocks=("b",), model="m"))
    asked = session.append(said("two"))
    session.append(answered("no"))
    step = session.history.newest()
    assert (step.start, step.entry) == (first.id, asked.id)


def test_what_is_not_the_tree_is_kept_with_the_session(session: Session) -> None:
    session.append(SystemEntry(blocks=("x",), model="first/model"))
    session.append(said("by the program", synthetic="continue"))
    session.append(said("what I asked"))
    session.append(said("what I asked next"))
    session.append(answered("ok", model="second/model"))
    session.append(CheckpointEntry(files=()))
    session.set_title("A title")
    info = session.info
    assert (info.first_message, info.model, info.title) == ("what I asked", "second/model", "A title")
    assert (info.entry_count, info.leaf, info.cwd) == (6, 6, "/project")


def test_a_read_only_session_can_be_read_and_refuses_changes(session: Session, reopen: Reopen) -> None:
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
