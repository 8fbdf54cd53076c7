"""What code of others writes to the terminal while the screen is drawn goes to a log file."""

import sys
from pathlib import Path

from tests.support.model_server import ModelServer
from tests.support.place import PROMPT_HINT, Place

ADD_ON = """
import os

def register(add_on):
    os.write(1, b"STRAY-ONE")
    os.write(2, b"STRAY-TWO")
"""
RUN = """
import sys

sys.path.append({packages!r})
from tui_agent.cli.main import run

sys.exit(run([]))
"""


def test_an_add_on_that_writes_to_the_terminal_does_not_destroy_the_screen(
    own_place: Place, warm_server: ModelServer, tmp_path: Path
) -> None:
    packages = tmp_path / "site-packages"
    info = packages / "noisy-1.0.dist-info"
    info.mkdir(parents=True)
    (packages / "noisy_add_on.py").write_text(ADD_ON)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tui_agent.add_ons]\na = noisy_add_on:register\n")
    own_place.configure(warm_server.openai_url)
    terminal = own_place.open([sys.executable, "-c", RUN.format(packages=str(packages))])
    terminal.wait_for(PROMPT_HINT)
    terminal.type("hello\r")
    terminal.wait_for("You said: hello")
    terminal.resize(90, 28)
    terminal.wait_until(lambda: terminal.lines[-1].endswith("commands"), "the last line")
    assert b"STRAY" not in terminal.raw
    [log] = tmp_path.rglob("stray-output.log")
    assert log.read_text() == "STRAY-ONESTRAY-TWO"


def test_ctrl_l_removes_what_another_program_wrote_on_the_screen(
    own_place: Place, warm_server: ModelServer
) -> None:
    own_place.configure(warm_server.openai_url)
    terminal = own_place.start()
    terminal.wait_for(PROMPT_HINT)
    terminal.type("hello\r")
    terminal.wait_for("You said: hello")
    terminal.scribble("\x1b[3;5HGARBAGE\x1b[12;1HGARBAGE\x1b[24;30HGARBAGE")
    assert terminal.text.count("GARBAGE") == 3

    terminal.press("ctrl+l")

    terminal.wait_until(lambda: "GARBAGE" not in terminal.text, "no garbage")
    terminal.wait_for("You said: hello")
