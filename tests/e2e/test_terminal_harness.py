"""The terminal that the end-to-end tests trust: it must show what a program shows, and notice how it ends."""

import sys
from pathlib import Path

import pytest

from tests.support.terminal import Terminal

ECHO = """
import os, shutil, signal, sys, tty
def size(*_):
    columns, rows = shutil.get_terminal_size()
    os.write(1, f"\\x1b[2J\\x1b[1;1Hsize {os.get_terminal_size().columns}x{os.get_terminal_size().lines} ".encode())
signal.signal(signal.SIGWINCH, size)
tty.setraw(0)
os.write(1, b"\\x1b[?1049h\\x1b[>1u\\x1b[?2026$p\\x1b[2;1Hready")
while True:
    data = os.read(0, 100)
    if data == b"q":
        os.write(1, b"\\x1b[<u\\x1b[?1049l")
        sys.exit(3)
    os.write(1, b"\\x1b[3;1H" + repr(data).encode() + "日本 👋".encode())
"""


@pytest.fixture
def echo(tmp_path: Path):
    program = tmp_path / "echo.py"
    program.write_text(ECHO, encoding="utf-8")
    with Terminal([sys.executable, program], size=(40, 10)) as terminal:
        terminal.wait_for("ready")
        yield terminal


def test_it_shows_the_screen_and_answers_queries(echo: Terminal) -> None:
    echo.wait_for(r"b'\x1b[?2026;2$y'")
    echo.press("ctrl+g")
    echo.wait_for(r"b'\x07'日本 👋")
    assert echo.modes[1049]


def test_it_resizes_with_a_signal(echo: Terminal) -> None:
    echo.wait_for("2026;2")  # else the answer could arrive after the signal and scroll the new size away
    echo.resize(10, 3)
    echo.wait_for("size 10x3")
    assert len(echo.lines) == 3


def test_it_tells_the_exit_code_and_restored_modes(echo: Terminal) -> None:
    echo.wait_for("2026;2")
    echo.press("q")
    assert echo.wait_exit() == 3
    assert not echo.modes[1049]


def test_a_wait_that_fails_shows_the_screen(echo: Terminal) -> None:
    with pytest.raises(AssertionError, match="ready"):
        echo.wait_for("never", timeout=0.05)


def test_a_program_that_ended_is_noticed(echo: Terminal) -> None:
    echo.kill()
    with pytest.raises(AssertionError, match="ended before"):
        echo.wait_for("never")
