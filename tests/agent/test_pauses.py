"""Answers that the provider pauses or refuses: what the agent does next."""

from pathlib import Path

from tests.support.agents import make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.events import RunEnded
from tui_agent.context.request import ModelRequest
from tui_agent.session.entries import AssistantEntry, UserEntry


async def test_a_paused_answer_is_gone_on_with_and_nothing_is_said_in_between(tmp_path: Path) -> None:
    def reply(request: ModelRequest) -> Reply:
        if len(client.requests) == 1:
            harness.agent.submit("And Osaka?")
            return Reply("[web_search] Tokyo", finish="pause")
        return Reply("Tokyo has 37 million." if len(client.requests) == 2 else "Osaka has 19.")

    client = ScriptedClient(reply)
    harness = make_agent(tmp_path, client)
    ended = await harness.say("How many live in Tokyo?")

    assert ended == RunEnded("done", steps=3)
    assert [message.role for message in client.requests[1].messages[-2:]] == ["user", "assistant"]
    assert client.requests[1].messages[-1].text == "[web_search] Tokyo"
    assert client.requests[2].messages[-1].text.count("And Osaka?") == 1
    path = [(entry.kind, entry.text) for entry in harness.path() if isinstance(entry, AssistantEntry | UserEntry)]
    assert path == [
        ("user", "How many live in Tokyo?"),
        ("assistant", "[web_search] Tokyo"),
        ("assistant", "Tokyo has 37 million."),
        ("user", "And Osaka?"),
        ("assistant", "Osaka has 19."),
    ]


async def test_a_provider_that_never_ends_its_pauses_is_stopped_at_the_step_limit(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("[web_search] again", finish="pause")])
    harness = make_agent(tmp_path, client, max_steps=4)
    assert (await harness.say("search")).reason == "step_limit"
    assert len(client.requests) == 4


async def test_a_refusal_says_why_and_ends_the_run(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(finish="content_filter", note="This was blocked under the usage policy.")])
    harness = make_agent(tmp_path, client)
    ended = await harness.say("do harm")

    assert ended.reason == "error"
    assert ended.error == "The provider refused to answer: This was blocked under the usage policy."
    answer = harness.path()[-1]
    assert isinstance(answer, AssistantEntry)
    assert (answer.finish, answer.error) == ("content_filter", ended.error)
    assert len(client.requests) == 1
