"""Answers of Gemini, from a scripted provider."""

import pytest

from tests.support.model_client import OPENAI_KEY, READ, ask, collect
from tests.support.model_server import Fault, ModelServer, Turn
from tui_agent.model.client import ProviderClient
from tui_agent.model.protocol import ErrorKind, Finished
from tui_agent.session.effort import Effort

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODEL = "gemini/gemini-2.5-pro"


async def test_a_cut_answer_of_gemini_is_noticed(client: ProviderClient, server: ModelServer) -> None:
    server.play(Turn("Hello there.", fault=Fault("cut", after=1)))

    answer = await collect(client, ask(MODEL))

    assert answer.error is not None
    assert answer.error.kind is ErrorKind.NETWORK


async def test_an_answer_of_gemini_that_just_ends_is_not_whole(client: ProviderClient, server: ModelServer) -> None:
    half = {"candidates": [{"content": {"parts": [{"text": "Hel"}], "role": "model"}, "index": 0}]}
    server.play(Turn(events=[half]))

    answer = await collect(client, ask(MODEL))

    assert answer.error is not None
    assert answer.error.kind is ErrorKind.NETWORK


async def test_usage_after_the_end_of_an_answer_of_geminis_is_counted(
    client: ProviderClient, server: ModelServer
) -> None:
    content = {"parts": [{"text": "Hello."}], "role": "model"}
    whole = {"candidates": [{"content": content, "index": 0, "finishReason": "STOP"}]}
    server.play(Turn(events=[whole, {"usageMetadata": {"promptTokenCount": 40, "candidatesTokenCount": 5}}]))

    answer = await collect(client, ask(MODEL))

    assert answer.error is None
    assert answer.usage is not None
    assert (answer.usage.usage.input, answer.usage.usage.output) == (40, 5)


async def test_a_prompt_gemini_blocks_is_filtered(client: ProviderClient, server: ModelServer) -> None:
    server.play(Turn(events=[{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}]))

    answer = await collect(client, ask(MODEL))

    assert answer.events[-1] == Finished("content_filter", note="SAFETY")


async def test_a_call_gemini_could_not_write_is_asked_for_again(client: ProviderClient, server: ModelServer) -> None:
    message = "Malformed function call: read(path"
    broken = {"candidates": [{"index": 0, "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message}]}
    server.play(Turn(events=[broken]))

    answer = await collect(client, ask(MODEL, tools=True))

    assert answer.error is not None
    assert answer.error.kind is ErrorKind.OVERLOADED
    assert message in answer.error.message


async def test_an_error_in_the_middle_of_an_answer_names_its_wait(client: ProviderClient, server: ModelServer) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    error = {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED", "details": details}}
    half = {"candidates": [{"content": {"parts": [{"text": "Hel"}], "role": "model"}, "index": 0}]}
    server.play(Turn(events=[half, error]))

    answer = await collect(client, ask(MODEL))

    assert answer.error is not None
    assert (answer.error.kind, answer.error.retry_after) == (ErrorKind.RATE_LIMIT, 34.0)


async def test_the_request_holds_what_was_asked_and_the_key_in_its_header(
    client: ProviderClient, server: ModelServer
) -> None:
    server.play(Turn("ok"))

    await collect(client, ask(MODEL, tools=True, max_output_tokens=77, tool_choice="none", effort=Effort.LOW))

    request = server.requests[0]
    assert request.path == "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == OPENAI_KEY
    assert request.json == {
        "tools": [
            {
                "functionDeclarations": [
                    {"name": READ.name, "description": READ.description, "parametersJsonSchema": READ.parameters}
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
        "generationConfig": {
            "maxOutputTokens": 77,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1_024},
        },
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
    }
