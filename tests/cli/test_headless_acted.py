"""Whether a run without a screen did something, told by its exit code where something else was not allowed."""

import io
import json
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.permissions import Action, Rule
from tui_agent.cli.exit_codes import EXIT_DONE, EXIT_STOPPED
from tui_agent.cli.headless import HeadlessRun

PADDING = "x" * 300
"""Longer than a call's title."""


@pytest.mark.parametrize(
    ("command", "code"),
    [(f"echo {PADDING} && touch made", EXIT_DONE), (f"echo {PADDING}", EXIT_STOPPED)],
)
async def test_the_whole_command_counts(tmp_path: Path, command: str, code: int) -> None:
    calls = (Call("bash", json.dumps({"command": command})), Call("bash", '{"command": "rm -rf ."}'))
    allowed = (Rule(kind, "*", Action.ALLOW, "user") for kind in ("bash", "edit"))
    rules = (*allowed, Rule("bash", "rm *", Action.DENY, "user"))
    client = ScriptedClient([Reply(calls=calls), Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=None, rules=rules)
    run = HeadlessRun(harness.agent, as_json=False, out=io.StringIO(), err=io.StringIO())
    assert await run.run("go") == code
