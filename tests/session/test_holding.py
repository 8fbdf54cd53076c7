"""Who may work on a session while another program has it open."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.texts import said, texts
from tui_agent.session.errors import SessionHeld, SessionTakenOver
from tui_agent.session.records import DraftText
from tui_agent.session.session import Session
from tui_agent.session.store import Store

Reopen = Callable[..., Session]
ROOT = Path(__file__).parents[2]


def test_a_held_session_names_who_holds_it(session: Session, reopen: Reopen) -> None:
    session.hold()
    with pytest.raises(SessionHeld) as caught:
        reopen(session).hold()
    assert (caught.value.pid, caught.value.host) == (os.getpid(), socket.gethostname())
    holder = reopen(session).info.held_by
    assert holder is not None
    assert (holder.pid, holder.since) == (os.getpid(), caught.value.since)


def test_two_objects_of_one_program_exclude_each_other_too(store: Store, session: Session) -> None:
    session.hold()
    session.hold()
    second = Session(store, session.id, estimate=lambda _entry: 1)
    with pytest.raises(SessionHeld, match="already open here"):
        second.hold()
    session.release()
    second.hold()


def test_whoever_is_taken_over_is_told_and_can_only_read(session: Session, reopen: Reopen) -> None:
    session.append(said("a"))
    session.hold()
    other = reopen(session)
    other.hold(take_over=True)
    other.append(said("b"))
    changes: list[Callable[[], object]] = [
        lambda: session.append(said("lost?")),
        lambda: session.move(None),
        lambda: session.save_draft(DraftText("x")),
        lambda: session.label(1, "x"),
    ]
    for change in changes:
        with pytest.raises(SessionTakenOver):
            change()
    assert session.read_only
    assert session.leaf == 1
    assert texts(session.path()) == ["a"]
    assert texts(other.skeleton()) == ["a", "b"]


def test_a_session_can_be_taken_back(session: Session, reopen: Reopen) -> None:
    session.hold()
    assert not session.check_for_take_over()
    other = reopen(session)
    other.hold(take_over=True)
    assert session.check_for_take_over()
    assert session.read_only, "looking is enough to know"
    with pytest.raises(SessionTakenOver):
        session.append(said("no"))
    session.hold(take_over=True)
    assert session.append(said("yes")).id == 1
    with pytest.raises(SessionTakenOver):
        other.append(said("no"))


def test_releasing_frees_only_what_one_holds(session: Session, reopen: Reopen) -> None:
    session.hold()
    reopen(session).release()
    with pytest.raises(SessionHeld):
        reopen(session).hold()
    session.release()
    assert session.info.held_by is None
    reopen(session).hold()


def test_a_killed_program_holds_nothing(session: Session) -> None:
    program = (
        "import sys; from pathlib import Path; from tui_agent.session.store import Store\n"
        "from tui_agent.session.session import Session\n"
        "session = Session(Store(Path(sys.argv[1])), sys.argv[2], estimate=lambda entry: 1)\n"
        "session.hold(); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(session.store.path), session.id]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(SessionHeld, match=f"process {child.pid} on"):
            session.hold()
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=60)
    assert session.info.held_by is None
    session.hold()


def test_no_lock_files_are_left_behind(session: Session, reopen: Reopen) -> None:
    locks = session.store.path.with_name("sessions.db.locks")
    session.hold()
    other = reopen(session)
    other.hold(take_over=True)
    assert len(list(locks.iterdir())) == 2
    session.store.close()
    other.store.close()
    assert list(locks.iterdir()) == []
