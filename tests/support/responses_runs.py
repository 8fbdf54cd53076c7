"""Answers in OpenAI's Responses read by the real reader, as entries of a session."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.support.responses_wire import Item, response, stream
from tui_agent.context.request import ModelRequest
from tui_agent.model.catalog import ModelInfo
from tui_agent.model.errors import Target
from tui_agent.model.protocol import (
    Finished,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallReady,
    UsageReport,
)
from tui_agent.model.providers import PROVIDERS
from tui_agent.model.route import Route
from tui_agent.model.wires import responses
from tui_agent.model.wires.events import EventDecoder
from tui_agent.model.wires.wire import WireFailure

MODEL = "openai/gpt-5.4"


def route(
    model: str = MODEL, *, reasoning: bool = True, small: bool = False, options: dict[str, Any] | None = None
) -> Route:
    """Where requests of a model go, as far as a wire looks at it."""
    provider, _, name = model.partition("/")
    info = ModelInfo(model, provider, 400_000, reasoning=reasoning)
    target = Target(model, provider)
    return Route(
        info,
        PROVIDERS[provider],
        target,
        wire="responses",
        name=name,
        is_small_server=small,
        options=options or {},
    )


def read(
    body: bytes, request: ModelRequest, where: Route | None = None, *, size: int | None = None
) -> list[ModelEvent]:
    """Read an answer's bytes, ``size`` at a time, to its last word or to the end of the bytes.

    Raises:
        WireFailure: it is an error, or not whole.
    """
    reader, decoder = responses.reader(request, where or route()), EventDecoder()
    events: list[ModelEvent] = []
    step = size or max(1, len(body))
    for start in range(0, len(body), step):
        if reader.done:
            break
        for name, data in decoder.feed(body[start : start + step]):
            events += reader.feed(name, data)
    if not reader.done:
        for name, data in decoder.end():
            try:
                events += reader.feed(name, data)
            except WireFailure as failed:
                if failed.failure.cause != "broken":
                    raise
    return [*events, *reader.end()]


def encoded(events: Iterable[Item]) -> bytes:
    """Events as OpenAI sends them."""
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def answer(items: Sequence[Item], request: ModelRequest | None = None, **end: Any) -> list[ModelEvent]:
    """Read an answer that consists of these items."""
    return read(encoded(stream(response(items, **end))), request or ModelRequest(MODEL, ()))


def text_of(events: Iterable[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def reasoning_of(events: Iterable[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def calls_of(events: Iterable[ModelEvent]) -> list[ToolCallReady]:
    return [event for event in events if isinstance(event, ToolCallReady)]


def usage_of(events: Iterable[ModelEvent]) -> UsageReport | None:
    return next((event for event in events if isinstance(event, UsageReport)), None)


def finished(events: Sequence[ModelEvent]) -> Finished:
    last = events[-1]
    assert isinstance(last, Finished)
    return last
