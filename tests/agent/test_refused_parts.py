"""A part that a provider refuses is left out of the session, shown as a marker, and can be restored."""

import json
from pathlib import Path

from tests.support.agents import Harness, make_agent
from tests.support.drawn import drawn
from tests.support.model_script import Recorded
from tests.support.model_server import ModelServer, Turn, status
from tui_agent.model.catalog import Catalog
from tui_agent.model.client import ProviderClient
from tui_agent.model.route import Router
from tui_agent.model.settings import ModelSettings
from tui_agent.session.entries import ContextEditEntry, ImagePart, TextPart

MODEL = "openai/own"
WORDS = "Write calls in <tool_call>.\n\n{tools}"


def picky(request: Recorded) -> Turn:
    """A server that can't read pictures."""
    has_picture = "image_url" in json.dumps(request.json)
    return status(400, "Could not process image") if has_picture else Turn("Fine.")


def agent_at(tmp_path: Path, server: ModelServer, settings: ModelSettings | None = None) -> Harness:
    said = settings or ModelSettings(vision=True)
    models = {MODEL: said.model_copy(update={"base_url": server.openai_url})}
    return make_agent(
        tmp_path,
        ProviderClient(Router(Catalog(models), {}, models=models), prompt=lambda _name: WORDS),
        model=MODEL,
    )


async def test_a_picture_the_provider_refuses_is_taken_out_and_comes_back_when_restored(
    tmp_path: Path,
) -> None:
    with ModelServer(picky) as server:
        harness = agent_at(tmp_path, server)
        picture = ImagePart(blob=harness.store.put_blob(drawn()), mime="image/png", path="a.png")
        harness.agent.submit((TextPart(text="look"), picture))
        first = await harness.ended()
        second = await harness.say("and now?")
        asked = len(server.calls)
        (edit,) = harness.entries(ContextEditEntry)
        harness.agent.edit_context(edit.target, "restore")
        third = await harness.say("again?")
        await harness.client.aclose()

    assert [ended.reason for ended in (first, second, third)] == ["done"] * 3
    assert asked == 3, "the second message has no picture to refuse"
    assert edit.note == "picture a.png removed: the provider can't read it"
    assert any("can't read a picture" in notice for notice in harness.notices())
    assert "removed: the provider can't read it" in json.dumps(server.calls[2].json)
    assert "image_url" in json.dumps(server.calls[3].json), "it was restored"


def forgetful(request: Recorded) -> Turn:
    """A server that doesn't know its own reasoning again."""
    has_reasoning = any("reasoning_content" in message for message in request.json["messages"])
    refusal = status(400, "messages.2: Invalid `signature` in `thinking` block")
    return refusal if has_reasoning else Turn("Fine.", reasoning="I think.")


async def test_reasoning_the_provider_refuses_goes_and_what_comes_after_is_sent_again(
    tmp_path: Path,
) -> None:
    with ModelServer(forgetful) as server:
        harness = agent_at(tmp_path, server)
        ended = [await harness.say(text) for text in ("one", "two", "three")]
        await harness.client.aclose()

    assert [each.reason for each in ended] == ["done"] * 3
    edits = harness.entries(ContextEditEntry)
    assert [edit.note.partition(" up to")[0] for edit in edits] == ["reasoning"] * 2
    last = next(request for request in server.calls if "three" in json.dumps(request.json)).json[
        "messages"
    ]
    assert sum("reasoning_content" in message for message in last) == 1, (
        "only what came after the first refusal"
    )


def toolless(request: Recorded) -> Turn:
    """A server that takes no tools, with a model that does as its prompt says."""
    body = request.json
    if body.get("tools") or any(message["role"] == "tool" for message in body["messages"]):
        return status(400, "registry.ollama.ai/library/gemma:2b does not support tools")
    said = json.dumps(body["messages"])
    if "forty-two" in said:
        return Turn("It says forty-two.")
    assert "tool_call" in str(body["messages"][0])
    return Turn(
        'I look.\n<tool_call>\n{"name": "read", "arguments": {"path": "n.txt"}}\n</tool_call>'
    )


async def test_a_server_without_tools_is_told_of_them_and_its_calls_are_run(tmp_path: Path) -> None:
    with ModelServer(toolless) as server:
        harness = agent_at(tmp_path, server)
        (Path(harness.agent.session.info.cwd) / "n.txt").write_text("forty-two\n")
        first = await harness.say("What is in n.txt?")
        asked = len(server.calls)
        second = await harness.say("and again?")
        await harness.client.aclose()

    assert [first.reason, second.reason] == ["done", "done"]
    assert asked == 3, "refused once; then what was learnt holds"
    assert any("accepts no tools" in notice for notice in harness.notices())
    last = server.calls[-1].json["messages"]
    assert [message["role"] for message in last][-1] == "user"
    assert "Result of read:" in json.dumps(last)


async def test_a_model_known_to_take_no_tools_is_sent_none_and_its_calls_are_run(
    tmp_path: Path,
) -> None:
    with ModelServer(toolless) as server:
        harness = agent_at(tmp_path, server, ModelSettings(tools=False))
        (Path(harness.agent.session.info.cwd) / "n.txt").write_text("forty-two\n")
        ended = await harness.say("What is in n.txt?")
        await harness.client.aclose()

    assert ended.reason == "done"
    assert len(server.calls) == 2, "nothing was refused"
    assert not any(call.json.get("tools") for call in server.calls)
