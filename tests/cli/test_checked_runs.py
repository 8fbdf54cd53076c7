"""A run is checked when the model says that it is done, and a run with a key is begun, continued or repeated."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.model_script import Call as ModelCall
from tests.support.model_script import Fault, Turn
from tests.support.model_server import ModelServer
from tests.support.place import Place
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.ports import RunCheck
from tui_agent.cli.output import ExitCode
from tui_agent.session.entries import CheckEntry, UserEntry

ROOT = Path(__file__).parents[2]
ALLOWED = (Rule("bash", "*", Action.ALLOW, "user"), Rule("edit", "*", Action.ALLOW, "user"))


def writing(text: str) -> Reply:
    return Reply(calls=(Call("write", json.dumps({"path": "answer.txt", "content": text})),))


async def checked(
    tmp_path: Path, check: RunCheck, *replies: Reply
) -> tuple[int, list[CheckEntry], list[str], str]:
    """Return exit code, checks, what the model was told of failures, and what was said of a run."""
    harness = make_agent(tmp_path, ScriptedClient(list(replies)), rules=ALLOWED, check=check)
    errors = io.StringIO()
    code = await run_headless(harness, "go", err=errors)
    checks = [entry for entry in harness.path() if isinstance(entry, CheckEntry)]
    told = [
        e.text for e in harness.path() if isinstance(e, UserEntry) and e.synthetic == "check_failed"
    ]
    return code, checks, told, errors.getvalue()


async def test_what_failed_goes_back_until_it_is_right(tmp_path: Path) -> None:
    replies = [reply for text in ("1", "2", "3") for reply in (writing(text), Reply("Done."))]
    check = RunCheck("cat answer.txt; echo expected 3; grep -q 3 answer.txt")
    code, checks, told, _ = await checked(tmp_path, check, *replies)
    assert (code, [entry.exit_code for entry in checks]) == (ExitCode.DONE, [1, 1, 0])
    assert len(told) == 2
    assert "expected 3" in told[0]
    assert "exit code 1" in told[0]


async def test_a_run_that_stays_red_ends_after_the_rounds(tmp_path: Path) -> None:
    replies = [reply for _ in range(9) for reply in (writing("wrong"), Reply("Done."))]
    code, checks, told, said = await checked(tmp_path, RunCheck("false"), *replies)
    assert (code, len(told), len(checks)) == (ExitCode.FAILED, 3, 4)
    assert "The check failed: false" in said


async def test_a_question_that_was_only_answered_is_not_checked(tmp_path: Path) -> None:
    code, checks, _, _ = await checked(tmp_path, RunCheck("false"), Reply("It is so."))
    assert (code, checks) == (ExitCode.DONE, [])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def start(
    place: Place, server: ModelServer, *arguments: str, cwd: Path | None = None
) -> "subprocess.Popen[str]":
    place.configure(server.openai_url)
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tui_agent",
            "-p",
            "do it",
            "--mode",
            "auto-edit",
            "--allow",
            "edit",
            *arguments,
        ],
        cwd=cwd or place.project,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **place.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_run_that_ended_red_says_so_again_without_a_request(place: Place) -> None:
    call = ModelCall("write", {"path": "made.txt", "content": "made\n"})
    with ModelServer() as server:
        server.play(Turn(tool_calls=(call,)), *[Turn(text="I can't.")] * 2)
        arguments = ("--key", "task", "--check", "false", "--check-rounds", "1")
        first = start(place, server, *arguments)
        told = first.communicate(timeout=200)
        again = start(place, server, *arguments)
        assert again.communicate(timeout=200)[0] == told[0]
    assert (first.returncode, again.returncode, len(server.calls)) == (1, 1, 3), told


def test_the_same_key_at_the_same_time_waits_for_the_other_and_says_what_it_said(
    place: Place,
) -> None:
    with ModelServer(lambda _request: Turn(text="All is done.", first_delay=5.0)) as server:
        first = start(place, server, "--key", "task")
        assert server.wait(lambda server: len(server.calls) == 1, 200)
        first.send_signal(signal.SIGSTOP)
        second = start(place, server, "--key", "task")
        assert second.stderr is not None
        said = second.stderr.readline()
        first.send_signal(signal.SIGCONT)
        out, _ = second.communicate(timeout=200)
        first.communicate(timeout=200)
    assert (second.returncode, out) == (0, "All is done.\n")
    assert "to finish the run with the key" in said
    assert len(server.calls) == 1


def test_a_run_that_was_killed_goes_on_in_an_empty_clone_with_its_files(
    tmp_path: Path, place: Place
) -> None:
    git = ("git", "-c", "user.name=n", "-c", "user.email=e@x")
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "README.md").write_text("Read.\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        subprocess.run([*git, *words], cwd=origin, check=True)
    clone = tmp_path / "app"
    subprocess.run(["git", "clone", "-q", str(origin), str(clone)], check=True)
    call = ModelCall("write", {"path": "made.txt", "content": "made\n"})

    with ModelServer() as server:
        server.play(
            Turn(tool_calls=(call,)), Turn(text="It goes on.", fault=Fault("stall", after=1))
        )
        killed = start(place, server, "--key", "task", cwd=clone)
        assert server.wait(lambda server: len(server.calls) == 2, 200)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=200)
        shutil.rmtree(clone)
        subprocess.run(["git", "clone", "-q", str(origin), str(clone)], check=True)
        server.play_function(lambda _request: Turn(text="Done now."))
        went_on = start(place, server, "--key", "task", cwd=clone)
        out, errors = went_on.communicate(timeout=200)
    assert went_on.returncode == 0, errors
    assert "Done now." in out
    assert (clone / "made.txt").read_text() == "made\n"
    assert "Restored 1 file that the session had changed." in errors
