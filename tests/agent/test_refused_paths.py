"""Paths that can't be looked at: too long, closed, circles, of a user there isn't. The system's word is an answer."""

import json
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.session.entries import ToolResultEntry

CALLS = {
    "read": {}, "ls": {}, "write": {"content": "x"}, "edit": {"edits": [{"old": "a", "new": "b"}]},
    "grep": {"pattern": "a"}, "glob": {"pattern": "*"},
}  # fmt: skip


@pytest.mark.parametrize(
    "path", ["x" * 300, f"/{'x' * 300}/x", "closed", "closed/x", "circle/x", "~nobody-of-that-name/x"]
)
async def test_no_tool_ends_the_run(tmp_path: Path, path: str) -> None:
    calls = [Call(tool, json.dumps({"path": path, **more})) for tool, more in CALLS.items()]
    calls.append(Call("bash", json.dumps({"command": f"cat {path}; cd {path} && ls; echo x > {path}"})))
    harness = make_agent(tmp_path, ScriptedClient([Reply(calls=tuple(calls)), Reply("Done.")]))
    project = harness.agent.ports.project
    (project / "closed").mkdir(mode=0)
    (project / "circle").symlink_to("circle")
    assert (await harness.say(f"look at @{path}")).reason == "done"
    results = [entry for entry in harness.path() if isinstance(entry, ToolResultEntry)]
    assert len(results) == len(calls)
    (project / "closed").chmod(0o700)
