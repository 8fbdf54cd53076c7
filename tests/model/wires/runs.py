"""Answers in OpenAI's Responses, read by the real reader; and answers of any format with something odd in them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

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


def route(
    model: str = MODEL, *, reasoning: bool = True, options: dict[str, Any] | None = None
) -> Route:
    """Where requests of a model go, as far as a wire looks at it."""
    provider, _, name = model.partition("/")
    info = ModelInfo(model, provider, 400_000, reasoning=reasoning)
    return Route(
        info,
        PROVIDERS[provider],
        Target(model, provider),
        wire="responses",
        name=name,
        options=options or {},
    )


def read(body: bytes, request: ModelRequest | None = None) -> Heard:
    """Read an answer's bytes to its last word or to their end; raises WireFailure where it is an error or not whole."""
    return wire_rounds.read(responses.reader(request or ModelRequest(MODEL, ()), route()), body)


def encoded(events: Iterable[Item]) -> bytes:
    """Events as OpenAI sends them."""
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


def answer(items: Sequence[Item], **end: Any) -> Heard:
    """Read an answer that consists of these items."""
    return read(encoded(stream(response(items, **end))))


ODD = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.just(10**400),
        st.floats(allow_nan=False),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def spoil(events: Sequence[Item], data: st.DataObject) -> None:
    """Put something odd into places of some events, however deep."""
    for _ in range(data.draw(st.integers(1, 4))):
        value = data.draw(st.sampled_from(events))
        while True:
            key = data.draw(st.sampled_from(sorted(value)))
            inner = value[key]
            if isinstance(inner, list) and inner and isinstance(inner[0], dict):
                inner = inner[0]
            if not (isinstance(inner, dict) and inner and data.draw(st.booleans())):
                value[key] = data.draw(ODD)
                break
            value = inner
