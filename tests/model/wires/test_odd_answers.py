"""Answers that are JSON and make no sense are read as far as they go."""

import json
from typing import Any

import pytest

from tests.support.wire_rounds import Heard, first_path, read, request_of, route_to, second_body
from tui_agent.model.wires import gemini, responses


def _heard(wire: Any, model: str, *events: dict[str, Any]) -> Heard:
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    return read(wire.reader(request_of(first_path(), model), route_to(model)), body)


@pytest.mark.parametrize("parts", [5, 1.5, True, "text", {"text": "x"}, [None, 7]])
def test_gemini_with_parts_that_are_none_says_nothing_more(parts: object) -> None:
    said = {"candidates": [{"content": {"parts": [{"text": "hello"}]}}]}
    odd = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}

    assert _heard(gemini, "gemini/gemini-2.5-pro", said, odd).text == "hello"


@pytest.mark.parametrize("odd", [{"a": 1}, ["reasoning"]])
def test_an_item_whose_kind_is_no_word_does_not_end_the_conversation(odd: object) -> None:
    model = "openai/gpt-5.2"
    reasoning = {"type": odd, "id": "rs_1", "encrypted_content": "gAAA", "summary": []}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**reasoning, "type": "reasoning"}},
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        {"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "delta": "hello"},
        {"type": "response.output_item.done", "output_index": 1, "item": {"type": "message", "id": "msg_1"}},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ]
    heard = _heard(responses, model, *events)
    sent = second_body(responses, route_to(model), heard)["input"]

    assert [item["role"] for item in sent if "role" in item] == ["developer", "user", "assistant", "user"]
