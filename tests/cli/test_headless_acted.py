"""Whether a run without a screen did something, told by its exit code where something else was not allowed."""

import io
import json
import subprocess
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.permissions import Action, Rule
from tui_agent.cli.output import ExitCode
from tui_agent.sandbox import Sandbox, find_sandbox
from tui_agent.sandbox.settings import SandboxSettings

PADDING = "x" * 300
"""Longer than a call's title."""


@pytest.mark.parametrize(
    ("command", "code"),
    [(f"echo {PADDING} && touch made", ExitCode.DONE), (f"echo {PADDING}", ExitCode.STOPPED)],
)
async def test_the_whole_command_counts(tmp_path: Path, command: str, code: int) -> None:
    calls = (Call("bash", json.dumps({"command": command})), Call("bash", '{"command": "rm -rf ."}'))
    allowed = (Rule(kind, "*", Action.ALLOW, "user") for kind in ("bash", "edit"))
    rules = (*allowed, Rule("bash", "rm *", Action.DENY, "user"))
    client = ScriptedClient([Reply(calls=calls), Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=None, rules=rules)
    assert await run_headless(harness, "go") == code


@pytest.mark.skipif(not find_sandbox().layered, reason="needs bubblewrap 0.11 or newer")
@pytest.mark.parametrize(
    ("command", "rules", "code"),
    [
        ("echo more >> README.md", (), ExitCode.STOPPED),
        ("echo more >> README.md", (Rule("edit", "*", Action.ALLOW, "flag"),), ExitCode.DONE),
        ("git commit --allow-empty -m x", (), ExitCode.STOPPED),
        ("mkdir -p build && echo o > build/o", (), ExitCode.DONE),
    ],
)
async def test_what_the_sandbox_keeps_from_being_changed_was_not_done(
    tmp_path: Path, command: str, rules: tuple[Rule, ...], code: int
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "README.md").write_text("Read.\n")
    (project / ".gitignore").write_text("build\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    box = Sandbox(SandboxSettings(), cache=tmp_path / "cache", home=tmp_path)
    client = ScriptedClient([Reply(calls=(Call("bash", json.dumps({"command": command})),)), Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=None, rules=rules, sandbox=box)
    errors = io.StringIO()
    assert await run_headless(harness, "go", err=errors) == code
    await box.aclose()  # what it gets ready starts a program: a loop that cancels all its tasks then waits for ever
    assert ("Not allowed: bash" in errors.getvalue()) is (code == ExitCode.STOPPED)
    assert ((project / "README.md").read_text() == "Read.\n") is not bool(rules)


async def test_calls_of_one_id_end_no_run(tmp_path: Path) -> None:
    calls = tuple(Call("bash", json.dumps({"command": command}), "same") for command in ("echo x", "touch made"))
    client = ScriptedClient([Reply(calls=calls), Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=None, rules=(Rule("bash", "*", Action.ALLOW, "user"),))
    assert await run_headless(harness, "go") == ExitCode.DONE
