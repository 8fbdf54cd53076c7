"""An hour of a whole agent at work, counted in questions: the real gate and real needs, only nothing is carried out."""

import json
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.bypass_project import make_project
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked
from tui_agent.sandbox import Sandbox, SandboxState
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.session.entries import ToolResultEntry, ToolStatus
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.registry import builtin_tools

HOUR = [
    line.partition(" ")[::2]
    for line in (Path(__file__).parent / "data" / "hour.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


async def _nothing(_arguments: ToolInput, _context: ToolContext) -> ToolResult:
    return ToolResult("Done.")


def idle_tools() -> tuple[Tool, ...]:  # type: ignore[type-arg]
    """Return the real tools with their real needs, that do nothing when they run."""
    tools = builtin_tools()
    for tool in tools:
        tool.run = _nothing  # type: ignore[method-assign]
    return tools


def call_of(tool: str, argument: str) -> Call:
    given: dict[str, object] = {
        "bash": {"command": argument},
        "grep": {"pattern": argument},
        "glob": {"pattern": argument},
        "webfetch": {"url": argument},
        "write": {"path": argument, "content": "x = 1\n"},
        "todo": {"todos": [{"text": "go on", "status": "pending"}]},
        "edit": {"path": "src/app.py", "edits": [{"old": f"value_{argument} =", "new": f"other_{argument} ="}]},
    }.get(tool, {"path": argument})
    return Call(tool, json.dumps(given))


async def questions(tmp_path: Path, *, decision: Decision, boxed: bool, mode: str = "build") -> list[PermissionAsked]:
    project = make_project(tmp_path)
    (project / ".env").unlink()
    (project / "src" / "app.py").write_text("".join(f"value_{number} = {number}\n" for number in range(20)))
    (project / "CHANGELOG.md").write_text("")
    replies = [Reply(calls=(call_of(tool, argument),)) for tool, argument in HOUR]
    state = SandboxState("bubblewrap", "bwrap") if boxed else SandboxState(None, reason="none")
    harness = make_agent(
        tmp_path,
        ScriptedClient([*replies, Reply("Done.")]),
        answer=PermissionAnswer(decision),
        tools=idle_tools(),
        max_steps=200,
        sandbox=Sandbox(SandboxSettings(), find=lambda: state),
    )
    harness.agent.change_mode(mode)
    await harness.say("Look at https://docs.example.org/caching and https://docs.example.org/caching/keys first.")
    results = [entry for entry in harness.path() if isinstance(entry, ToolResultEntry)]
    refused = {entry.status for entry in results} - {ToolStatus.COMPLETED}
    assert refused == ({ToolStatus.DENIED} if mode == "plan" else set())
    assert len(results) == len(HOUR)
    return harness.of(PermissionAsked)


@pytest.mark.parametrize(
    ("decision", "boxed", "mode", "most"),
    [
        (Decision.SESSION, True, "build", 2),
        (Decision.SESSION, True, "auto-edit", 1),
        (Decision.SESSION, True, "plan", 0),
        (Decision.SESSION, False, "build", 25),
        (Decision.ONCE, True, "build", 30),
    ],
)
async def test_an_hour_asks_few_questions(
    tmp_path: Path, decision: Decision, boxed: bool, mode: str, most: int
) -> None:
    asked = await questions(tmp_path, decision=decision, boxed=boxed, mode=mode)
    shown = [request.request.title for request in asked]
    assert len(shown) <= most, shown
