"""Answers in OpenAI's Responses, read by the real reader."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.support import wire_rounds
from tests.support.responses_wire import Item, response, stream
from tests.support.wire_rounds import Heard
from tui_agent.context.request import ModelRequest
from tui_agent.model.catalog import ModelInfo
from tui_agent.model.errors import Target
from tui_agent.model.providers import PROVIDERS
from tui_agent.model.route import Route
from tui_agent.model.wires import responses

MODEL = "openai/gpt-5.4"


def route(model: str = MODEL, *, reasoning: bool = True, options: dict[str, Any] | None = None) -> Route:
    """Where requests of a model go, as far as a wire looks at it."""
    provider, _, name = model.partition("/")
    info = ModelInfo(model, provider, 400_000, reasoning=reasoning)
    return Route(info, PROVIDERS[provider], Target(model, provider), wire="responses", name=name, options=options or {})


def read(body: bytes, request: ModelRequest | None = None, *, size: int | None = None) -> Heard:
    """Read an answer's bytes, ``size`` at a time, to its last word or to the end of the bytes.

    Raises:
        WireFailure: it is an error, or not whole.
    """
    reader = responses.reader(request or ModelRequest(MODEL, ()), route())
    return wire_rounds.read(reader, body, range(size, len(body), size) if size else ())


def encoded(events: Iterable[Item]) -> bytes:
    """Events as OpenAI sends them."""
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def answer(items: Sequence[Item], request: ModelRequest | None = None, **end: Any) -> Heard:
    """Read an answer that consists of these items."""
    return read(encoded(stream(response(items, **end))), request)
