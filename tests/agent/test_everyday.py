"""Ordinary work asks little: a corpus of commands in one session, and an hour of a whole agent at work."""

import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest

from tests.support.agents import make_agent
from tests.support.bypass_project import make_project
from tests.support.scripted_client import Call, Reply
from tests.support.tooling import Workspace
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked
from tui_agent.agent.gate import needs_of
from tui_agent.agent.permissions import (
    DEFAULT_RULES,
    Action,
    FilesUnderRules,
    Rule,
    decide,
    decide_in_mode,
    files_under_rules,
    offered_rules,
    rule_of_reading,
    rules_from_table,
)
from tui_agent.errors import ToolError
from tui_agent.sandbox import Sandbox, SandboxState
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.sandbox.view import View
from tui_agent.session.entries import ToolStatus
from tui_agent.shell.needs import command_needs
from tui_agent.tools.base import Tool, ToolResult
from tui_agent.tools.bash import BashInput, BashTool
from tui_agent.tools.registry import builtin_tools


def lines(name: str) -> list[str]:
    text = (Path(__file__).parent / "data" / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


COMMANDS = lines("everyday.txt")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = make_project(tmp_path)
    for secret in (".env", "keys/server.pem", "link-env", "link-file", "link-out"):
        (project / secret).unlink()
    return project


def asked_about(project: Path, *, boxed: bool, always: bool) -> list[str]:
    """Return the commands that ask; ``boxed`` in a sandbox, ``always`` when every answer is that."""
    rules: list[Rule] = []
    asked_for = []
    sandbox = Sandbox(
        SandboxSettings(), find=lambda: SandboxState("bubblewrap" if boxed else None, "bwrap")
    )
    context = Workspace(project, sandbox=sandbox).context()
    for command in COMMANDS:
        needs = needs_of(BashTool(), BashInput(command=command), context)
        asked = [
            (need, rule)
            for need in needs
            if (rule := decide(need, (*DEFAULT_RULES, *rules), "bash")).action is Action.ASK
        ]
        if asked:
            asked_for.append(command)
            rules += offered_rules(asked) if always else ()
    return asked_for


@pytest.mark.parametrize(
    ("boxed", "always", "most"),
    [(True, True, 0.04), (True, False, 0.08), (False, True, 0.5), (False, False, 0.7)],
)
def test_a_day_of_commands_asks_for_few_of_them(
    project: Path, boxed: bool, always: bool, most: float
) -> None:
    asked = asked_about(project, boxed=boxed, always=always)
    assert len(COMMANDS) >= 200
    assert len(asked) <= most * len(COMMANDS), asked


@pytest.mark.parametrize("target", ["~/new.txt", "$HOME/new.txt", '"${HOME}/new.txt"'])
def test_a_file_that_would_be_gone_with_its_command_is_asked_about_before(
    project: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    # Commands have directories for temporary files of their own.
    monkeypatch.setattr("tui_agent.agent.gate._PRIVATE", ())
    sandbox = Sandbox(SandboxSettings(), find=lambda: SandboxState("bubblewrap", "bwrap"))
    context = Workspace(project, sandbox=sandbox).context()
    command = BashInput(command=f"echo hi > {target}")
    asked = [
        need.pattern
        for need in needs_of(BashTool(), command, context)
        if decide(need, DEFAULT_RULES, "bash").action is Action.ASK
    ]
    assert asked == [str(project.parent / "new.txt"), str(project.parent)]


def test_in_a_sandbox_plan_mode_refuses_only_what_is_known_to_change_something(
    project: Path,
) -> None:
    def refused(command: str) -> bool:
        needs = [replace(need, sandboxed=True) for need in command_needs(command, project, project)]
        return any(
            decide_in_mode(need, DEFAULT_RULES, "plan").action is Action.DENY for need in needs
        )

    changing = ("git add", "git commit", "git checkout", "git pull")
    assert [c for c in COMMANDS if refused(c)] == [c for c in COMMANDS if c.startswith(changing)]


HOUR = [line.partition(" ")[::2] for line in lines("hour.txt")]


def idle_tools() -> tuple[Tool, ...]:  # type: ignore[type-arg]
    tools = builtin_tools()
    for tool in tools:
        tool.run = AsyncMock(return_value=ToolResult("Done."))  # type: ignore[method-assign]
    return tools


def call_of(tool: str, argument: str) -> Call:
    given: dict[str, object] = {
        "bash": {"command": argument},
        "grep": {"pattern": argument},
        "glob": {"pattern": argument},
        "webfetch": {"url": argument},
        "write": {"path": argument, "content": "x = 1\n"},
        "todo": {"todos": [{"text": "go on", "status": "pending"}]},
        "edit": {
            "path": "src/app.py",
            "edits": [{"old": f"value_{argument} =", "new": f"other_{argument} ="}],
        },
    }.get(tool, {"path": argument})
    return Call(tool, json.dumps(given))


async def questions(
    tmp_path: Path, *, decision: Decision, boxed: bool, mode: str = "build"
) -> list[PermissionAsked]:
    project = make_project(tmp_path)
    (project / ".env").unlink()
    (project / "src" / "app.py").write_text(
        "".join(f"value_{number} = {number}\n" for number in range(20))
    )
    (project / "CHANGELOG.md").write_text("")
    replies = [Reply(calls=(call_of(tool, argument),)) for tool, argument in HOUR]
    state = SandboxState("bubblewrap", "bwrap") if boxed else SandboxState(None, reason="none")
    harness = make_agent(
        tmp_path,
        [*replies, Reply("Done.")],
        answer=PermissionAnswer(decision),
        tools=idle_tools(),
        max_steps=200,
        sandbox=Sandbox(SandboxSettings(), find=lambda: state),
    )
    harness.agent.change_mode(mode)
    await harness.say(
        "Look at https://docs.example.org/caching and https://docs.example.org/caching/keys first."
    )
    results = harness.results()
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
        (Decision.SESSION, False, "build", 26),
        (Decision.ONCE, True, "build", 30),
    ],
)
async def test_an_hour_asks_few_questions(
    tmp_path: Path, decision: Decision, boxed: bool, mode: str, most: int
) -> None:
    asked = await questions(tmp_path, decision=decision, boxed=boxed, mode=mode)
    shown = [request.request.title for request in asked]
    assert len(shown) <= most, shown


def test_without_a_sandbox_a_command_in_which_names_may_be_missed_is_refused(project: Path) -> None:
    """Without rules about files, or in the sandbox, nothing depends on the names."""
    command = BashInput(command="cat {a,b}" + "{a,b}" * 20)
    reading = rule_of_reading((*DEFAULT_RULES, Rule("read", "keys/*", Action.DENY, "user")))
    for boxed in (None, "bubblewrap"):
        state = SandboxState(boxed, "bwrap")
        sandbox = Sandbox(SandboxSettings(), find=Mock(return_value=state))
        context = Workspace(project, sandbox=sandbox).context()
        assert needs_of(BashTool(), command, context)
        context.view = View(reading=reading)
        if boxed:
            assert needs_of(BashTool(), command, context)
            continue
        with pytest.raises(ToolError, match="Split it into several commands"):
            needs_of(BashTool(), command, context)


def test_rules_about_other_files_disturb_no_command_of_a_day(project: Path) -> None:
    denied = {"secret/**": "deny", "*.pem": "deny", "/srv/*": "deny"}
    reading = rule_of_reading(rules_from_table({"read": denied}, "user"))
    assert reading is not None
    for command in COMMANDS:
        found = files_under_rules(command, reading, project, project)
        assert found == FilesUnderRules((), is_complete=True), command
