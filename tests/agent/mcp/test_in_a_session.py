"""Servers' tools in a session: when the model is told of them, what a call asks for, and that no cache is lost."""

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.headless import run_headless
from tests.support.mcp_place import QUICK, Place, until
from tests.support.scripted_client import Reply, ScriptedClient, call
from tui_agent.agent.agent import Agent
from tui_agent.agent.events import Decision, Notice, PermissionAnswer, PermissionAsked
from tui_agent.agent.mcp.records import ServerState
from tui_agent.agent.mcp.settings import Timeouts
from tui_agent.agent.preparing import prepare
from tui_agent.agent.prompt_head import CHEAP_TO_READ
from tui_agent.app.permission_text import question
from tui_agent.cli import headless
from tui_agent.context.request import request_bytes
from tui_agent.errors import CommandError
from tui_agent.json_text import as_lines
from tui_agent.session.entries import FilePart, SystemEntry, TextPart, ToolStatus, Usage


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    found = Place(tmp_path / "servers", Timeouts(settle=0.05, pauses=(0, 0)))
    yield found
    await found.hub.aclose()


def told(client: ScriptedClient) -> list[set[str]]:
    return [
        {tool.name for tool in request.tools if "_" in tool.name or tool.name == "mcp"}
        for request in client.requests
    ]


def heads(harness: Harness) -> int:
    return sum(isinstance(entry, SystemEntry) for entry in harness.path())


async def test_a_call_asks_for_the_tool_by_its_name_and_runs(tmp_path: Path, place: Place) -> None:
    place.add_stdio(allow=("add",))
    await place.hub.settle()
    await until(lambda: place.hub.is_settled)
    client = ScriptedClient([Reply(calls=(call("tracker_add", a=40, b=2),)), Reply("42.")])
    harness = make_agent(tmp_path, client, mcp=place.hub)
    await harness.say("add them")
    assert told(client) == [{"tracker_add"}, {"tracker_add"}]
    (asked,) = harness.of(PermissionAsked)
    (need,) = asked.request.needs
    assert (need.permission.value, need.pattern) == ("mcp", "tracker_add")
    assert need.detail == "server: tracker\ntool: add\na: 40\nb: 2"
    assert question(asked.request) == "Use tracker_add?"
    (result,) = harness.results()
    assert (result.status, result.output) == (ToolStatus.COMPLETED, "42")
    assert result.title == "a: 40, b: 2"


async def test_a_call_by_the_search_tool_is_shown_with_the_tool_that_it_names(
    tmp_path: Path, place: Place
) -> None:
    place.add_stdio(schemas="on_demand")
    await place.hub.settle()
    await until(lambda: place.hub.is_settled)
    wanted = call("mcp", action="call", name="tracker_add", arguments={"a": 40, "b": [2, True]})
    client = ScriptedClient([Reply(calls=(wanted,)), Reply("42.")])
    harness = make_agent(tmp_path, client, mcp=place.hub, answer=PermissionAnswer(Decision.DENY))
    await harness.say("add them")
    (asked,) = harness.of(PermissionAsked)
    assert question(asked.request) == "Use tracker_add?"
    (result,) = harness.results()
    assert (result.tool, result.title) == ("mcp", "tracker_add a: 40, b: [2, true]")


def test_arguments_are_lines_for_a_person() -> None:
    values = {
        "query": "is:open",
        "labels": ["a", "ü"],
        "body": "one\n two\n",
        "draft": True,
        "n": None,
    }
    assert as_lines(values).splitlines() == [
        "query: is:open",
        'labels: ["a", "ü"]',
        "body:",
        "  one",
        "   two",
        "draft: true",
        "n: null",
    ]


async def test_tools_that_come_late_join_at_the_next_step(tmp_path: Path, place: Place) -> None:
    gate = place.directory / "gate"
    place.add_stdio("tracker", "--wait-for", str(gate), allow=("add",))
    client = ScriptedClient([Reply("Hello.", usage=Usage(input=CHEAP_TO_READ)), Reply("Yes.")])
    harness = make_agent(tmp_path, client, mcp=place.hub)
    await harness.say("hi")
    gate.touch()
    await until(lambda: place.state() is ServerState.READY)
    assert "The model can use them from its next step." in harness.of(Notice)[-1].message
    await harness.say("and now?")
    await harness.say("and again")
    assert told(client) == [set(), {"tracker_add"}, {"tracker_add"}]
    assert heads(harness) == 2


async def test_only_a_session_whose_model_does_not_know_a_tool_is_told_of_it(
    tmp_path: Path, place: Place
) -> None:
    gate = place.directory / "gate"
    place.add_stdio("tracker", "--wait-for", str(gate), allow=("add",))
    client = ScriptedClient([Reply("Hello."), Reply("Hello.")])
    for name in ("begun", "new"):
        (tmp_path / name).mkdir()
    begun = make_agent(tmp_path / "begun", client, mcp=place.hub)
    new = make_agent(tmp_path / "new", client, mcp=place.hub)
    await begun.say("hi")
    gate.touch()
    await until(lambda: place.state() is ServerState.READY)
    await new.say("hi")
    await place.hub.restart("tracker")
    await until(lambda: place.state() is ServerState.READY)
    told_of = [
        sum("now available" in notice.message for notice in harness.of(Notice))
        for harness in (begun, new)
    ]
    assert told_of == [1, 0]


