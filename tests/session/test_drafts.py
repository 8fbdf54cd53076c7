"""What was streamed when a program ended comes back as an interrupted answer."""

from collections.abc import Callable

import pytest

from tests.support.texts import answered, said, texts
from tui_agent.session.entries import ReasoningPart, TextPart, ToolCallPart
from tui_agent.session.records import DraftText
from tui_agent.session.session import Session

Reopen = Callable[..., Session]


def call(arguments: str) -> ToolCallPart:
    return ToolCallPart(call_id=f"c{len(arguments)}", tool="bash", arguments=arguments)


def end(session: Session) -> None:
    """Let the program that works with this session end without a word."""
    session.store.close()


def test_a_left_over_draft_becomes_an_interrupted_answer(session: Session, reopen: Reopen) -> None:
    session.append(said("do it"))
    session.save_draft(DraftText("first"))
    whole, cut = call('{"command": "ls"}'), call('{"command": "l')
    session.save_draft(DraftText("I will \ud800\0", "thinking", (whole, cut), model="m/x", started_at=77, estimate=900))
    end(session)
    later = reopen(session)
    entry = later.recover()
    assert entry.parts == (ReasoningPart(text="thinking", model="m/x"), TextPart(text="I will \ufffd\ufffd"), whole)
    assert (entry.finish, entry.interrupted, entry.model) == ("interrupted", True, "m/x")
    assert (entry.started_at, entry.estimate, entry.parent_id) == (77, 900, 1)
    assert later.leaf == entry.id
    assert texts(later.path()) == ["do it", "I will \ufffd\ufffd"]
    assert later.recover() is None


@pytest.mark.parametrize(
    ("meanwhile", "comes_back"),
    [
        (lambda session: session.append(said("meanwhile")), True),
        (lambda session: session.clear_draft(), False),
        (lambda session: session.append(answered("whole")), False),
        (lambda session: session.save_draft(DraftText()), False),
        (lambda session: session.save_draft(DraftText(calls=(call("{"), call("[]"), call("")))), False),
    ],
    ids=["another entry", "cleared", "answered", "empty", "unfinished calls"],
)
def test_what_becomes_of_a_draft(
    session: Session, reopen: Reopen, meanwhile: Callable[[Session], object], *, comes_back: bool
) -> None:
    session.save_draft(DraftText("half"))
    meanwhile(session)
    end(session)
    assert (reopen(session).recover() is not None) is comes_back


@pytest.mark.parametrize("let_go", [end, Session.release])
def test_the_draft_of_a_live_program_is_left_alone_until_it_ends_or_lets_go(
    session: Session, reopen: Reopen, let_go: Callable[[Session], object]
) -> None:
    session.save_draft(DraftText("still coming"))
    assert reopen(session).recover() is None
    let_go(session)
    assert reopen(session).recover() is not None


def test_a_draft_goes_where_it_belonged_and_the_leaf_stays_when_it_moved_on(session: Session, reopen: Reopen) -> None:
    session.append_many([said("a"), said("b")])
    session.save_draft(DraftText("answer to b"))
    reopen(session).move(1)
    end(session)
    later = reopen(session)
    entry = later.recover()
    assert (entry.parent_id, later.leaf) == (2, 1)


def test_drafts_of_two_dead_programs_both_come_back(session: Session, reopen: Reopen) -> None:
    session.append(said("a"))
    other = reopen(session)
    session.save_draft(DraftText("one"))
    other.save_draft(DraftText("two"))
    end(session)
    end(other)
    later = reopen(session)
    assert later.recover() is not None
    assert sorted(entry.preview for entry in later.skeleton()) == ["a", "one", "two"]


def test_a_damaged_draft_is_dropped(session: Session, reopen: Reopen) -> None:
    session.save_draft(DraftText("half"))
    with session.store.writer() as connection:
        connection.execute("UPDATE drafts SET body = substr(body, 5)")
    end(session)
    later = reopen(session)
    assert later.recover() is None
    assert later.append(said("goes on")).id == 1
