"""Ctrl+Z and fg, in a shell with job control: what the shell gets is its terminal, what comes back is the screen."""

import signal
import sys

import psutil
import pytest

from tests.support.place import PROMPT_HINT, Place
from tests.support.terminal import Terminal

PROGRAM = f"{sys.executable} -m tui_agent"
FULL_SCREEN = (1049, 1000, 1003, 1004)


def start(shell: Terminal, command: str) -> None:
    shell.type(f"{command}\r")
    shell.wait_for(PROMPT_HINT)
    shell.type("half a thought")
    shell.wait_for("half a thought")
    # What the terminal answers to a question would be the shell's otherwise.
    shell.wait_quiet()


def suspended(shell: Terminal) -> None:
    """Wait until the shell has the terminal, and use it."""
    shell.wait_for("Stopped")
    assert not any(shell.modes.get(mode) for mode in FULL_SCREEN)
    shell.type("echo $((6*7)) here\r")
    shell.wait_for("42 here")


def back(shell: Terminal) -> None:
    shown = shell.raw.count(b"\x1b[?1049h")
    shell.type("fg\r")
    shell.wait_until(lambda: shell.raw.count(b"\x1b[?1049h") > shown, "the full screen")
    shell.wait_gone("42 here")
    shell.wait_for("half a thought")
    shell.wait_for("ctrl+p commands")
    shell.wait_quiet()
    assert all(shell.modes[mode] for mode in FULL_SCREEN)


@pytest.mark.parametrize(
    "command", [PROGRAM, f"sh -c '{PROGRAM}; true'"], ids=["itself", "below another"]
)
def test_it_stops_and_comes_back_twice_to_a_terminal_of_another_size_too(
    shell: Terminal, command: str
) -> None:
    start(shell, command)
    for size in ((100, 30), (60, 20)):
        shell.press("ctrl+z")
        suspended(shell)
        shell.resize(*size)
        back(shell)
        shell.wait_until(
            lambda: shell.lines[-1].endswith("commands"), "the last line at the bottom"
        )
    shell.type(" goes on")
    shell.wait_for("half a thought goes on")
    shell.press("ctrl+u", "ctrl+q")
    shell.wait_until(
        lambda: shell.lines[-1].startswith("shell>") or "shell>" in shell.text, "the shell"
    )
    assert "Traceback" not in shell.text


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGSTOP])
def test_it_bears_to_be_stopped_by_somebody_else(shell: Terminal, number: signal.Signals) -> None:
    start(shell, PROGRAM)
    (program,) = psutil.Process(shell.process.pid).children()
    program.send_signal(number)
    shell.wait_for("Stopped")
    shell.type("fg\r")
    shell.wait_until(lambda: shell.raw.count(b"\x1b[?1049h") == 2, "the screen")
    shell.wait_for("ctrl+p commands")
    shell.type(" goes on")
    shell.wait_for("half a thought goes on")


def test_without_a_shell_it_goes_on(own_place: Place) -> None:
    terminal = own_place.start()
    terminal.press("ctrl+z")
    terminal.wait_for("nothing could resume it")
    terminal.type("hello")
    terminal.wait_for("hello")
