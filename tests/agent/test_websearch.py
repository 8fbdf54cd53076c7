"""Searching the web in a session: who is asked, what stays in the tree, on the screen too."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import MODEL, FixedDirectory, Harness, make_agent
from tests.support.real_stage import real_stage
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.support.ui_app import press, send, until
from tests.support.wire_rounds import KEYS
from tests.tools.test_webfetch import WebServer, answer, web_server
from tests.tools.test_websearch import ANSWERS, KEY, PATHS, tool
from tui_agent.agent.events import CostKnown, Decision, PermissionAnswer, PermissionAsked
from tui_agent.agent.permissions import Action, Rule
from tui_agent.app.knowledge_commands import tools_lines
from tui_agent.context.projection import ModelTraits
from tui_agent.context.request import ModelRequest
from tui_agent.model.catalog import Catalog
from tui_agent.model.directory import CatalogDirectory
from tui_agent.model.learnt import LearntFacts
from tui_agent.model.protocol import ErrorKind, ModelError, PageFound
from tui_agent.model.route import Router
from tui_agent.model.settings import ModelSettings
from tui_agent.session.entries import SystemEntry, ToolResultEntry, ToolStatus
from tui_agent.tools.functions.tool_files import ToolFiles
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.websearch import WebSearchTool
from tui_agent.web.searching import advice
from tui_agent.web.settings import SearchSettings

BLOCK = "1. Trees & forests (2026-02-02)\nhttps://docs.example.org/trees\n"


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with web_server() as running:
        said = json.dumps(ANSWERS["tavily"])
        running.answers[PATHS["tavily"]] = answer(said, "application/json")
        yield running


def search(query: str) -> Call:
    return Call("websearch", json.dumps({"query": query}))


def results(harness: Harness) -> list[ToolResultEntry]:
    return [entry for entry in harness.path() if isinstance(entry, ToolResultEntry)]


def questions(harness: Harness) -> list[PermissionAsked]:
    return [event for event in harness.events if isinstance(event, PermissionAsked)]


async def searched(tmp_path: Path, server: WebServer, *calls: Call, **more: Any) -> Harness:
    client = ScriptedClient([*(Reply(calls=(call,)) for call in calls), Reply("Done.")])
    harness = make_agent(tmp_path, client, tools=builtin_tools(tool(server)), **more)
    await harness.say("look it up")
    return harness


async def test_it_asks_once_and_recall_brings_a_result_back(
    tmp_path: Path, server: WebServer
) -> None:
    recall = Call("recall", json.dumps({"what": "forests"}))
    always = PermissionAnswer(Decision.SESSION)
    harness = await searched(
        tmp_path, server, search("tree"), search("wood"), recall, answer=always
    )
    (question,) = questions(harness)
    (need,) = question.request.needs
    assert need.detail == f"Sent to Tavily (127.0.0.1:{server.port}): tree"
    first, second, recalled = results(harness)
    assert first.output.startswith(BLOCK)
    assert second.status is ToolStatus.COMPLETED
    assert "Trees & forests" in recalled.output
    assert len(server.requests) == 2
    stored = "".join(entry.model_dump_json() for entry in harness.path())
    assert "Trees & forests" in stored
    assert KEY not in f"{stored}{harness.events}"


@pytest.mark.parametrize(
    ("rule", "status", "asked"),
    [
        (Rule("websearch", "*", Action.ALLOW, "user"), ToolStatus.COMPLETED, 0),
        (Rule("websearch", "tree", Action.DENY, "user"), ToolStatus.DENIED, 0),
        (Rule("webfetch", "*", Action.ALLOW, "user"), ToolStatus.COMPLETED, 1),
    ],
)
async def test_rules_decide_as_for_any_tool(
    tmp_path: Path, server: WebServer, rule: Rule, status: ToolStatus, asked: int
) -> None:
    harness = await searched(tmp_path, server, search("tree"), rules=(rule,))
    assert [entry.status for entry in results(harness)] == [status]
    assert len(questions(harness)) == asked
    assert len(server.requests) == (status is ToolStatus.COMPLETED)


async def test_without_a_service_the_model_never_hears_of_it(tmp_path: Path) -> None:
    missing = WebSearchTool(missing=advice(SearchSettings()))
    harness = make_agent(
        tmp_path, [Reply(calls=(search("tree"),)), Reply("Done.")], tools=builtin_tools(missing)
    )
    await harness.say("look it up")
    (head,) = [entry for entry in harness.path() if isinstance(entry, SystemEntry)]
    assert "websearch" not in {schema.name for schema in head.tools}
    (result,) = results(harness)
    assert result.status is ToolStatus.ERROR
    assert "websearch needs a key in TAVILY_API_KEY" in result.output


@pytest.mark.parametrize("service", ["auto", "off"])
def test_the_list_of_tools_says_how_to_get_it(service: Any) -> None:
    set_up = SearchSettings(service=service)
    tools = builtin_tools(WebSearchTool(missing=advice(set_up)))
    lines = tools_lines(tools, ToolFiles(), lambda _schema: 1, ModelTraits(MODEL))
    told = [line for line in lines if "websearch" in line]
    assert told == [advice(set_up)] * (service == "auto")


async def test_the_screen_asks_with_the_words_and_shows_what_was_found(
    tmp_path: Path, server: WebServer
) -> None:
    stage = real_stage(
        tmp_path,
        [Reply(calls=(search("tree rings"),)), Reply("Done.")],
        answer=None,
        tools=builtin_tools(tool(server)),
    )
    async with stage.run((100, 30)) as pilot:
        await send(pilot, "look it up")
        await stage.until_text("Search the web for tree rings?", pilot)
        assert "Sent to " in stage.text()
        assert "always in this session: all searches of the web" in stage.text()
        await press(pilot, "y")
        await stage.until_text("Done.", pilot)
        await until(lambda: "websearch tree rings" in stage.text(), pilot)


# -- the provider's own search ------------------------------------------------------------------------------

PAGES = (
    PageFound("https://a.example/x", "About A", day="April 30, 2025"),
    PageFound("https://b.example/y", "About B"),
    PageFound("https://b.example/y", "About B", "Trees grow."),
    PageFound("javascript:alert(1)", "No page"),
)
BY_MODEL = WebSearchTool(missing=advice(SearchSettings()), by_model=True)


def searcher(tmp_path: Path, *found: Reply, **more: Any) -> tuple[Harness, ScriptedClient]:
    """Return an agent whose model's provider searches, and gives these replies when it is asked to."""
    calls = [Reply(calls=(search("tree"),)), Reply("Done.")]
    replies = list(found)

    def script(request: ModelRequest) -> Reply:
        if request.search_hosts is not None:
            return replies.pop(0)
        return calls.pop(0) if calls else Reply("Done.")

    client = ScriptedClient(script)
    directory = FixedDirectory(searching={MODEL})
    harness = make_agent(
        tmp_path, client, tools=builtin_tools(BY_MODEL), directory=directory, **more
    )
    return harness, client