async def test_in_a_long_conversation_tools_that_come_late_wait_for_the_next_head(
    tmp_path: Path, place: Place
) -> None:
    gate = place.directory / "gate"
    place.add_stdio("tracker", "--wait-for", str(gate), allow=("add",))
    client = ScriptedClient([Reply("Hello.", usage=Usage(input=100, cache_read=CHEAP_TO_READ))])
    harness = make_agent(tmp_path, client, mcp=place.hub)
    await harness.say("hi")
    gate.touch()
    await until(lambda: place.state() is ServerState.READY)
    await harness.say("and now?")
    assert told(client) == [set(), set()]
    assert request_bytes(client.requests[1]).startswith(request_bytes(client.requests[0]))
    assert any("/mcp reload" in notice.message for notice in harness.of(Notice))
    await harness.agent.mcp.reload_and_resend()
    assert "misses the prompt cache" in harness.of(Notice)[-1].message
    await harness.say("now")
    await harness.say("and again")
    assert told(client)[2:] == [{"tracker_add"}, {"tracker_add"}]
    assert heads(harness) == 2


async def test_a_session_opened_again_keeps_its_head_while_servers_start(
    tmp_path: Path, place: Place
) -> None:
    place.add_stdio(allow=("add",))
    await place.hub.settle()
    await until(lambda: place.hub.is_settled)
    client = ScriptedClient([Reply("Hello.")])
    harness = make_agent(tmp_path, client, mcp=place.hub)
    await harness.say("hi")

    later = Place(place.directory, Timeouts(settle=0.05))
    later.add_stdio("tracker", "--wait-for", str(place.directory / "never"), allow=("add",))
    harness.agent.ports.mcp = later.hub
    again = Agent(harness.session, harness.agent.ports, model="test/model")
    again.submit("still there?")
    await again.wait_idle()
    assert told(client) == [{"tracker_add"}] * 2
    assert heads(harness) == 1
    await later.hub.aclose()

    gone = Place(place.directory, QUICK)
    harness.agent.ports.mcp = gone.hub
    third = Agent(harness.session, harness.agent.ports, model="test/model")
    third.submit("and now?")
    await third.wait_idle()
    assert told(client)[2] == set()
    for agent in (again, third):
        await agent.aclose()


async def test_prompts_are_commands_and_resources_are_mentioned(
    tmp_path: Path, place: Place
) -> None:
    place.add_stdio()
    await place.hub.settle()
    await until(lambda: place.hub.is_settled)
    harness = make_agent(tmp_path, [Reply("Fine.")], mcp=place.hub)
    (row,) = [row for row in harness.agent.commands() if row.name == "tracker:review"]
    assert (row.description, row.argument) == ("Review something.", "SUBJECT")
    filled = await prepare("/tracker:review the whole loop", harness.session, harness.agent.ports)
    assert filled.parts == (
        TextPart(text="Please review the whole loop.", typed="/tracker:review the whole loop"),
    )
    with pytest.raises(CommandError):
        await prepare("/tracker:review", harness.session, harness.agent.ports)
    asked = await prepare(
        "what of @tracker:memo://today and @tracker:memo://never?",
        harness.session,
        harness.agent.ports,
    )
    assert asked.parts[1:] == (
        FilePart(path="tracker:memo://today", text="Tests."),
        FilePart(
            path="tracker:memo://never",
            text="[not attached: there is no such file]",
            problem="there is no such file",
        ),
    )
    assert "tracker:memo://never" in (asked.problem or "")


async def test_a_run_without_a_required_server_ends_before_its_first_request(
    tmp_path: Path, place: Place
) -> None:
    place.add("gone", command="/nowhere/at-all", required=True)
    client = ScriptedClient([Reply("Hello.")])
    harness = make_agent(tmp_path, client, mcp=place.hub)
    ended = await harness.say("hi")
    assert (ended.reason, client.requests) == ("error", [])
    assert "The MCP server gone is required" in (ended.error or "")


async def test_a_run_without_a_screen_says_which_servers_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headless, "TELL_WAITING_AFTER", 0.01)
    place = Place(tmp_path / "servers", Timeouts(settle=None, pauses=(0, 0)))
    gate = place.directory / "gate"
    place.add_stdio("tracker", "--wait-for", str(gate), allow=("add",))
    client = ScriptedClient([Reply("Hello.")])
    err = io.StringIO()
    harness = make_agent(tmp_path, client, mcp=place.hub)
    running = asyncio.ensure_future(run_headless(harness, "hi", err=err))
    await until(lambda: "Waiting for the MCP servers to start: tracker." in err.getvalue())
    gate.touch()
    assert await running == 0
    assert told(client) == [{"tracker_add"}]
    await place.hub.aclose()
