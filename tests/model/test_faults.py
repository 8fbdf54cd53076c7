"""What providers do wrong, through the real litellm: the right kind of error, never a hang, never a retry."""

import asyncio
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_client import HOSTED_MODEL, IMPATIENT, OPENAI_KEY, Provider, ask, collect
from tests.support.model_server import Fault, ModelServer, Turn, status
from tui_agent.model.client import ProviderClient
from tui_agent.model.protocol import ErrorKind, Finished

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMIT = 30.0
"""Seconds after which a request counts as hung."""


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (401, ErrorKind.AUTH),
        (404, ErrorKind.NOT_FOUND),
        (413, ErrorKind.CONTEXT_OVERFLOW),
        (429, ErrorKind.RATE_LIMIT),
        (500, ErrorKind.OVERLOADED),
    ],
)
async def test_statuses(
    client: ProviderClient, server: ModelServer, provider: Provider, code: int, kind: ErrorKind
) -> None:
    if provider is Provider.RESPONSES and code == 404:
        pytest.skip("a gateway that knows no such path is asked by chat completions")
    server.play(status(code, "The words of the provider."))

    async with asyncio.timeout(LIMIT):
        error = (await collect(client, ask(provider.model))).error

    assert error is not None
    assert (error.kind, error.status) == (kind, code)
    assert error.retry_after is None
    assert "litellm" not in error.message
    assert "Exception" not in error.message
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [429, 529])
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "DATE"}, 3_600),
    ],
)
async def test_a_named_wait_arrives(
    client: ProviderClient,
    server: ModelServer,
    provider: Provider,
    code: int,
    headers: dict[str, str],
    wait: float,
) -> None:
    moment = formatdate(time.time() + 3_600, usegmt=True)
    server.play(
        status(
            code,
            "slow down",
            headers={key: value.replace("DATE", moment) for key, value in headers.items()},
        )
    )

    error = (await collect(client, ask(provider.model))).failure

    # Of a date there is less left by now, and how much depends on the machine.
    assert error.retry_after == pytest.approx(wait, abs=600 if wait == 3_600 else 0.01)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("silent"), ErrorKind.NETWORK),
        (Fault("stall", after=6), ErrorKind.NETWORK),
        (Fault("cut", after=0), ErrorKind.NETWORK),
        (Fault("cut", after=6), ErrorKind.NETWORK),
        (Fault("malformed", after=6), ErrorKind.NETWORK),
        (
            Fault("stream_error", after=6, message="Overloaded", code="overloaded_error"),
            ErrorKind.OVERLOADED,
        ),
    ],
    ids=lambda value: f"{value.kind} {value.after}" if isinstance(value, Fault) else "",
)
async def test_broken_streams(
    client: ProviderClient,
    server: ModelServer,
    provider: Provider,
    fault: Fault,
    kind: ErrorKind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if provider is Provider.HOSTED:
        # litellm loads the rest of itself with its first request.
        server.play(Turn("loaded"))
        await collect(client, ask(provider.model))
    server.play(Turn("one two three four five six seven eight", fault=fault), Turn("fine"))
    if fault.kind in {"silent", "stall"}:
        monkeypatch.setattr(client, "settings", IMPATIENT)

    async with asyncio.timeout(LIMIT):
        answer = await collect(client, ask(provider.model))

    monkeypatch.undo()
    assert answer.failure.kind is kind
    assert not any(isinstance(event, Finished) for event in answer.events)
    assert "eight" not in answer.text
    assert len(server.requests) == 1
    assert (await collect(client, ask(provider.model))).text == "fine"


@pytest.mark.parametrize(("said", "finish"), [("", None), ("I can't.", "content_filter")])
async def test_an_empty_answer_ends_and_a_refusal_is_told(
    client: ProviderClient, server: ModelServer, provider: Provider, said: str, finish: Any
) -> None:
    server.play(Turn(said, finish=finish))

    answer = await collect(client, ask(provider.model))

    assert (answer.error, answer.text) == (None, said)
    assert answer.finished.reason == (finish or "stop")


async def test_keys_reach_neither_messages_nor_the_log(
    client: ProviderClient, server: ModelServer, host_log: Path
) -> None:
    server.play(
        status(401, f"Incorrect API key provided: {OPENAI_KEY}. Authorization: Bearer {OPENAI_KEY}")
    )

    error = (await collect(client, ask(HOSTED_MODEL))).failure

    assert OPENAI_KEY not in error.message
    assert "OPENAI_API_KEY" in error.message
    text = host_log.read_text()
    assert "failed" in text
    assert OPENAI_KEY not in text


async def test_a_refused_connection_says_to_check_the_server(
    client: ProviderClient, provider: Provider
) -> None:
    error = (await collect(client, ask(provider.refused_model))).failure

    assert error.kind is ErrorKind.NETWORK
    assert "Nothing answers at 127.0.0.1:" in error.message
