"""The shell text of the documented Job and workflow, run as their engines run it: in clean directories, and again."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.model_script import Call, Fault, Turn
from tests.support.model_server import ModelServer, Recorded
from tests.support.place import Place
from tests.support.thoroughness import NIGHTLY
from tui_agent.sandbox.sandbox import find_sandbox

ROOT = Path(__file__).parents[2]
WRITE = Turn(tool_calls=(Call("write", {"path": "made.txt", "content": "one\ntwo\n"}),))
EDIT = Turn(tool_calls=(Call("edit", {"path": "kept.txt", "old": "kept", "new": "changed"}),))
COMMAND = Turn(tool_calls=(Call("bash", {"command": "echo begun; sleep 300", "timeout": 600}),))
DONE = Turn(text="All is done, in several words.")
HANGS = Turn(text="All is done, in several words.", fault=Fault("stall", after=2))


def git(cwd: Path, *words: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *who, *words], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    place = tmp_path / "origin"
    place.mkdir()
    (place / "kept.txt").write_text("kept\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "begin"]):
        git(place, *words)
    return place


@pytest.fixture
def shell(own_place: Place, tmp_path: Path, server: ModelServer) -> dict[str, str]:
    """The environment of a container that has the program on its path, and nothing else of this machine's."""
    program = tmp_path / "bin/tui-agent"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tui_agent "$@"\n')
    program.chmod(0o755)
    (own_place.root / "config/config.toml").write_text('model = "anthropic/claude-sonnet-4-5"\n[retry]\nattempts = 1\n')
    return {
        **own_place.env,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "ANTHROPIC_API_KEY": "sk-ant-x",
        "ANTHROPIC_BASE_URL": server.url,
    }


def files(place: Path) -> dict[str, bytes]:
    found = (path for path in place.rglob("*") if path.is_file() and ".git" not in path.relative_to(place).parts)
    return {str(path.relative_to(place)): path.read_bytes() for path in found}


# -- Kubernetes -----------------------------------------------------------------------------------------------------


