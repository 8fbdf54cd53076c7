"""The title of a session: the first message at once, a small model's after the first run, never over the user's."""

from pathlib import Path

import pytest

from tests.support.agents import MODEL, make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.events import CostKnown, TitleChanged
from tui_agent.agent.titles import MAX_TOKENS, clean_title
from tui_agent.context.request import ModelRequest
from tui_agent.model.demo import DEMO_MODEL
from tui_agent.model.protocol import ErrorKind, ModelError

SMALL = "test/small"


def script(title: Reply):
    def answer(request: ModelRequest) -> Reply:
        return title if request.max_output_tokens == MAX_TOKENS else Reply("Done.")

    return answer


def asked(client: ScriptedClient) -> list[ModelRequest]:
    return [request for request in client.requests if request.max_output_tokens == MAX_TOKENS]


async def test_a_small_model_is_asked_once_after_the_first_run(tmp_path: Path) -> None:
    client = ScriptedClient(script(Reply('"Fix login redirect."')))
    harness = make_agent(tmp_path, client, titles=True, small_model=SMALL)
    await harness.say("the login redirect loses its query\nplease fix it")
    assert harness.session.info.title == "the login redirect loses its query"
    await harness.until(lambda: harness.session.info.title == "Fix login redirect")
    await harness.say("thanks")
    assert [request.model for request in asked(client)] == [SMALL]
    (request,) = asked(client)
    assert "please fix it" in request.messages[-1].text
    assert request.tools == ()
    assert harness.of(TitleChanged) == [TitleChanged("Fix login redirect")]
    assert harness.kinds().count("assistant") == 2


async def test_without_a_small_model_the_conversations_is_asked(tmp_path: Path) -> None:
    client = ScriptedClient(script(Reply("A title")))
    harness = make_agent(tmp_path, client, titles=True)
    await harness.say("hello there")
    await harness.until(lambda: harness.session.info.title == "A title")
    assert [request.model for request in asked(client)] == [MODEL]


async def test_a_title_of_the_users_is_never_replaced(tmp_path: Path) -> None:
    client = ScriptedClient(script(Reply("A title", hang=False)))
    harness = make_agent(tmp_path, client, titles=True, small_model=SMALL)
    harness.agent.submit("hello there")
    harness.session.set_title("Mine")
    await harness.ended()
    await harness.until(lambda: client.closed == 2)
    await harness.agent.aclose()
    assert harness.session.info.title == "Mine"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(error=ModelError(ErrorKind.RATE_LIMIT, "no")),
        Reply("Half a tit", finish="length"),
        Reply(""),
        Reply("Sure!\nHere is a title:"),
    ],
)
async def test_failure_is_silent_and_leaves_the_first_message(tmp_path: Path, reply: Reply) -> None:
    client = ScriptedClient(script(reply))
    harness = make_agent(tmp_path, client, titles=True, small_model=SMALL)
    assert (await harness.say("hello there")).reason == "done"
    await harness.until(lambda: client.closed == 2)
    assert len(asked(client)) == 1
    assert harness.session.info.title == "hello there"
    assert harness.of(TitleChanged) == []


async def test_what_a_title_costs_is_part_of_the_sessions_cost(tmp_path: Path) -> None:
    client = ScriptedClient(script(Reply("A title", cost=0.25)))
    harness = make_agent(tmp_path, client, titles=True, small_model=SMALL)
    await harness.say("hello there")
    await harness.until(lambda: harness.session.info.title == "A title")
    assert harness.agent.session_cost() == 0.25
    assert harness.of(CostKnown) == [CostKnown()]


async def test_closing_does_not_wait_for_a_title(tmp_path: Path) -> None:
    client = ScriptedClient(script(Reply("A", hang=True)))
    harness = make_agent(tmp_path, client, titles=True, small_model=SMALL)
    await harness.say("hello there")
    await harness.until(client.hanging.is_set)
    await harness.agent.aclose()
    assert harness.session.info.title == "hello there"


@pytest.mark.parametrize("arguments", [{"titles": False}, {"titles": True, "model": DEMO_MODEL}])
async def test_nothing_is_asked_where_it_is_not_wanted(tmp_path: Path, arguments: dict[str, object]) -> None:
    client = ScriptedClient(script(Reply("A title")))
    harness = make_agent(tmp_path, client, small_model=SMALL, **arguments)
    await harness.say("hello there")
    await harness.agent.aclose()
    assert asked(client) == []


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Fix the race", "Fix the race"),
        ("  “Fix the race.” \n", "Fix the race"),
        ("Title: Fix it", "Fix it"),
        ("one\ntwo", ""),
        ("x" * 200, ""),
        ("bad\x1b[31m", ""),
    ],
)
def test_what_counts_as_a_title(answer: str, title: str) -> None:
    assert clean_title(answer) == title
