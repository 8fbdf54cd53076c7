"""What is on the terminal before the interface: typed into at once, and never left behind."""

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from tests.support.model_server import ModelServer
from tests.support.place import PROMPT_HINT, Place
from tests.support.terminal import Terminal
from tests.support.thoroughness import NIGHTLY
from tui_agent.ui.early_prompt import ALTERNATE_SCREEN, NORMAL_SCREEN

SIZE = (100, 30)
HELD = """
import importlib.abc, os, sys, time

class Gate(importlib.abc.MetaPathFinder):
    '''Holds the program where the early prompt is shown until a file is there.'''
    def find_spec(self, name, path, target=None):
        if name == "tui_agent.cli.screen":
            for _ in range(6000):
                if os.path.exists(sys.argv[1]):
                    break
                time.sleep(0.01)

sys.meta_path.insert(0, Gate())
from tui_agent.cli.main import run
sys.exit(run([]))
"""


class Held(NamedTuple):
    """A shell in which the program was started and held before its interface, until there is a file ``gate``."""

    shell: Terminal
    gate: Path

    @property
    def program(self) -> psutil.Process:
        return psutil.Process(self.shell.process.pid).children()[0]


@pytest.fixture(scope="module")
def data_of_a_start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the program left behind that was started once in a terminal of this size."""
    place = Place(tmp_path_factory.mktemp("started"))
    data = place.root / "data"
    with place.start(size=SIZE) as terminal:
        terminal.wait_until((data / "cache" / "early-prompt.json").is_file, "the picture")
        terminal.wait_for("[ Compact ]")  # the session is open
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0
    return data


@pytest.fixture
def place(own_place: Place, data_of_a_start: Path) -> Place:
    """A user who has started the program once in a terminal of this size."""
    shutil.copytree(data_of_a_start, own_place.root / "data", dirs_exist_ok=True)
    return own_place


@pytest.fixture
def held(place: Place, shell: Terminal) -> Held:
    """The program, shown early."""
    script, gate = place.root / "held.py", place.root / "go"
    script.write_text(HELD, encoding="utf-8")
    shell.type(
        f"stty -g; PYTHONPATH={Path(__file__).parents[2]} {sys.executable} {script} {gate}\r"
    )
    shell.wait_until(lambda: ALTERNATE_SCREEN.encode() in shell.raw, "the early prompt")
    shell.wait_for("▌")
    return Held(shell, gate)


def typed(held: Held, text: str, shown: str) -> None:
    held.shell.type(text)
    held.shell.wait_for(shown)


def test_what_is_typed_is_shown_at_once_and_in_the_prompt(held: Held) -> None:
    typed(held, "half a thaught\x7f\x7f\x7f\x7f\x7fought", "▌ half a thought")
    assert PROMPT_HINT not in held.shell.text
    held.gate.touch()
    held.shell.wait_for("ctrl+p commands")
    held.shell.wait_for("▌ half a thought")
    held.shell.type(" goes on")
    held.shell.wait_for("▌ half a thought goes on")


def test_a_key_without_a_letter_is_taken_later_and_a_resize_followed(held: Held) -> None:
    typed(held, "word\x1b[D\x1b[Dxx", "xx")
    held.shell.resize(60, 20)
    held.gate.touch()
    held.shell.wait_for("ctrl+p commands")
    held.shell.wait_for("▌ woxxrd")
    assert max(map(len, held.shell.lines)) <= 60


def test_escape_of_vi_keys_is_not_joined_with_the_letter_after_it(place: Place, held: Held) -> None:
    with (place.root / "config" / "config.toml").open("a", encoding="utf-8") as file:
        file.write("\n[ui]\nvim = true\n")
    typed(held, "one two three\x1bbdw", "three")
    held.gate.touch()
    held.shell.wait_for("ctrl+p commands")
    held.shell.wait_until(lambda: "three" not in held.shell.text, "the word deleted")
    held.shell.wait_for("▌ one two")


def test_enter_sends(place: Place, server: ModelServer, held: Held) -> None:
    place.configure(server.openai_url)
    typed(held, "what is this\r", "what is this")
    held.gate.touch()
    held.shell.wait_for("You said: what is this")


def test_lines_that_were_pasted_are_not_sent_one_by_one(held: Held) -> None:
    typed(held, "first line\rsecond line\r", "second line")
    held.gate.touch()
    held.shell.wait_for("ctrl+p commands")
    held.shell.wait_for("▌ first line")
    held.shell.wait_for("▌ second line")


@pytest.mark.parametrize("signal", ["ctrl+c", "TERM"])
def test_ended_early_the_shell_has_its_screen_and_no_keys(held: Held, signal: str) -> None:
    typed(held, "echo not-for-the-shell", "not-for-the-shell")
    if signal == "TERM":
        held.program.terminate()
    else:
        held.shell.press(signal)
    held.shell.wait_until(lambda: NORMAL_SCREEN.encode() in held.shell.raw, "the normal screen")
    held.shell.wait_until(lambda: held.shell.raw.rstrip().endswith(b"shell>"), "the shell")
    assert "not-for-the-shell" not in held.shell.raw.decode().rpartition(NORMAL_SCREEN)[2]


def test_killed_early_it_leaves_the_modes_of_the_terminal_alone(held: Held) -> None:
    typed(held, "word", "word")
    held.program.kill()
    held.shell.wait_for("shell> word")
    held.shell.type("\x15stty -g; echo $((6*7)) here\r")
    held.shell.wait_for("42 here")
    before, after = [line for line in held.shell.raw.decode().split("\n") if line.count(":") > 30]
    assert before.strip() == after.strip()


def test_it_is_stopped_as_soon_as_the_interface_can(held: Held) -> None:
    held.shell.press("ctrl+z")
    typed(held, "a thought", "a thought")
    held.gate.touch()
    held.shell.wait_for("Stopped")
    assert not held.shell.modes[1049]
    held.shell.type("fg\r")
    held.shell.wait_for("ctrl+p commands")


BROKEN = ['{"size": [100, 30], "picture": 3}', "{", "", "[]", '{"size": 3}']


@pytest.mark.parametrize("content", BROKEN if NIGHTLY else BROKEN[:2])
def test_a_broken_file_is_no_picture(place: Place, content: str) -> None:
    (place.root / "data" / "cache" / "early-prompt.json").write_text(content, encoding="utf-8")
    with place.start(size=SIZE) as terminal:
        terminal.type("word")
        terminal.wait_for("▌ word")


def test_another_size_has_no_picture(place: Place) -> None:
    with place.start(size=(80, 24)) as terminal:
        assert terminal.raw.count(ALTERNATE_SCREEN.encode()) == 1
        assert b"\x1b[2J" not in terminal.raw
