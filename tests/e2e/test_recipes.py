"""The shell text of the documented workflow, run as its engine runs it: in a clean directory, and again."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.model_script import Call, Fault, Turn
from tests.support.model_server import ModelServer
from tests.support.place import Place
from tests.support.processes import git
from tests.support.thoroughness import NIGHTLY

ROOT = Path(__file__).parents[2]
WRITE = Turn(tool_calls=(Call("write", {"path": "made.txt", "content": "one\ntwo\n"}),))
EDIT = Turn(tool_calls=(Call("edit", {"path": "kept.txt", "old": "kept", "new": "changed"}),))
DONE = Turn(text="All is done, in several words.")


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
    (own_place.root / "config/config.toml").write_text(
        'model = "anthropic/claude-sonnet-4-5"\n[retry]\nattempts = 1\n'
    )
    return {
        **own_place.env,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "ANTHROPIC_API_KEY": "sk-ant-x",
        "ANTHROPIC_BASE_URL": server.url,
    }


def files(place: Path) -> dict[str, bytes]:
    found = (
        path
        for path in place.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(place).parts
    )
    return {str(path.relative_to(place)): path.read_bytes() for path in found}


@pytest.mark.parametrize("state", ["done", "failed"])
def test_the_workflow_goes_from_a_message_to_a_merged_branch(
    state: str, tmp_path: Path, origin: Path, server: ModelServer, shell: dict[str, str]
) -> None:
    text = (ROOT / "docs/automation.md").read_text(encoding="utf-8")
    (workflow,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    steps = yaml.safe_load(workflow)["jobs"]["work"]["steps"]
    (work,) = [step for step in steps if "tui-agent -p" in step.get("run", "")]
    assert "${{" not in work["run"], "what somebody types must not be put into a script"
    scripted = (
        [WRITE, EDIT, DONE] if state == "done" else [WRITE, Turn(fault=Fault("status", status=401))]
    )
    server.play(*scripted)
    given = {"secrets.ANTHROPIC_API_KEY": "sk-ant-x", "inputs.task": 'Make "it" $(touch evil)'}
    given["runner.temp"] = str(tmp_path / "temp")
    env = {
        name: re.sub(r"\$\{\{ (.*?) \}\}", lambda match: given[match[1]], value)
        for name, value in work["env"].items()
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
    assert files(fresh) == {
        name: data for name, data in files(workspace).items() if name in {"made.txt", "kept.txt"}
    }

    server.play(DONE)
    again = subprocess.run(
        ["bash", "-c", work["run"]], cwd=workspace, capture_output=True, text=True, timeout=200,
        env={**shell, **env, "GITHUB_RUN_ID": "77"}, check=False,
    )  # fmt: skip
    assert (again.returncode, len(server.calls)) == (0, 0 if state == "done" else 1), again.stderr


RUNS = 6 if NIGHTLY else 2


def test_runs_side_by_side_end_up_in_one_store(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "scripts/fleet.py", "--runs", str(RUNS), "--directory", str(tmp_path / "fleet")],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["imported"], report["opened"], len(set(report["listed"]))) == (RUNS, RUNS, RUNS)
    assert (report["exit codes"], report["the second time"]) == ([0], ["known"])
    assert "user: " in report["tree"]


def test_what_is_no_store_is_passed_over(own_place: Place) -> None:
    (own_place.root / "data/other.db").write_bytes(b"SQLite format 3\0" + b"\0" * 100)
    (own_place.root / "data/text.db").write_text("no database")
    done = own_place.run("sessions", "import", str(own_place.root / "data"))
    assert "Traceback" not in done.stderr
    assert own_place.run("sessions", "list").stdout.startswith("There are no sessions yet.")