class Pods:
    """Runs the Job's container, each time with an empty checkout and the volume as the last pod left it."""

    def __init__(self, tmp_path: Path, origin: Path, env: dict[str, str]) -> None:
        tasks, job = yaml.safe_load_all((ROOT / "docs/examples/fleet/kubernetes.yaml").read_text())
        self.app, self.sessions, self._origin = tmp_path / "work/app", tmp_path / "sessions", origin
        (tmp_path / "tasks").mkdir()
        (tmp_path / "tasks/tasks.txt").write_text(tasks["data"]["tasks.txt"])
        self._text = job["spec"]["template"]["spec"]["containers"][0]["args"][0]
        for mount in ("work", "tasks", "sessions"):
            self._text = re.sub(rf"(?<![\w.])/{mount}\b", str(tmp_path / mount), self._text)
        self._env = {**env, "JOB_COMPLETION_INDEX": "1"}

    def start(self) -> "subprocess.Popen[str]":
        shutil.rmtree(self.app, ignore_errors=True)
        git(self._origin, "clone", "-q", "--depth", "1", f"file://{self._origin}", str(self.app))
        return subprocess.Popen(
            ["sh", "-c", self._text], env=self._env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    @contextlib.contextmanager
    def killed(self) -> Iterator[Iterator[str]]:
        pod = self.start()
        assert pod.stdout is not None
        try:
            yield pod.stdout
        finally:
            os.killpg(pod.pid, signal.SIGKILL)
            pod.communicate(timeout=60)


PHASES = {  # what the model says in the pod that is killed, and when it is
    "before the first answer": ([Turn(text="x", fault=Fault("silent"))], 1),
    "in the middle of an answer": ([HANGS], 1),
    "after a file was written": ([WRITE, HANGS], 2),
    "after two files": ([WRITE, EDIT, HANGS], 3),
    "in a command": ([WRITE, COMMAND], 0),
}


@pytest.mark.parametrize("phase", PHASES if NIGHTLY else ["after a file was written", "in a command"])
def test_a_pod_that_is_killed_is_continued_by_the_next(
    phase: str, tmp_path: Path, origin: Path, server: ModelServer, shell: dict[str, str]
) -> None:
    turns, asked = PHASES[phase]
    if not asked and find_sandbox().kind == "none":
        pytest.skip("needs a sandbox")
    server.play(*turns)
    pods = Pods(tmp_path, origin, shell)
    with pods.killed() as lines:
        if asked:
            assert server.wait(lambda server: len(server.calls) == asked, 100)
        else:
            assert any('"tool_output"' in line and "begun" in line for line in lines)

    def go_on(request: Recorded) -> Turn:
        text = str(request.json["messages"])
        return WRITE if "made.txt" not in text else EDIT if "kept.txt" not in text else DONE

    server.play_function(go_on)
    pod = pods.start()
    out, errors = pod.communicate(timeout=200)
    assert pod.returncode == 0, errors
    assert '"reason": "done"' in out
    made = files(pods.app)
    assert made["made.txt"] == b"one\ntwo\n"
    assert made["kept.txt"] == b"changed\n"
    git(tmp_path, "clone", "-q", str(origin), "fresh")
    git(tmp_path / "fresh", "apply", str(pods.sessions / "1/result.patch"))
    assert files(tmp_path / "fresh") == made

    before = len(server.calls)
    last = pods.start()
    told = last.communicate(timeout=200)[1]
    assert (last.returncode, len(server.calls)) == (0, before), told


# -- a workflow -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["done", "failed"])
def test_the_workflow_goes_from_a_message_to_a_merged_branch(
    state: str, tmp_path: Path, origin: Path, server: ModelServer, shell: dict[str, str]
) -> None:
    text = (ROOT / "docs/automation.md").read_text(encoding="utf-8")
    (workflow,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    steps = yaml.safe_load(workflow)["jobs"]["work"]["steps"]
    (work,) = [step for step in steps if "tui-agent -p" in step.get("run", "")]
    scripted = [WRITE, EDIT, DONE] if state == "done" else [WRITE, Turn(fault=Fault("status", status=401))]
    server.play(*scripted)
    given = {"secrets.ANTHROPIC_API_KEY": "sk-ant-x", "inputs.task": 'Make "it" $(touch evil)'}
    given["runner.temp"] = str(tmp_path / "temp")
    env = {
        name: re.sub(r"\$\{\{ (.*?) \}\}", lambda match: given[match[1]], value) for name, value in work["env"].items()
    }
    workspace = tmp_path / "workspace"
    git(tmp_path, "clone", "-q", str(origin), str(workspace))
    ran = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", work["run"]], cwd=workspace, capture_output=True, text=True, timeout=200,
        env={**shell, **env, "GITHUB_RUN_ID": "77"}, check=False,
    )  # fmt: skip
    assert ran.returncode == (0 if state == "done" else 1), ran.stderr
    assert not (workspace / "evil").exists()
    assert "$(touch evil)" in str(server.calls[0].json)
    assert list((tmp_path / "temp/tui-agent").glob("sessions.db*"))
    git(tmp_path, "clone", "-q", str(origin), "fresh")
    fresh = tmp_path / "fresh"
    for words in (
        ["switch", "-qc", "agent/77"],
        ["apply", "--index", str(workspace / "result.patch")],
        ["commit", "-qm", "what the agent did"],
        ["switch", "-q", "main"],
        ["merge", "-q", "--no-ff", "-m", "take it", "agent/77"],
    ):
        git(fresh, *words)
    assert files(fresh) == {name: data for name, data in files(workspace).items() if name in {"made.txt", "kept.txt"}}

    server.play(DONE)
    again = subprocess.run(
        ["bash", "-c", work["run"]], cwd=workspace, capture_output=True, text=True, timeout=200,
        env={**shell, **env, "GITHUB_RUN_ID": "77"}, check=False,
    )  # fmt: skip
    assert (again.returncode, len(server.calls)) == (0, 0 if state == "done" else 1), again.stderr
