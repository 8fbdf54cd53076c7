"""The program is asked to end, or its terminal goes away: the terminal is whole again, and so is the session."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.model_script import Call, Fault, Turn
from tests.support.model_server import ModelServer
from tests.support.place import PROMPT_HINT, Place
from tests.support.terminal import TIMEOUT, Terminal, ask
from tests.support.thoroughness import NIGHTLY

INTERRUPTED_IMPORT = """
import os, signal, sys, weakref

class Dropped:
    pass

def interrupt(_):
    os.kill(os.getpid(), signal.SIGINT)
    sum(range(10))  # the interpreter looks for signals now and then

def count(event, arguments):
    global left
    if event == "import":
        left -= 1
        if left == 0:
            dropped = Dropped()
            watched = weakref.ref(dropped, interrupt)
            del dropped

left = int(sys.argv.pop(1))
sys.addaudithook(count)
from tui_agent.__main__ import main
main()
"""
"""A start that is interrupted in a callback of an import, where Python drops every exception."""

MODES = (1049, 1000, 1003, 1006, 1004, 2004)
"""Alternate screen, mouse, focus and pastes: what a shell must not find switched on."""

EDITOR = """#!/bin/sh
trap 'echo interrupted >> "$0.log"' INT
trap 'echo ended >> "$0.log"; exit 1' TERM
echo "EDITOR IS UP"
while ! read -r line; do :; done
printf ' and more' >> "$1"
"""


def sleeping(terminal: Terminal) -> list[psutil.Process]:
    """Return the program's processes that run the test's command; others may end while one looks."""
    found = []
    for child in psutil.Process(terminal.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "4711" in child.cmdline():
                found.append(child)
    return found


@pytest.fixture
def editor(tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor that waits for a line, appends to the text, and tells in a file what signals it got."""
    script = tmp_path / "editor"
    script.write_text(EDITOR)
    script.chmod(0o755)
    monkeypatch.setitem(place.variables, "VISUAL", str(script))
    return script


@pytest.mark.parametrize("imports", range(30, 400, 20) if NIGHTLY else (40, 200))
def test_an_interrupt_while_it_imports_ends_it(
    place: Place, server: ModelServer, tmp_path: Path, imports: int
) -> None:
    place.configure(server.openai_url)
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED_IMPORT)
    done = subprocess.run(
        [sys.executable, "-P", "-E", script, str(imports), "-p", "hello"],
        cwd=place.project,
        env={"PATH": os.environ["PATH"], **place.env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert done.returncode in {-signal.SIGINT, 128 + signal.SIGINT}
    assert (done.stdout, done.stderr) == ("", "")
    assert not server.calls


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_like_the_user_does(
    place: Place, warm_server: ModelServer, number: signal.Signals
) -> None:
    warm_server.play(
        Turn(text="One two three four.", fault=Fault("stall", after=3)), Turn(text="Here again.")
    )
    terminal = place.start()
    ask(terminal, "count")
    terminal.wait_for("One two")
    terminal.process.send_signal(number)
    assert terminal.wait_exit() == 128 + number
    assert not any(terminal.modes[mode] for mode in MODES)
    assert "Continue with: tui-agent -c" in terminal.text
    again = place.start("-c")
    again.wait_for("nterrupted")
    assert "One two" in again.text
    ask(again, "once more")
    again.wait_for("Here again.")


def test_a_terminal_that_goes_away_ends_even_a_program_that_is_deaf_to_it(
    place: Place, warm_server: ModelServer
) -> None:
    warm_server.play(
        Turn(tool_calls=(Call("bash", {"command": "sleep 4711"}),)), Turn(text="Here again.")
    )
    deaf = [
        "sh",
        "-c",
        'trap "" HUP; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "tui_agent",
        "--mode",
        "yolo",
    ]
    terminal = place.open(deaf)
    terminal.wait_for(PROMPT_HINT)
    ask(terminal, "sleep")
    terminal.wait_for("sleep 4711")
    terminal.wait_until(lambda: bool(sleeping(terminal)), "the command to run")
    commands = sleeping(terminal)
    terminal.hang_up()
    terminal.process.wait(TIMEOUT)
    assert not psutil.wait_procs(commands, timeout=TIMEOUT)[1]
    again = place.start("-c")
    ask(again, "once more")
    again.wait_for("Here again.")


def test_keys_meant_for_the_editor_do_not_end_the_program(place: Place, editor: Path) -> None:
    terminal = place.start()
    terminal.type("a draft")
    terminal.wait_for("a draft")
    terminal.press("ctrl+x", "ctrl+e")
    terminal.wait_for("EDITOR IS UP")
    terminal.press("ctrl+c")
    log = editor.with_name("editor.log")
    terminal.wait_until(
        lambda: log.exists() and "interrupted" in log.read_text(), "the editor to hear of it"
    )
    terminal.press("enter")
    terminal.wait_for("a draft and more")
    assert terminal.modes[1049]


def test_a_signal_takes_the_terminal_back_from_the_editor(place: Place, editor: Path) -> None:
    terminal = place.start()
    terminal.press("ctrl+x", "ctrl+e")
    terminal.wait_for("EDITOR IS UP")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.wait_exit() == 128 + signal.SIGTERM
    assert "ended" in editor.with_name("editor.log").read_text()
    assert not any(terminal.modes[mode] for mode in MODES)


def test_bytes_that_are_no_text_are_shown_as_such(place: Place) -> None:
    terminal = place.start()
    terminal.send(b"caf\xe9 \x1b[200~\xff\xfe pasted\x1b[201~ x")
    terminal.wait_for("caf� �� pasted x")
    terminal.press("enter")
    terminal.wait_for("You said: caf�")


def test_it_draws_on_the_terminal_where_errors_go_elsewhere(place: Place, tmp_path: Path) -> None:
    command = [
        "sh",
        "-c",
        'exec "$@" 2>"$0"',
        str(tmp_path / "errors"),
        sys.executable,
        "-m",
        "tui_agent",
    ]
    terminal = place.open(command)
    terminal.wait_for(PROMPT_HINT)
    terminal.press("ctrl+q")
    assert terminal.wait_exit() == 0
    assert not (tmp_path / "errors").read_bytes()


def test_what_a_killed_program_had_given_its_editor_goes_with_the_next_one(
    own_place: Place, editor: Path
) -> None:
    own_place.variables["VISUAL"] = str(editor)

    def given() -> set[Path]:
        return set((own_place.root / "scratch").glob("tui-agent-*/*/prompt.md"))

    first = own_place.start()
    first.press("ctrl+x", "ctrl+e")
    first.wait_for("EDITOR IS UP")
    (left,) = given()
    first.process.kill()
    first.process.wait()
    again = own_place.start()
    again.press("ctrl+x", "ctrl+e")
    again.wait_for("EDITOR IS UP")
    assert len(given() - {left}) == 1
    again.wait_until(lambda: not left.parent.exists(), "what the killed one left to go")