async def test_without_a_service_the_models_provider_searches(tmp_path: Path) -> None:
    harness, client = searcher(tmp_path, Reply("- Trees grow.", pages=PAGES, cost=0.25))
    await harness.say("look it up")
    (asked,) = [request for request in client.requests if request.search_hosts is not None]
    assert (asked.model, asked.search_hosts, asked.tools) == (MODEL, (), ())
    assert "Search the web for: tree" in asked.messages[-1].text
    (question,) = questions(harness)
    assert question.request.needs[0].detail == f"Sent to {MODEL}: tree"
    (result,) = results(harness)
    assert result.output == (
        "1. About A (2025-04-30)\nhttps://a.example/x\n\n"
        "2. About B\nhttps://b.example/y\nTrees grow."
    )
    assert any(isinstance(event, CostKnown) for event in harness.events)


async def test_a_search_that_fails_after_it_cost_something_is_charged(tmp_path: Path) -> None:
    broken = ModelError(ErrorKind.NETWORK, "The connection broke.")
    harness, _client = searcher(tmp_path, Reply(error=broken, cost=0.25))
    await harness.say("look it up")
    assert harness.session.info.side_cost == pytest.approx(0.25)


async def test_a_session_goes_on_with_a_model_that_does_not_search(tmp_path: Path) -> None:
    harness, client = searcher(tmp_path, Reply(pages=PAGES))
    await harness.say("look it up")
    harness.agent.change_model("other/model")
    await harness.say("and now?")
    last = client.requests[-1]
    assert last.model == "other/model"
    assert "websearch" not in {tool.name for tool in last.tools}
    assert any("https://b.example/y" in message.text for message in last.messages)
    assert not any(message.reasoning for message in last.messages)


@pytest.mark.parametrize(
    ("reply", "status", "words"),
    [
        (Reply("It can't be\nfound."), ToolStatus.COMPLETED, "[It can't be found.]"),
        (
            Reply(error=ModelError(ErrorKind.AUTH, "The key is refused.")),
            ToolStatus.ERROR,
            f"{MODEL} could not search: The key is refused.",
        ),
    ],
)
async def test_a_search_that_finds_nothing_or_fails_is_one_sentence(
    tmp_path: Path, reply: Reply, status: ToolStatus, words: str
) -> None:
    harness, _client = searcher(tmp_path, reply)
    await harness.say("look it up")
    (result,) = results(harness)
    assert result.status is status
    assert result.output.endswith(words)


async def test_the_small_model_searches_where_it_can(tmp_path: Path) -> None:
    harness, client = searcher(tmp_path, Reply(pages=PAGES), small_model="small/model")
    assert isinstance(harness.directory, FixedDirectory)
    harness.directory.searching.add("small/model")
    await harness.say("look it up")
    assert "small/model" in {request.model for request in client.requests}


@pytest.mark.parametrize(
    ("model", "searches"),
    [
        ("anthropic/claude-sonnet-4-5", True),
        ("openai/gpt-5.4", True),
        ("gemini/gemini-3.1-pro-preview", False),
        ("openrouter/anthropic/claude-sonnet-4-5", False),
        ("anthropic/claude-opus-5-5", False),
    ],
)
def test_only_at_their_own_address_do_providers_search(model: str, searches: bool) -> None:
    elsewhere = ModelSettings(base_url="https://gateway.corp/v1")
    own = {"anthropic/claude-opus-5-5": elsewhere}
    catalog = Catalog(own)
    router = Router(catalog, KEYS, models=own)
    directory = CatalogDirectory(catalog, LearntFacts(), wire_of=router.wire)
    assert directory.traits(model).searches is searches
