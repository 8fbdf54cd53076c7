"""Ollama's own chat: what is posted, and its lines."""

import json
from typing import Any

import pytest

from tests.support.wire_rounds import READ, Heard, first_path, request_of, route_to, second_body
from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.model.wires import ollama
from tui_agent.model.wires.wire import WireFailure
from tui_agent.session.effort import Effort

MODEL = "ollama/qwen3"


def hear(*lines: dict[str, Any]) -> Heard:
    reader = ollama.reader(request_of(first_path(), MODEL), route_to(MODEL))
    events = [event for line in lines for event in reader.feed("", json.dumps(line))]
    return Heard((*events, *reader.end()))


def body(request: ModelRequest, **settings: Any) -> dict[str, Any]:
    return ollama.call(request, route_to(request.model, **settings)).body


def test_the_window_is_told_and_options_go_where_they_belong() -> None:
    request = ModelRequest(MODEL, (Message("user", (ContentText("hi"),)),), (READ,), max_output_tokens=7)
    options = {"temperature": 0.5, "keep_alive": "1h", "num_ctx": 9_000}
    sent, own = body(request, context_window=16_384), body(request, options=options)

    assert sent["options"] == {"num_ctx": 16_384, "num_predict": 7}
    assert own["options"] == {"num_ctx": 9_000, "num_predict": 7, "temperature": 0.5}
    assert own["keep_alive"] == "1h"
    assert sent["tools"][0]["function"]["name"] == "read"


@pytest.mark.parametrize(
    ("model", "effort", "think"),
    [
        (MODEL, Effort.HIGH, True),
        (MODEL, Effort.OFF, False),
        ("ollama/gpt-oss:20b", Effort.LOW, "low"),
        ("ollama/gpt-oss:20b", Effort.MAX, "high"),
    ],
)
def test_thinking_is_a_switch_and_for_some_a_level(model: str, effort: Effort, think: object) -> None:
    request = ModelRequest(model, (Message("user", (ContentText("hi"),)),), effort=effort)

    assert body(request)["think"] == think
    assert "think" not in body(ModelRequest(model, request.messages))


def test_calls_results_and_images_as_it_takes_them() -> None:
    call = RequestToolCall("c1", "read", '{"path": "a"}')
    messages = (
        Message("user", (ContentText("see"), ImageRef("a", "image/png"), ImageRef("gone", "image/png"))),
        Message("assistant", tool_calls=(call,)),
        Message("tool", (ContentText("x"),), call_id="c1"),
    )
    user, assistant, result = body(ModelRequest(MODEL, messages, blobs={"a": b"\x00"}))["messages"]

    assert user["images"] == ["AA=="]
    assert "no longer available" in user["content"]
    assert assistant["tool_calls"][0]["function"] == {"name": "read", "arguments": {"path": "a"}}
    assert (result["tool_name"], result["content"]) == ("read", "x")


def test_an_answer_is_read_and_its_thinking_goes_back() -> None:
    heard = hear(
        {"message": {"thinking": "h"}, "done": False},
        {"message": {"thinking": "m", "content": "Looking."}, "done": False},
        {"message": {"tool_calls": [{"function": {"name": "read", "arguments": {"path": "ö"}}}]}, "done": False},
        {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 30, "eval_count": 7},
    )

    assert (heard.reasoning, heard.text, heard.finished.reason) == ("hm", "Looking.", "tool_calls")
    assert heard.calls[0].arguments == '{"path": "ö"}'
    assert (heard.used.input, heard.used.output) == (30, 7)
    assert second_body(ollama, route_to(MODEL), heard)["messages"][2]["thinking"] == "hm"


def test_an_answer_that_is_cut_says_so_and_one_that_ends_early_or_fails_is_not_whole() -> None:
    assert hear({"message": {"content": "x"}, "done": True, "done_reason": "length"}).finished.reason == "length"
    for line in ({"message": {"content": "x"}, "done": False}, {"error": "model runner has unexpectedly stopped"}):
        with pytest.raises(WireFailure):
            hear(line)
