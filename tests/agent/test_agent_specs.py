"""Kinds of agents: built in, and from the user's and the project's files."""

from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.knowledge import EXAMPLES, folders, knowledge, write
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.agent_specs import AgentSpec, load_specs
from tui_agent.agent.knowledge.folders import TrustGate
from tui_agent.agent.permissions import Action, decide
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.resources import prompt
from tui_agent.session.effort import Effort
from tui_agent.session.entries import SystemEntry, ToolStatus
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.task import TaskTool


def specs(tmp_path: Path, problems: list[str] | None = None) -> dict[str, AgentSpec]:
    return {spec.name: spec for spec in load_specs(folders(tmp_path), prompt, problems=problems)}


def test_general_and_explore_are_always_there_and_explore_only_reads(tmp_path: Path) -> None:
    general, explore = specs(tmp_path).values()
    assert [(spec.name, spec.primary, bool(spec.prompt)) for spec in (general, explore)] == [
        ("general", False, True), ("explore", False, True),
    ]  # fmt: skip
    tools = builtin_tools()
    assert general.choose(tools) == tools
    assert {tool.name for tool in explore.choose(tools)} == {"read", "grep", "glob", "ls"}


def test_a_file_says_everything_about_an_agent(tmp_path: Path) -> None:
    text = (
        "---\ndescription: plans\nmode: primary\nmodel: openai/gpt\neffort: low\ntools: Read, grep*\nmax-steps: 7\n"
        "permissions:\n  edit: deny\n  bash:\n    git*: allow\n---\nYou plan.\n"
    )
    write(tmp_path / "config/agents/planner.md", text)
    planner = specs(tmp_path)["planner"]
    assert (planner.description, planner.model, planner.prompt) == (
        "plans",
        "openai/gpt",
        "You plan.",
    )
    assert (planner.effort, planner.primary, planner.subagent, planner.max_steps) == (
        Effort.LOW,
        True,
        False,
        7,
    )
    assert [planner.allows(tool) for tool in ("read", "grep_all", "edit")] == [True, True, False]
    assert decide(PermissionNeed(Permission.EDIT, "a.py"), planner.rules).action is Action.DENY
    assert decide(PermissionNeed(Permission.BASH, "git log"), planner.rules).action is Action.ALLOW


def test_the_users_agent_wins_over_the_projects_and_both_over_the_built_in_one(
    tmp_path: Path,
) -> None:
    for folder, text in (("project/.tui-agent", "project's"), ("config", "user's")):
        write(tmp_path / folder / "agents/explore.md", f"---\ndescription: {text}\n---\nprompt")
    write(
        tmp_path / "project/.tui-agent/agents/general.md",
        "---\ndescription: project's general\n---\nprompt",
    )
    found = specs(tmp_path)
    assert found["explore"].description == "user's"
    assert found["general"].description == "project's general"
    untrusted = load_specs(folders(tmp_path), prompt, gate=TrustGate(lambda: False))
    assert [spec.description for spec in untrusted][1] == "user's"
    assert "project" not in untrusted[0].description


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("mode: primary", "needs a description"),
        ("description: d\nmode: boss", "not one of primary, subagent, all"),
        ("description: d\npermissions: deny", "must be a table"),
        ("description: d\npermissions:\n  edit: maybe", "use allow, ask or deny"),
        ("description: d\nmax-steps: many", "not a number"),
        ("description: d\neffort: much", "effort “much” is not one of off, minimal"),
        ("description: d\nname: plan", "cannot be an agent's name"),
    ],
)
def test_a_mistake_is_said_and_the_agent_left_out(tmp_path: Path, front: str, reason: str) -> None:
    write(tmp_path / "config/agents/bad.md", f"---\n{front}\n---\nprompt")
    problems: list[str] = []
    assert list(specs(tmp_path, problems)) == ["general", "explore"]
    assert reason in problems[0]
    assert "agents/bad.md" in problems[0]


def test_an_agent_of_the_project_can_forbid_but_not_allow(tmp_path: Path) -> None:
    text = "---\ndescription: d\npermissions:\n  bash: {}\n---\nprompt"
    write(tmp_path / "project/.tui-agent/agents/strict.md", text.format("deny"))
    write(tmp_path / "project/.tui-agent/agents/sly.md", text.format("allow"))
    problems: list[str] = []
    assert list(specs(tmp_path, problems)) == ["general", "explore", "strict"]
    assert "may only deny" in problems[0]


async def test_a_primary_agent_takes_the_main_agents_place_in_its_mode(tmp_path: Path) -> None:
    fields = (
        "description: d\nmode: primary\ntools: [read, ls]\npermissions:\n  read: {secret*: deny}"
    )
    write(tmp_path / "config/agents/reviewer.md", f"---\n{fields}\n---\nYou review.")
    write(tmp_path / "project/secret.txt", "x")
    calls = (Call("bash", '{"command": "ls"}'), Call("read", '{"path": "secret.txt"}'))
    harness = make_agent(
        tmp_path, [Reply("One."), Reply(calls=calls), Reply("k")], knowledge=knowledge(tmp_path)
    )
    await harness.say("hi")
    harness.agent.change_mode("reviewer")
    await harness.say("review")
    assert [head.blocks[0] for head in harness.entries(SystemEntry)] == [
        prompt("system"),
        "You review.",
    ]
    assert [tool.name for tool in harness.client.requests[1].tools] == ["read"]
    unknown, denied = harness.results()
    assert unknown.output == "There is no tool 'bash'. Tools: read."
    assert denied.status is ToolStatus.DENIED


async def test_the_users_subagents_are_listed_where_there_is_a_task_tool(tmp_path: Path) -> None:
    write(tmp_path / "config/agents/tester.md", "---\ndescription: writes tests\n---\nYou test.")
    loaded = knowledge(tmp_path)
    client = ScriptedClient([Reply("k")])
    await make_agent(tmp_path, client, knowledge=loaded, tools=(*builtin_tools(), TaskTool())).say(
        "hi"
    )
    (tmp_path / "other").mkdir()
    await make_agent(tmp_path / "other", client, knowledge=loaded).say("hi")
    with_task, without = (
        "".join(message.text for message in request.messages) for request in client.requests
    )
    assert (
        "<agents>\nMore agents for the task tool:\n- tester: writes tests\n</agents>" in with_task
    )
    assert "tester" not in without


def test_the_example_agent_is_a_good_one(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/agents").symlink_to(EXAMPLES / "agents")
    problems: list[str] = []
    reviewer = specs(tmp_path, problems)["reviewer"]
    assert (problems, reviewer.primary, reviewer.subagent, reviewer.allows("edit")) == (
        [],
        True,
        True,
        False,
    )
    for command, action in (("git diff HEAD~1", Action.ALLOW), ("rm -rf .", Action.DENY)):
        assert decide(PermissionNeed(Permission.BASH, command), reviewer.rules).action is action
