"""A ping has the bytes of the request it repeats in every format, but for the length of the answer."""

import importlib
from dataclasses import replace
from typing import Any

import pytest

from tests.support.wire_rounds import READ, route_to
from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.session.effort import Effort

SHORTEST = {
    "anthropic/claude-opus-4-6": ("max_tokens", 1),
    "openai/gpt-5.4": ("max_output_tokens", 16),
    "deepseek/deepseek-chat": ("max_tokens", 1),
    "gemini/gemini-2.5-pro": ("generationConfig", 1),
}


def body_of(request: ModelRequest) -> dict[str, Any]:
    route = route_to(request.model)
    wire = importlib.import_module(f"tui_agent.model.wires.{route.wire}")
    body: dict[str, Any] = wire.call(request, route).body
    return body


@pytest.mark.parametrize("effort", [None, Effort.LOW, Effort.MAX])
@pytest.mark.parametrize("model", [*SHORTEST, "anthropic/claude-sonnet-4-5"])
def test_only_the_room_for_the_answer_differs(model: str, effort: Effort | None) -> None:
    request = ModelRequest(
        model=model,
        messages=(
            Message("system", (ContentText("You are an agent."),), cache=True),
            Message("user", (ContentText("Hello."),), cache=True),
        ),
        tools=(READ,),
        max_output_tokens=20_000,
        effort=effort,
        session="a-session",
    )
    sent = body_of(request)
    pinged = body_of(replace(request, ping=True))
    name, shortest = SHORTEST.get(model, ("max_tokens", 1))
    room = pinged.pop(name)
    sent_room = sent.pop(name)
    assert pinged == sent
    if "budget_tokens" in sent.get("thinking", {}):
        assert room == sent_room, "thinking needs the room, and must stay as it is for the cache"
    elif isinstance(room, dict):
        assert room == sent_room | {"maxOutputTokens": shortest}
    else:
        assert room == shortest
