"""Who may work on a session while another program has it open."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.texts import answered, said, texts
from tui_agent.session.entries import ReasoningPart, TextPart, ToolCallPart
from tui_agent.session.errors import SessionHeld, SessionTakenOver
from tui_agent.session.records import DraftText, children
from tui_agent.session.session import Session
from tui_agent.session.store import Store

Reopen = Callable[..., Session]
ROOT = Path(__file__).parents[2]


def test_a_held_session_names_who_holds_it_until_it_is_released(
    session: Session, reopen: Reopen
) -> None:
    session.hold()
    session.hold()
    other = reopen(session)
    other.release()
    with pytest.raises(SessionHeld, match="already open here") as caught:
        other.hold()
    assert (caught.value.pid, caught.value.host) == (os.getpid(), socket.gethostname())
    holder = other.info.held_by
    assert (holder.pid, holder.since) == (os.getpid(), caught.value.since)
    with pytest.raises(SessionHeld):
        Session(session.store, session.id, estimate=lambda _entry: 1).hold()
    session.release()
    assert session.info.held_by is None
    other.hold()


def test_whoever_is_taken_over_is_told_and_can_only_read_until_it_takes_it_back(
    session: Session, reopen: Reopen
) -> None:
    session.append(said("a"))
    session.hold()
    assert not session.check_for_take_over()
    other = reopen(session)
    other.hold(take_over=True)
    assert session.check_for_take_over()
    assert session.read_only, "looking is enough to know"
    other.append(said("b"))
    changes: list[Callable[[], object]] = [
        lambda: session.append(said("lost?")),
        lambda: session.move(None),
        lambda: session.save_draft(DraftText("x")),
        lambda: session.label(1, "x"),
    ]
    for change in changes:
        with pytest.raises(SessionTakenOver) as raised:
            change()
        assert raised.value.session_id == session.id
    assert texts(session.path()) == ["a"]
    assert texts(other.skeleton()) == ["a", "b"]
    session.hold(take_over=True)
    assert session.append(said("back")).id == 3
    with pytest.raises(SessionTakenOver):
        other.append(said("no"))


def test_a_killed_program_holds_nothing_and_no_lock_files_are_left_behind(
    session: Session, reopen: Reopen
) -> None:
    program = (
        "import sys; from pathlib import Path; from tui_agent.session.store import Store\n"
        "from tui_agent.session.session import Session\n"
        "session = Session(Store(Path(sys.argv[1])), sys.argv[2], estimate=lambda entry: 1)\n"
        "session.hold(); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(session.store.path), session.id]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(SessionHeld, match=f"process {child.pid} on"):
            session.hold()
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=60)
    assert session.info.held_by is None
    session.hold()

    locks = session.store.path.with_name("sessions.db.locks")
    session.hold()
    other = reopen(session)
    other.hold(take_over=True)
    assert len(list(locks.iterdir())) == 2
    session.store.close()
    other.store.close()
    assert list(locks.iterdir()) == []


BATCHES, BATCH = 50, 10

WRITER = f"""
import sys
from pathlib import Path
from tests.support.texts import said
from tui_agent.session.session import Session
from tui_agent.session.store import Store

session = Session(Store(Path(sys.argv[1])), sys.argv[2], estimate=lambda entry: 1)
if sys.argv[3] == "a":
    session.hold()
print("open", flush=True)
for batch, _go in enumerate(sys.stdin):
    ids = [session.append(said(f"{{sys.argv[3]}} {{batch * {BATCH} + at}}")).id for at in range({BATCH})]
    print(session.leaf, flush=True)
"""


def test_a_thousand_interleaved_appends_of_two_programs(session: Session, store: Store) -> None:
    root = session.append(said("root"))
    leaves = {"a": 0, "b": 0}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, str(store.path), session.id, name],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for name in leaves
        }
        for writer in writers.values():
            assert writer.stdout.readline() == "open\n"
        for _ in range(BATCHES):
            for writer in writers.values():
                writer.stdin.write("go\n")
                writer.stdin.flush()
            for name, writer in writers.items():
                leaves[name] = int(writer.stdout.readline())
        for writer in writers.values():
            writer.stdin.close()
    headers = {header.id: header for header in session.skeleton()}
    assert sorted(headers) == list(range(1, 2 + 2 * BATCHES * BATCH))
    for name, leaf in leaves.items():
        line = session.reader.parting(leaf, None).left
        previews = [headers[entry.id].preview for entry in line]
        assert previews == ["root", *(f"{name} {n}" for n in range(BATCHES * BATCH))]
    assert [parent for parent, ids in children(headers.values()).items() if len(ids) > 1] == [
        root.id
    ]
    owners = [headers[i].preview[0] for i in range(2, len(headers) + 1)]
    assert sum(left != right for left, right in pairwise(owners)) >= BATCHES - 1
    assert (session.leaf, session.reader.damaged) == (root.id, 0)
    assert Session(store, session.id, estimate=lambda _entry: 1).leaf in leaves.values()


def call(arguments: str) -> ToolCallPart:
    return ToolCallPart(call_id=f"c{len(arguments)}", tool="bash", arguments=arguments)


def end(session: Session) -> None:
    """Let the program that works with this session end without a word."""
    session.store.close()


def test_a_left_over_draft_becomes_an_interrupted_answer(session: Session, reopen: Reopen) -> None:
    session.append(said("do it"))
    session.save_draft(DraftText("first"))
    whole, cut = call('{"command": "ls"}'), call('{"command": "l')
    session.save_draft(
        DraftText(
            "I will \ud800\0", "thinking", (whole, cut), model="m/x", started_at=77, estimate=900
        )
    )
    end(session)
    later = reopen(session)
    entry = later.recover()
    assert entry.parts == (
        ReasoningPart(text="thinking", model="m/x"),
        TextPart(text="I will \ufffd\ufffd"),
        whole,
    )
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
        (
            lambda session: session.save_draft(DraftText(calls=(call("{"), call("[]"), call("")))),
            False,
        ),
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


def test_a_draft_goes_where_it_belonged_and_the_leaf_stays_when_it_moved_on(
    session: Session, reopen: Reopen
) -> None:
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
