"""Answers through the real litellm in the real host process, from a scripted provider."""

import asyncio
import json

import pytest

from tests.support.model_client import OPENAI_KEY, READ, Provider, ask, collect
from tests.support.model_server import Call, Fault, ModelServer, Turn
from tui_agent.model.client import ProviderClient
from tui_agent.model.protocol import Finished, TextDelta, ToolCallDelta, ToolCallReady
from tui_agent.session.effort import Effort

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_text_usage_and_price_arrive(
    client: ProviderClient, server: ModelServer, provider: Provider
) -> None:
    server.play(Turn("Hello, wörld 👋.", usage={"input": 1000, "output": 200, "cache_read": 500}))

    answer = await collect(client, ask(provider.model))

    assert answer.error is None
    assert answer.text == "Hello, wörld 👋."
    assert answer.events[-1] == Finished("stop")
    assert answer.usage is not None
    usage = answer.usage.usage
    assert (usage.input, usage.output, usage.cache_read) == (1000, 200, 500)
    prices = {Provider.ANTHROPIC: 0.00615, Provider.RESPONSES: 0.005625, Provider.GEMINI: 0.0033125}
    assert answer.usage.cost == pytest.approx(prices.get(provider, 0.005125))


async def test_the_openai_request_holds_what_was_asked_and_nothing_else(
    client: ProviderClient, server: ModelServer
) -> None:
    server.play(Turn("ok"))

    await collect(
        client, ask("openai/gpt-4o", tools=True, max_output_tokens=77, tool_choice="none")
    )

    request = server.requests[0]
    assert request.headers["authorization"] == f"Bearer {OPENAI_KEY}"
    fields = {
        "model",
        "messages",
        "tools",
        "tool_choice",
        "stream",
        "stream_options",
        "max_completion_tokens",
    }
    assert set(request.json) == fields
    told = {"model": "gpt-4o", "max_completion_tokens": 77, "tool_choice": "none"}
    assert (
        request.json.items() >= {**told, "messages": [{"role": "user", "content": "hello"}]}.items()
    )


async def test_tool_calls_stream_and_end_whole(
    client: ProviderClient, server: ModelServer, provider: Provider
) -> None:
    arguments = json.dumps({"path": "src/größe.py", "lines": [1, 2, 3]}, ensure_ascii=False)
    server.play(
        Turn(
            "Let me look.",
            tool_calls=[Call("read", arguments, pieces=5), Call("ls", pieces=1)],
            delay=0.001,
        )
    )

    answer = await collect(client, ask(provider.model, tools=True))

    assert [(call.tool, call.arguments) for call in answer.calls] == [
        ("read", arguments),
        ("ls", "{}"),
    ]
    assert answer.written[0][2] == arguments
    # Gemini's calls come whole.
    deltas = [
        event for event in answer.events if isinstance(event, ToolCallDelta) and event.index == 0
    ]
    assert len(deltas) > 1 or provider is Provider.GEMINI
    assert {call[0] for call in answer.written.values()} == {call.call_id for call in answer.calls}
    assert answer.finished.reason == "tool_calls"


async def test_an_answer_cut_for_length_in_a_call_keeps_what_there_is(
    client: ProviderClient, server: ModelServer, provider: Provider
) -> None:
    if provider is Provider.GEMINI:
        pytest.skip("its calls come whole or not at all")
    server.play(Turn(tool_calls=[Call("read", '{"path": "src/a', pieces=2)], finish="length"))

    answer = await collect(client, ask(provider.model, tools=True))

    assert answer.calls == [ToolCallReady(answer.calls[0].call_id, "read", '{"path": "src/a')]
    assert answer.finished == Finished("length")


async def test_cancelling_closes_the_connection_at_the_provider(
    client: ProviderClient, server: ModelServer, provider: Provider
) -> None:
    server.play(Turn("word " * 1000, delay=0.01), Turn("still here"))

    stream = client.stream(ask(provider.model))
    async for event in stream:
        assert isinstance(event, TextDelta)
        break
    await stream.aclose()  # type: ignore[attr-defined]

    await server.until(lambda server: server.requests[0].aborted)
    assert (await collect(client, ask(provider.model))).text == "still here"


async def test_a_cancelled_task_closes_the_connection_before_the_first_byte(
    client: ProviderClient, server: ModelServer, provider: Provider
) -> None:
    server.play(Turn(fault=Fault("silent")))
    task = asyncio.create_task(collect(client, ask(provider.model)))
    await server.until(lambda server: bool(server.requests))

    task.cancel()

    await server.until(lambda server: server.requests[0].aborted)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_geminis_request_holds_what_was_asked_and_the_key_in_its_header(
    client: ProviderClient, server: ModelServer
) -> None:
    server.play(Turn("ok"))

    await collect(
        client,
        ask(
            "gemini/gemini-2.5-pro",
            tools=True,
            max_output_tokens=77,
            tool_choice="none",
            effort=Effort.LOW,
        ),
    )

    request = server.requests[0]
    assert request.path == "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == OPENAI_KEY
    tool = {
        "name": READ.name,
        "description": READ.description,
        "parametersJsonSchema": READ.parameters,
    }
    thinking = {"includeThoughts": True, "thinkingBudget": 1_024}
    assert request.json == {
        "tools": [{"functionDeclarations": [tool]}],
        "toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
        "generationConfig": {"maxOutputTokens": 77, "thinkingConfig": thinking},
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
    }
