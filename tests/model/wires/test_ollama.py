"""Ollama's own chat: what is posted, and its lines; bodies cut into events and documents."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.wires.runs import spoil
from tests.support.wire_rounds import READ, Heard, first_path, request_of, route_to, second_body
from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.model.wires import ollama
from tui_agent.model.wires.http import DocumentDecoder, EventDecoder
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
    request = ModelRequest(
        MODEL, (Message("user", (ContentText("hi"),)),), (READ,), max_output_tokens=7
    )
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
def test_thinking_is_a_switch_and_for_some_a_level(
    model: str, effort: Effort, think: object
) -> None:
    request = ModelRequest(model, (Message("user", (ContentText("hi"),)),), effort=effort)

    assert body(request)["think"] == think
    assert "think" not in body(ModelRequest(model, request.messages))


def test_calls_results_and_images_as_it_takes_them() -> None:
    call = RequestToolCall("c1", "read", '{"path": "a"}')
    messages = (
        Message(
            "user", (ContentText("see"), ImageRef("a", "image/png"), ImageRef("gone", "image/png"))
        ),
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
        {
            "message": {"tool_calls": [{"function": {"name": "read", "arguments": {"path": "ö"}}}]},
            "done": False,
        },
        {
            "message": {"content": ""},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 30,
            "eval_count": 7,
        },
    )

    assert (heard.reasoning, heard.text, heard.finished.reason) == ("hm", "Looking.", "tool_calls")
    assert heard.calls[0].arguments == '{"path": "ö"}'
    assert (heard.used.input, heard.used.output) == (30, 7)
    assert second_body(ollama, route_to(MODEL), heard)["messages"][2]["thinking"] == "hm"


def test_an_answer_that_is_cut_says_so_and_one_that_ends_early_or_fails_is_not_whole() -> None:
    assert (
        hear({"message": {"content": "x"}, "done": True, "done_reason": "length"}).finished.reason
        == "length"
    )
    for line in (
        {"message": {"content": "x"}, "done": False},
        {"error": "model runner has unexpectedly stopped"},
    ):
        with pytest.raises(WireFailure):
            hear(line)


BODY = (
    ': a comment\n\nevent: first\ndata: {"a": "größe 👋"}\n\nid: 7\nretry: 5\ndata:no space\n\n'
    "data: two\ndata: lines\n\nevent: lost\n\ndata: last\n\n"
)
EVENTS = [("first", '{"a": "größe 👋"}'), ("", "no space"), ("", "two\nlines"), ("", "last")]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 1000])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_events_are_the_same_however_bytes_and_lines_are_cut(ends: str, size: int) -> None:
    body = BODY.replace("\n", ends).encode()
    decoder = EventDecoder()
    events = [
        event for at in range(0, len(body), size) for event in decoder.feed(body[at : at + size])
    ]

    assert events + decoder.end() == EVENTS


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"a": 1}\n{"a": "\xc3\xb6"}\n\n{"a": 3}', 3),
        (b'{"a": 1}', 1),
        (json.dumps({"a": {"b": 1}, "c": [{}]}, indent=2).encode(), 1),
    ],
)
def test_documents_by_line_and_over_lines(body: bytes, count: int, size: int) -> None:
    decoder = DocumentDecoder()
    found = [
        text
        for at in range(0, len(body), size)
        for _name, text in decoder.feed(body[at : at + size])
    ]
    found += [text for _name, text in decoder.end()]

    assert len([json.loads(text) for text in found]) == count


@given(st.data())
def test_whatever_the_server_sends_is_read_or_refused(data: st.DataObject) -> None:
    call = {"id": "c", "function": {"name": "read", "arguments": {"path": "a"}}}
    lines: list[dict[str, Any]] = [
        {"message": {"thinking": "Hm.", "content": "Hi."}},
        {"message": {"tool_calls": [call]}},
        {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2},
    ]
    lines = json.loads(json.dumps(lines))
    spoil(lines, data)
    with contextlib.suppress(WireFailure):
        heard = hear(*lines)
        assert all(
            isinstance(one.call_id, str) and isinstance(one.tool, str) for one in heard.calls
        )
        assert isinstance(heard.text, str)
