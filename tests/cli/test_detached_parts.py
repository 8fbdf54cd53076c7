"""The pieces of detached runs: messages in any pieces, terminals in any state, the private directory."""

import os
import socket
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.cli.detached import commands
from tui_agent.cli.detached.attach import _Attached
from tui_agent.cli.detached.frames import (
    MAX_PAYLOAD,
    BadFrameError,
    FrameReader,
    Kind,
    frame,
    read_size,
    size_frame,
)
from tui_agent.cli.detached.modes import TerminalModes
from tui_agent.cli.detached.runs import DetachedError, Run, all_runs, find, new_name, runs_dir
from tui_agent.cli.sessions import open_store
from tui_agent.paths import DATA_VARIABLE
from tui_agent.session.entries import TextPart, UserEntry
from tui_agent.session.ids import short_id
from tui_agent.session.session import Session

messages = st.lists(st.tuples(st.sampled_from(Kind), st.binary(max_size=300)), max_size=8)


@given(messages, st.lists(st.integers(1, 50)))
def test_messages_come_out_as_they_went_in(sent: list[tuple[Kind, bytes]], cuts: list[int]) -> None:
    data = b"".join(frame(kind, payload) for kind, payload in sent)
    reader = FrameReader()
    came = []
    for cut in [*cuts, len(data)]:
        came += reader.feed(data[:cut])
        data = data[cut:]
    came += reader.feed(data)
    assert came == sent


@given(st.binary(max_size=200))
def test_bytes_of_others_are_messages_or_refused(data: bytes) -> None:
    reader = FrameReader()
    try:
        for kind, payload in reader.feed(data):
            assert isinstance(kind, Kind)
            assert len(payload) <= MAX_PAYLOAD
    except BadFrameError:
        pass


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("import time; time.sleep(600)", "it did not answer"),
        ("import time; print('hello', flush=True); time.sleep(600)", "it did not answer"),
        ("import sys; sys.exit('no room left')", "no room left"),
    ],
)
def test_a_run_that_does_not_start_is_told_in_a_sentence(
    does: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "READY_PATIENCE", 2.0)
    monkeypatch.setattr(commands, "START_PATIENCE", 2.0)
    monkeypatch.setattr(commands, "isolated_module", lambda *_words: [sys.executable, "-c", does])
    with pytest.raises(DetachedError, match=told):
        commands.start([], prompt="", cwd=tmp_path)


def test_sizes() -> None:
    [(kind, payload)] = FrameReader().feed(size_frame(120, 35))
    assert kind is Kind.SIZE
    assert read_size(payload) == (120, 35)
    assert read_size(b"\0\0\0\0") == (2, 2)
    with pytest.raises(BadFrameError):
        read_size(b"\0")


PIECES = [
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    b"\x1b[?25l",
    b"\x1b[?25h",
    b"\x1b[?1000;1006h",
    b"\x1b[?1000l",
    b"\x1b[?2004h",
    b"\x1b[>1u",
    b"\x1b[<u",
    b"\x1b]2;a title\x07",
    b"\x1b[?2026h",
    b"text",
    b"\x1b[31m",
    b"\x1b[",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.integers(1, 7))
def test_the_state_is_read_alike_in_any_pieces(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    whole = TerminalModes()
    whole.feed(data)
    cut = TerminalModes()
    for at in range(0, len(data), size):
        cut.feed(data[at : at + size])
    assert cut.entering() == whole.entering()
    assert cut.title == whole.title


@given(st.lists(st.sampled_from(PIECES[:9]), max_size=30))
def test_a_terminal_is_left_as_it_was_found(pieces: list[bytes]) -> None:
    modes = TerminalModes()
    modes.feed(b"".join(pieces))
    screen = pyte.Screen(20, 5)
    stream = pyte.ByteStream(screen)
    before = set(screen.mode)
    # pyte knows no keyboard protocol.
    stream.feed(modes.entering().replace(b"\x1b[>1u", b""))
    stream.feed(modes.leaving().replace(b"\x1b[<u", b""))
    assert set(screen.mode) == before
    assert modes.leaving().count(b"\x1b[<u") == modes.entering().count(b"\x1b[>1u")


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Return a directory whose sockets have short names, wherever the tests' own are."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


def test_the_directory_is_private(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(short_path))
    place = runs_dir()
    assert place.is_relative_to(short_path)
    assert place.stat().st_mode & 0o077 == 0
    (place / "dead.json").write_text(
        '{"name": "dead", "pid": 999999999, "cwd": "/", "prompt": "", "started": 0}'
    )
    (place / "odd.json").write_text("[1]")
    assert all_runs() == {}
    assert list(place.iterdir()) == [], "nothing is left of runs that are gone"
    with pytest.raises(DetachedError, match="There are no detached runs"):
        find("")
    place.chmod(0o755)
    assert runs_dir() != place, "others could look into it"


def test_a_long_way_to_the_directory_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / ("long" * 30)))
    assert len(os.fsencode(runs_dir() / f"{new_name()}.sock")) < 104


def test_a_run_that_ends_as_its_terminal_attaches_is_gone_and_no_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _descriptor: os.terminal_size((80, 24)))
    here, there = socket.socketpair()
    resized, resizes = socket.socketpair()
    keys, typed = os.pipe()
    there.close()
    with os.fdopen(keys) as stdin, here, resized, resizes:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", sys.__stdout__)
        assert _Attached(Run("abcd", 1, "/", "", 0.0), here, resized).pass_on() == 1
    os.close(typed)
    assert "The run abcd is gone" in capfd.readouterr().out


def test_logs_follow_a_run_into_another_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    with open_store() as store:
        first = Session(store, store.create_session("/").id, estimate=lambda _entry: 1)
        second = Session(store, store.create_session("/").id, estimate=lambda _entry: 1)
        first.append(UserEntry(parts=(TextPart(text="one"),)))
        opened = [first.id]
        steps = [(second, first, "two"), (second, second, "three"), (first, second, "four")]

        def is_alive(_run: Run) -> bool:
            """Do the run's next step: add a message to a session, and open one."""
            if not steps:
                return False
            opens, session, text = steps.pop(0)
            session.append(UserEntry(parts=(TextPart(text=text),)))
            opened.append(opens.id)
            return True

        monkeypatch.setattr(commands, "find", lambda _id: Run("abcd", 1, "/", "", 0.0))
        monkeypatch.setattr(commands, "session_of", lambda _name: opened[-1])
        monkeypatch.setattr(commands, "is_alive", is_alive)
        monkeypatch.setattr(commands, "LOOK_SECONDS", 0.0)
        assert commands.run_logs(Namespace(id="abcd", follow=True)) == 0
    texts = [line for line in capsys.readouterr().out.splitlines() if line]
    assert texts == [
        "▌ one",
        "▌ two",
        f"— session {short_id(second.id)} —",
        "▌ three",
        "▌ four",
        f"— session {short_id(first.id)} —",
    ]
