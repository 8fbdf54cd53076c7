"""Responses through the real client, from a scripted provider on this machine."""

import json
from dataclasses import replace

import pytest

from tests.model.wires.messages_rules import check as check_messages
from tests.support.model_client import PATIENT, ask, collect, user
from tests.support.model_server import BLOCK, Call, ModelServer, Turn, status
from tests.support.model_wire import error_body
from tests.support.responses_wire import Item, function_call, reasoning, response, stream
from tests.support.wire_rounds import Heard
from tui_agent.context.request import ContentText, Message, ModelRequest, RequestToolCall
from tui_agent.model.catalog import Catalog
from tui_agent.model.client import ProviderClient
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.route import Router
from tui_agent.model.settings import ModelSettings
from tui_agent.session.effort import Effort

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODEL = "openai/gpt-5.4"
OPUS = "anthropic/claude-opus-4-8"
THINKS = Turn(
    "I look.", (Call("read", {"path": "a"}),), reasoning="First this.", signature="gAAAAA=="
)


def after(answer: Heard, model: str = MODEL, *more: Message) -> ModelRequest:
    """The request that follows an answer and the results of its calls."""
    calls = tuple(RequestToolCall(call.call_id, call.tool, call.arguments) for call in answer.calls)
    blob = answer.finished.reasoning_blob
    said = Message(
        "assistant", (ContentText(answer.text),), calls, reasoning=(blob,) if blob else ()
    )
    results = tuple(Message("tool", (ContentText("done"),), call_id=call.call_id) for call in calls)
    return ask(model, messages=(user("hello"), said, *results, *more), tools=True)


def body(server: ModelServer, number: int) -> Item:
    return server.calls[number].json


def refusal(words: str, field: str) -> Turn:
    told = error_body("responses", 400, words, "unsupported_value")
    told["error"]["param"] = field
    return status(400, body=json.dumps(told).encode())


async def test_a_level_a_model_lacks_is_told_with_those_it_has(
    client: ProviderClient, server: ModelServer
) -> None:
    words = "Unsupported value: 'minimal' is not supported with this model. Supported values are: 'low' and 'high'."
    server.play(refusal(words, "reasoning.effort"), THINKS)

    first = await collect(client, ask("openai/gpt-5.2-codex", effort=Effort.MINIMAL))
    second = await collect(client, ask("openai/gpt-5.2-codex", effort=Effort.LOW))

    assert "'low' and 'high'" in first.failure.message
    assert second.error is None
    assert body(server, 1)["reasoning"] == {"effort": "low", "summary": "auto"}


async def test_an_organisation_that_may_have_no_summaries_keeps_its_reasoning(
    client: ProviderClient, server: ModelServer
) -> None:
    words = "Your organization must be verified to generate reasoning summaries."
    server.play(refusal(words, "reasoning.summary"), THINKS, Turn("It is 4."))

    first = await collect(client, ask("openai/gpt-5.2", tools=True))
    second = await collect(client, after(first, "openai/gpt-5.2"))

    assert (first.error, second.error) == (None, None)
    assert len(server.calls) == 3
    assert "summary" not in body(server, 1).get("reasoning", {})
    assert body(server, 1)["include"] == ["reasoning.encrypted_content"]
    assert body(server, 2)["input"][1]["encrypted_content"] == "gAAAAA=="


async def test_a_server_of_ones_own_can_be_asked_by_responses(server: ModelServer) -> None:
    models = {"lm_studio/qwen3": ModelSettings(base_url=server.openai_url, wire="responses")}
    client = ProviderClient(Router(Catalog(models), {}, models=models), host=PATIENT)
    thought = reasoning(1, encrypted=None, plain="I need the file.")
    server.play(
        Turn(events=stream(response([thought, function_call(2, "read", "{}")]))), Turn("Done.")
    )

    first = await collect(client, ask("lm_studio/qwen3", tools=True))
    second = await collect(client, after(first, "lm_studio/qwen3"))
    await client.aclose()

    assert (first.error, first.reasoning, second.text) == (None, "I need the file.", "Done.")
    assert "include" not in body(server, 0)
    assert body(server, 1)["input"][1] == thought


async def test_a_conversation_is_compacted_by_the_provider_and_goes_on_from_its_item(
    client: ProviderClient, server: ModelServer
) -> None:
    server.play(Turn("On we go."))

    head = Message("system", (ContentText("You work."),))
    asked = ask(MODEL, messages=(head, user("hello"), user("long talk")), tools=True)
    compacted = await collect(client, replace(asked, compact=True))
    assert compacted.error is None
    item = compacted.finished.reasoning_blob
    assert item is not None
    said = Message(
        "user", (ContentText("The talk in short."), ContentText("\nPinned.")), reasoning=(item,)
    )
    answer = await collect(client, ask(MODEL, messages=(said, user("Go on."))))

    assert answer.text == "On we go."
    assert server.calls[0].path == "/v1/responses/compact"
    assert body(server, 0).keys() == {"model", "input"}
    assert body(server, 1)["input"] == [
        {"role": "user", "content": "hello"},
        {"role": "user", "content": "long talk"},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "b3BhcXVl"},
        {"role": "user", "content": "\nPinned."},
        {"role": "user", "content": "Go on."},
    ], "all of the window as it came, less the instructions, and in place of the summary"


async def test_anthropic_compacts_on_demand_and_its_signed_block_comes_first(
    client: ProviderClient, server: ModelServer
) -> None:
    server.play(Turn("On we go."))

    asked = replace(
        ask(OPUS, messages=(user("hello"), user("long talk")), tools=True), tool_choice="none"
    )
    compacted = await collect(client, replace(asked, compact=True))
    assert (compacted.error, compacted.text) == (None, BLOCK["content"])
    assert compacted.finished.reasoning_blob is not None
    assert (compacted.used.input, compacted.used.output) == (144, 276), (
        "its step, not the empty answer"
    )
    texts = (ContentText("The talk in short."), ContentText("\nPinned."))
    said = Message("user", texts, reasoning=(compacted.finished.reasoning_blob,))
    answer = await collect(client, ask(OPUS, messages=(user("The project."), said, user("Go on."))))

    assert answer.text == "On we go."
    assert body(server, 0)["compaction"] == {"type": "summarize"}
    assert "tool_choice" not in body(server, 0)
    for request in server.calls:
        check_messages(request.json, request.headers)
    (turn,) = body(server, 1)["messages"]
    assert turn["content"][0] == BLOCK
    assert [block["text"] for block in turn["content"][1:]] == [
        "The project.",
        "\nPinned.",
        "Go on.",
    ]


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "ollama/llama3", MODEL])
async def test_a_provider_without_a_compaction_says_so(
    client: ProviderClient, server: ModelServer, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setattr(server, "compacts", False)
    server.play(Turn("Still here."))

    answer = await collect(client, replace(ask(model), compact=True))

    assert answer.failure.kind in {ErrorKind.INVALID_REQUEST, ErrorKind.NOT_FOUND}
    assert (await collect(client, ask(MODEL))).error is None, "the format itself is not given up"
