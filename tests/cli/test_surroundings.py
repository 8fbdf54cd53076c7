"""Started where something is missing, the program says so in one sentence, and what it prints gets out."""

import os
import subprocess
import sys
from collections import ChainMap
from pathlib import Path

import pytest

GONE = "The current directory no longer exists. Change to another one."
PROGRAM = (sys.executable, "-m", "tui_agent")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    own = {
        "TUI_AGENT_DATA_DIR": str(tmp_path / "data"),
        "TUI_AGENT_CONFIG_DIR": str(tmp_path / "config"),
    }
    usual = {"TERM": "xterm", "PYTHONPATH": str(Path(__file__).parents[2])}
    return {**os.environ, **own, **usual}


def run(command: str, environment: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    shell = ["sh", "-c", command, *PROGRAM]
    return subprocess.run(
        shell, check=False, env=environment, cwd=cwd, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (
            '"$0" "$@" <&-',
            2,
            "The full-screen program needs a terminal. Without one, use -p.\n",
        ),
        (
            '"$0" "$@" >&-',
            2,
            "The full-screen program needs a terminal. Without one, use -p.\n",
        ),
        (
            'TERM=dumb "$0" "$@" --demo >&-',
            1,
            "Standard output is closed, so the answer would be lost. Send it to a file or to /dev/null.\n",
        ),
        ('TERM=dumb "$0" "$@" --demo </dev/null >/dev/null', 0, ""),
        ('"$0" "$@" sessions list >&-', 0, ""),
        ('"$0" "$@" sessions list 2>&-', 0, ""),
        (
            '"$0" "$@" --demo -p hello >&-',
            1,
            "Standard output is closed, so the answer would be lost. Send it to a file or to /dev/null.\n",
        ),
        (
            'head -c 3000 /bin/ls | "$0" "$@" --demo -p hello',
            2,
            "Standard input is binary, not text. Save it as a file and name the file in the prompt.\n",
        ),
        ('mkdir gone; cd gone; rmdir ../gone; "$0" "$@" sessions list', 2, f"{GONE}\n"),
    ],
)
def test_what_is_missing_is_told_in_a_sentence(
    tmp_path: Path, environment: dict[str, str], command: str, code: int, said: str
) -> None:
    done = run(command, environment, tmp_path)
    assert (done.returncode, done.stderr) == (code, said)


def test_a_terminal_that_was_closed_is_no_failure(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    ours, theirs = os.openpty()
    os.close(ours)
    with subprocess.Popen(
        [*PROGRAM, "config", "get"],
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(theirs)
        _out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")
    assert not list(tmp_path.rglob("tui-agent.log"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter any directory")
def test_a_home_that_is_closed_is_named_with_the_variable_that_helps(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    own = {"HOME": str(closed), "PYTHONPATH": str(Path(__file__).parents[2])}
    environment = {"PATH": os.environ["PATH"], **own}
    said = run('"$0" "$@" --demo -p hello', environment, tmp_path).stderr
    assert "Permission denied. Set TUI_AGENT_CONFIG_DIR to use another directory" in said
    environment["TUI_AGENT_CONFIG_DIR"] = str(tmp_path / "config")
    said = run('"$0" "$@" --demo -p hello', environment, tmp_path).stderr
    assert "Set TUI_AGENT_DATA_DIR to another directory" in said
    done = run('"$0" "$@" --demo -p hello --no-session', environment, tmp_path)
    assert "I am a script" in done.stdout


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="there is no disk that is always full here"
)
@pytest.mark.parametrize("arguments", ["--demo -p hello", "--demo -p hello --json", "models"])
def test_a_full_disk_behind_the_output_is_told(
    tmp_path: Path, environment: dict[str, str], arguments: str
) -> None:
    done = run(f'"$0" "$@" {arguments} >/dev/full', environment, tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        "The disk is full, so nothing more could be written.\n",
    )


def test_a_run_ends_when_nobody_reads_its_events_any_more(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = run('"$0" "$@" --demo -p "show markdown" --json | head -n 1', environment, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('{"type": "session"')


def test_letters_that_a_locale_does_not_have_are_replaced(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    environment |= {"PYTHONIOENCODING": "ascii"}
    done = run('"$0" "$@" --demo -p hello', environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "I am a script" in done.stdout


ENDLESS = """
import asyncio, atexit, threading
from tui_agent.__main__ import leave
from tui_agent.cli.ending import run_to_end

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
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "cleaned up\n", "")


UNWRITABLE = "/proc"


@pytest.mark.skipif(
    not Path(UNWRITABLE).exists(), reason="there is no directory that nobody can write to"
)
def test_a_home_that_cannot_be_written_to_is_told_with_the_variable_that_helps(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    environment = {
        name: value
        for name, value in environment.items()
        if not name.startswith(("TUI_AGENT_", "XDG_"))
    }
    environment |= {"HOME": UNWRITABLE}
    done = run('"$0" "$@" --demo -p hello', environment, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Sessions can't be stored in /proc/.local/share/tui-agent: ")
    assert "TUI_AGENT_DATA_DIR" in done.stderr
    assert done.stderr.count("\n") == 1
    kept_nowhere = run('"$0" "$@" --demo --no-session -p hello', environment, tmp_path)
    assert (kept_nowhere.returncode, kept_nowhere.stderr) == (0, "")
    assert "I am a script" in kept_nowhere.stdout


@pytest.mark.daily(0)
@pytest.mark.parametrize("place", ["a/../d/", "./d", "a/../d", "d/"])
def test_a_relative_data_directory_is_one(
    tmp_path: Path, environment: dict[str, str], place: str
) -> None:
    done = run('"$0" "$@" --demo -p hello', environment | {"TUI_AGENT_DATA_DIR": place}, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "d").is_dir()


ODD = (
    {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LC_ALL": "en_US.ISO-8859-1"}, {"LANG": "xx_YY"}, {"TERM": "dumb"},
    {"TERM": ""}, {"PATH": ""}, {"TZ": "Nowhere/Land"}, {"HOME": ""}, {"HOME": "relative"}, {"HOME": "/dev/null"},
    {"TMPDIR": "/nowhere"}, {"SHELL": "/nowhere"}, {"COLUMNS": "x"}, {"NO_PROXY": "[", "ALL_PROXY": "socks://x"},
)  # fmt: skip
TOGETHER = tuple(dict(ChainMap(*ODD[first::3])) for first in range(3))
"""As many of them at once as have different names; one may hide what another would do, so every night each is alone."""


@pytest.mark.parametrize(
    "surroundings",
    [*TOGETHER, *(pytest.param(alone, marks=pytest.mark.nightly) for alone in ODD)],
    ids=str,
)
def test_odd_variables_change_nothing(
    tmp_path: Path, environment: dict[str, str], surroundings: dict[str, str]
) -> None:
    shell = ["/bin/sh", "-c", '"$0" "$@" --demo -p hello', *PROGRAM]
    done = subprocess.run(
        shell,
        check=False,
        env=environment | surroundings,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert b"I am a script" in done.stdout
    assert b"Traceback" not in done.stderr


@pytest.mark.daily(0)
@pytest.mark.parametrize("mask", ["000", "077", "777"])
def test_any_umask(tmp_path: Path, environment: dict[str, str], mask: str) -> None:
    done = run(f'umask {mask}; "$0" "$@" --demo --no-session -p hello', environment, tmp_path)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or done.stderr.count("\n") == 1
