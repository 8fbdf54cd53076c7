"""Started where something is missing, the program says so in one sentence, and what it prints gets out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GONE = "The directory you are in is not there any more: change to another one."
PROGRAM = (sys.executable, "-m", "tui_agent")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    own = {"TUI_AGENT_DATA_DIR": str(tmp_path / "data"), "TUI_AGENT_CONFIG_DIR": str(tmp_path / "config")}
    return {**os.environ, **own, "PYTHONPATH": str(Path(__file__).parents[2])}


def run(command: str, environment: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    shell = ["sh", "-c", command, *PROGRAM]
    return subprocess.run(shell, check=False, env=environment, cwd=cwd, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ('"$0" "$@" <&-', 2, "The full-screen program needs a terminal; use -p for a run without one.\n"),
        ('"$0" "$@" >&-', 2, "The full-screen program needs a terminal; use -p for a run without one.\n"),
        ('"$0" "$@" sessions list >&-', 0, ""),
        ('"$0" "$@" sessions list 2>&-', 0, ""),
        ('mkdir gone; cd gone; rmdir ../gone; "$0" "$@" sessions list', 2, f"{GONE}\n"),
    ],
)
def test_what_is_missing_is_told_in_a_sentence(
    tmp_path: Path, environment: dict[str, str], command: str, code: int, said: str
) -> None:
    done = run(command, environment, tmp_path)
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full here")
@pytest.mark.parametrize("arguments", ["--demo -p hello", "--demo -p hello --json", "models"])
def test_a_full_disk_behind_the_output_is_told(tmp_path: Path, environment: dict[str, str], arguments: str) -> None:
    done = run(f'"$0" "$@" {arguments} >/dev/full', environment, tmp_path)
    assert (done.returncode, done.stderr) == (1, "The disk is full: nothing more could be written.\n")


def test_a_run_ends_when_nobody_reads_its_events_any_more(tmp_path: Path, environment: dict[str, str]) -> None:
    done = run('"$0" "$@" --demo -p "show markdown" --json | head -n 1', environment, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('{"type": "session"')


def test_letters_that_a_locale_does_not_have_are_replaced(tmp_path: Path, environment: dict[str, str]) -> None:
    environment |= {"PYTHONIOENCODING": "ascii"}
    done = run('"$0" "$@" --demo -p hello', environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "I am a script" in done.stdout


ENDLESS = """
import asyncio, atexit, threading
from tui_agent.cli.ending import leave, run_to_end

async def work():
    going = asyncio.Event()
    loop = asyncio.get_running_loop()
    def compute():
        loop.call_soon_threadsafe(going.set)
        threading.Event().wait()
    asyncio.ensure_future(asyncio.to_thread(compute))
    await going.wait()
    asyncio.ensure_future(asyncio.create_subprocess_exec("true", stdout=-1))
    await asyncio.sleep(0)
    return 3

atexit.register(print, "cleaned up")
leave(run_to_end(work()))
"""


def test_neither_a_thread_nor_a_program_that_starts_holds_the_end() -> None:
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (3, "cleaned up\n")
    # Whoever closes the program's pipes may wait for it before asyncio does, which then says so.
    assert [line for line in done.stderr.splitlines() if not line.startswith("Unknown child process pid")] == []
