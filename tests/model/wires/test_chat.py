"""Chat completions: what is posted, and answers as odd as servers send them."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.wires.runs import spoil
from tests.support.wire_rounds import Heard, first_path, read, request_of, route_to, second_body
from tui_agent.context.request import ContentText, Message, ModelRequest, RequestToolCall
from tui_agent.model.errors import classify
from tui_agent.model.protocol import ErrorKind, PromptProgress, TextDelta, TextWasReasoning
from tui_agent.model.streamed_calls import plain_arguments
from tui_agent.model.waits import RETRIED
from tui_agent.model.wires import chat
from tui_agent.model.wires.http import EventDecoder
from tui_agent.model.wires.wire import MAX_TOKENS, WireFailure, usage_of
from tui_agent.session.effort import Effort
from tui_agent.session.entries import Usage

MODEL = "groq/some-model"


def stream(*chunks: dict[str, Any], done: bool = True) -> bytes:
    """Return chunks as a body."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def hear(
    *chunks: dict[str, Any], model: str = MODEL, done: bool = True, cut: int = 0, **settings: Any
) -> Heard:
    body = stream(*chunks, done=done)
    reader = chat.reader(request_of(first_path(), model), route_to(model, **settings))
    return read(reader, body, range(cut, len(body), cut) if cut else ())


def ask(*messages: Message, model: str = MODEL, **fields: Any) -> ModelRequest:
    return ModelRequest(model, messages or (Message("user", (ContentText("hi"),)),), **fields)


def body(request: ModelRequest, **settings: Any) -> dict[str, Any]:
    return chat.call(request, route_to(request.model, **settings)).body


def test_a_server_of_ones_own_tells_how_much_of_the_prompt_it_read() -> None:
    assert (
        body(ask(model="openai/qwen3"), base_url="http://localhost:8080/v1")["return_progress"]
        is True
    )
    assert "return_progress" not in body(
        ask(model="openai/gpt-4o"), base_url="http://localhost:8080/v1"
    )
    reader = chat.reader(request_of(first_path(), MODEL), route_to(MODEL))
    told = {"prompt_progress": {"total": 431, "cache": 24, "processed": 128, "time_ms": 1_119}}
    assert reader.feed("", json.dumps(delta(role="assistant", content=None) | told)) == [
        PromptProgress(128, 431)
    ]


def test_the_longest_answer_is_told_in_the_providers_own_field() -> None:
    fields = {"openai/gpt-4o": "max_completion_tokens", "groq/x": "max_completion_tokens",
              "deepseek/deepseek-chat": "max_tokens", "openrouter/openai/gpt-5": "max_tokens"}  # fmt: skip
    assert {
        model: body(ask(model=model, max_output_tokens=77)).get(field)
        for model, field in fields.items()
    } == (dict.fromkeys(fields, 77))


def test_a_server_of_ones_own_behind_openais_name_is_asked_for_nothing_special() -> None:
    for model, fields in (
        ("openai/my-model", {"max_tokens": 7}),
        ("openai/gpt-4o", {"max_completion_tokens": 7, "prompt_cache_key": "s"}),
    ):
        sent = body(
            ask(model=model, max_output_tokens=7, session="s"), base_url="http://localhost:1/v1"
        )
        assert {name: sent[name] for name in sent if name.startswith(("max", "prompt"))} == fields


@pytest.mark.parametrize(
    ("model", "effort", "fields"),
    [
        ("openai/gpt-4o", Effort.MAX, {"reasoning_effort": "xhigh"}),
        ("groq/openai/gpt-oss-120b", Effort.XHIGH, {"reasoning_effort": "high"}),
        ("openrouter/x/y", Effort.XHIGH, {"reasoning": {"effort": "xhigh"}}),
        ("openrouter/x/y", Effort.MAX, {"reasoning": {"effort": "max"}}),
        ("groq/openai/gpt-oss-120b", Effort.OFF, {"reasoning_effort": "none"}),
        ("openrouter/x/y", Effort.LOW, {"reasoning": {"effort": "low"}}),
        ("openrouter/x/y", Effort.OFF, {"reasoning": {"enabled": False}}),
        (
            "deepseek/deepseek-chat",
            Effort.MAX,
            {"thinking": {"type": "enabled"}, "reasoning_effort": "max"},
        ),
        ("deepseek/deepseek-chat", Effort.OFF, {"thinking": {"type": "disabled"}}),
        ("dashscope/qwen3-max", Effort.OFF, {"enable_thinking": False}),
        ("hosted_vllm/qwen3", Effort.OFF, {"chat_template_kwargs": {"enable_thinking": False}}),
        ("minimax/MiniMax-M2", Effort.HIGH, {}),
    ],
)
def test_how_much_to_think_is_told_the_providers_own_way(
    model: str, effort: Effort, fields: dict[str, object]
) -> None:
    sent, plain = body(ask(model=model, effort=effort)), body(ask(model=model))

    assert {key: value for key, value in sent.items() if plain.get(key) != value} == fields


def test_the_session_is_the_key_of_the_cache() -> None:
    route = route_to("xai/grok-x", wire="chat")
    assert chat.call(ask(model="xai/grok-x", session="s1"), route).headers == {
        "x-grok-conv-id": "s1"
    }


def test_cache_marks_stand_on_text_and_leave_no_trace_where_they_were() -> None:
    model = "openrouter/anthropic/claude-sonnet-4.5"
    message = Message("user", (ContentText("hi"),))
    marked = body(
        ask(Message("user", (ContentText("hi"),), cache=True), model=model, cache_ttl="1h")
    )["messages"]
    bare = body(ask(message, model=model))["messages"]

    (part,) = marked[0]["content"]
    assert part.pop("cache_control") == {"type": "ephemeral", "ttl": "1h"}
    assert marked == bare


DETAIL = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text"])
def test_plain_reasoning_is_shown_once_whatever_it_is_called(name: str) -> None:
    heard = hear(
        delta(**{name: "two and "}), delta(**{name: "two"}), delta(content="4"), delta("stop")
    )

    assert (heard.reasoning, heard.text) == ("two and two", "4")
    sent = second_body(chat, route_to(MODEL, reasoning_back="as_received"), heard)["messages"][2]
    assert sent[name] == "two and two"


def test_thinking_blocks_of_a_gateway_are_joined_and_kept_apart() -> None:
    hidden = [{"type": "redacted_thinking", "data": data} for data in ("d", "e")]
    last = {"type": "thinking", "thinking": "three", "signature": "s2"}
    pieces = [
        {"thinking": "one "},
        {"thinking": "two", "signature": ""},
        {"thinking": None, "signature": "s1"},
    ]
    blocks = [*({"type": "thinking", **piece} for piece in pieces), *hidden, last]
    heard = hear(*(delta(thinking_blocks=[block]) for block in blocks), delta("stop", content="x"))

    whole = {"type": "thinking", "thinking": "one two", "signature": "s1"}
    assert json.loads(heard.finished.reasoning_blob or "")["thinking_blocks"] == [
        whole,
        *hidden,
        last,
    ]


def test_signatures_of_googles_calls_are_kept() -> None:
    blob = hear(
        delta(thought_signatures=["s1"], content="x"), delta("stop")
    ).finished.reasoning_blob
    assert json.loads(blob or "") == {"provider_specific_fields": {"thought_signatures": ["s1"]}}


def test_two_thoughts_in_a_row_stay_two() -> None:
    pieces = ({"text": "a"}, {"signature": "1"}, {"text": "b"}, {"signature": "2"})
    told = (delta(reasoning_details=[{**DETAIL, **piece}]) for piece in pieces)
    heard = hear(*told, delta("stop", content="x"), model="openrouter/anthropic/claude-x")

    blob = json.loads(heard.finished.reasoning_blob or "")
    assert [(detail["text"], detail["signature"]) for detail in blob["reasoning_details"]] == [
        ("a", "1"),
        ("b", "2"),
    ]


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("deepseek/deepseek-chat", "reasoning_content"),
        ("zai/glm-5", "reasoning_content"),
        (MODEL, None),
    ],
)
def test_reasoning_goes_back_to_those_who_want_it(model: str, field: str | None) -> None:
    heard = hear(delta(reasoning_content="hm"), delta("stop", content="x"), model=model)

    answer = second_body(chat, route_to(model), heard)["messages"][2]
    assert {key: answer[key] for key in answer if "reason" in key} == (
        {field: "hm"} if field else {}
    )


def test_calls_of_another_model_have_some_reasoning_where_it_is_required() -> None:
    call = RequestToolCall("c1", "read", "{}")
    foreign = (Message("user", (ContentText("hi"),)), Message("assistant", tool_calls=(call,)))

    assert (
        body(ask(*foreign, model="deepseek/deepseek-chat"))["messages"][1]["reasoning_content"]
        == " "
    )


@pytest.mark.parametrize("cut", [0, 1, 3, 7])
@pytest.mark.parametrize(
    "pieces",
    [
        ["<think>\ntwo and two\n</think>\n\n4 <think>"],
        ["<", "thi", "nk>\ntwo and ", "two\n<", "/thi", "nk>", "\n\n", "4 ", "<think>"],
        ["\n", "<think>", "\ntwo and two\n</thi", "nk>\n", "\n4 <think>"],
    ],
)
def test_tags_at_the_beginning_are_reasoning_wherever_they_are_cut(
    pieces: list[str], cut: int
) -> None:
    heard = hear(*(delta(content=piece) for piece in pieces), delta("stop"), cut=cut)

    assert heard.reasoning.strip() == "two and two"
    assert heard.text == "4 <think>"
    answer = second_body(chat, route_to("minimax/MiniMax-M2"), heard)["messages"][2]
    assert answer["content"].strip() == "<think>\ntwo and two\n</think>\n\n4 <think>"


@pytest.mark.parametrize("text", ["<thinking about it>", " < think>", "a <think>b</think>", "<"])
def test_what_only_looks_like_a_tag_is_text_and_one_after_reasoning_in_a_field(text: str) -> None:
    assert hear(*(delta(content=letter) for letter in text), delta("stop")).text == text
    after = hear(delta(reasoning_content="hm"), delta(content=f"<think>{text}"), delta("stop"))
    assert (after.reasoning, after.text) == ("hm", f"<think>{text}")


LONE = "Okay, the sum.\nI'll be brief.\n</think>\n\n40"


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_closing_tag_alone_makes_what_stands_before_it_reasoning(size: int) -> None:
    pieces = [LONE[at : at + size] for at in range(0, len(LONE), size)]
    heard = hear(*(delta(content=piece) for piece in pieces), delta("stop"))
    events = [event for event in heard.events if isinstance(event, TextDelta | TextWasReasoning)]
    at = events.index(TextWasReasoning())
    before = "".join(event.text for event in events[:at] if isinstance(event, TextDelta))
    after = "".join(event.text for event in events[at:] if isinstance(event, TextDelta))
    assert (before, after) == ("Okay, the sum.\nI'll be brief.\n", "40")


@pytest.mark.parametrize(
    "text",
    [
        "The tag </think> ends it.",
        "Write `</think>`\nat the end.",
        "```\nhm\n</think>\n```\nThat is the form.",
        "no tag </thin",
    ],
)
def test_a_closing_tag_that_is_spoken_of_is_text(text: str) -> None:
    heard = hear(*(delta(content=letter) for letter in text), delta("stop"))
    assert not any(isinstance(event, TextWasReasoning) for event in heard.events)
    assert heard.text == text


def piece(arguments: object, **fields: Any) -> dict[str, Any]:
    name = {"name": fields.pop("name")} if "name" in fields else {}
    return {**fields, "function": {"arguments": arguments, **name}}


FIRST, SECOND = '{"a": 1}', '{"b": 2}'
NUMBERED = {
    "all number 0": [piece(FIRST, index=0, id="1", name="read"), piece(SECOND, index=0, id="2", name="read")],
    "no number": [piece(FIRST, id="1", name="read"), piece(SECOND, id="2", name="read")],
    "no number, no id": [piece(FIRST, name="read"), piece(SECOND, name="read")],
    "all number 0, no id, the name in each piece": [
        piece(text, index=0, id="", name="read") for text in ('{"a"', ": 1}", "", SECOND)
    ],
    "the same id twice": [
        piece('{"a"', index=0, id="1", name="read"), piece(": 1}", index=0),
        piece(SECOND, index=1, id="1", name="read"),
    ],
    "objects": [piece({"a": 1}, index=0, id="1", name="read"), piece({"b": 2}, index=1, id="2", name="read")],
    "interleaved, the id in each piece": [
        piece(None, index=0, id="1", name="read"), piece(None, index=1, id="2", name="read"),
        piece(SECOND, index=1, id="2"), piece(FIRST, index=0, id="1"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("pieces", NUMBERED.values(), ids=NUMBERED)
def test_calls_arrive_whole_however_they_are_numbered(pieces: list[dict[str, Any]]) -> None:
    heard = hear(*(delta(tool_calls=[made]) for made in pieces), delta("tool_calls"))

    assert [json.loads(call.arguments) for call in heard.calls] == [{"a": 1}, {"b": 2}]
    assert len({call.call_id for call in heard.calls}) == 2
    assert heard.finished.reason == "tool_calls"


def test_a_call_in_the_former_field_is_one_and_bare_text_is_an_answer() -> None:
    heard = hear(
        delta(function_call={"name": "read", "arguments": '{"a"'}),
        delta(function_call={"arguments": ": 1}"}),
        delta("function_call"),
    )
    assert [(call.tool, call.arguments) for call in heard.calls] == [("read", '{"a": 1}')]
    said = hear({"choices": [{"index": 0, "text": "Hi."}]}, delta("stop"))
    assert said.text == "Hi."


def test_events_without_an_empty_line_between_them_are_two() -> None:
    body = stream(delta(content="Hi"), delta(content=" there."), delta("stop"))
    reader = chat.reader(request_of(first_path(), MODEL), route_to(MODEL))
    assert read(reader, body.replace(b"\n\n", b"\n"), ()).text == "Hi there."


def test_a_name_behind_data_and_an_empty_line_of_data_belong_to_their_event() -> None:
    named = EventDecoder().feed(b'data: {"a":1}\nevent: foo\n\ndata: {"b":1}\ndata:\n\n')
    assert named == [("foo", '{"a":1}'), ("", '{"b":1}\n')]
    close = EventDecoder()
    events = close.feed(b'event: a\ndata: {"a":1}\nevent: b\ndata: {"b":1}\n') + close.end()
    assert events == [("a", '{"a":1}'), ("b", '{"b":1}')]


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ('{}{"a": 1}', '{"a": 1}'),
        ('{"a": 1}{"a": 1}', '{"a": 1}'),
        ("{}", "{}"),
        ("{}{}", "{}"),
        ('{"a": 1}', '{"a": 1}'),
        ("", ""),
    ],
)
def test_what_servers_send_before_the_arguments_is_left_out(sent: str, meant: str) -> None:
    assert plain_arguments(sent) == meant


def test_a_call_that_ends_with_stop_is_a_call_and_a_refusal_said_to_be_one() -> None:
    heard = hear(delta("stop", tool_calls=[piece("", index=0, id="1", name="read")]))
    refused = hear(delta(refusal="I can't "), delta("stop", refusal="help."))

    assert (heard.finished.reason, heard.calls[0].arguments) == ("tool_calls", "")
    assert (refused.finished.reason, refused.text) == ("content_filter", "I can't help.")


USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 60},
}


@pytest.mark.parametrize(
    "chunks",
    [
        [{**delta("stop", content="x"), "usage": None}, {"choices": None, "usage": USAGE}],
        [
            {**delta(content="x"), "usage": {**USAGE, "completion_tokens": 3}},
            {**delta("stop"), "usage": USAGE},
        ],
        [delta("stop", content="x"), {"choices": [], "x_groq": {"usage": USAGE}}],
    ],
    ids=["null first", "growing", "x_groq"],
)
def test_usage_is_found_where_it_stands(chunks: list[dict[str, Any]]) -> None:
    usage = hear(*chunks).used
    assert (usage.input, usage.cache_read, usage.output) == (40, 60, 10)


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        ({"cost": 0.25}, 0.25),
        ({"cost_in_usd_ticks": 5_000_000_000}, 0.5),
        ({"cost": None}, None),
        ({"cost": "x"}, None),
    ],
)
def test_the_provider_names_what_it_cost(fields: dict[str, Any], cost: float | None) -> None:
    heard = hear(
        delta("stop", content="x"),
        {"choices": [], "usage": {**USAGE, **fields}},
        model="openrouter/a/b",
    )

    assert heard.usage is not None
    assert heard.usage.cost == cost


def fail(*chunks: dict[str, Any], **options: Any) -> Any:
    with pytest.raises(WireFailure) as failed:
        hear(*chunks, **options)
    return classify(failed.value.failure, route_to(MODEL).target, now=0)


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": [], "error": {"message": "Upstream failed", "code": 502}},
        {
            "choices": [],
            "error": {
                "message": "Model did not call it",
                "code": "tool_use_failed",
                "status_code": 400,
            },
        },
        {"choices": [], "error": {"message": "Try again in 3s.", "code": "rate_limit_exceeded"}},
        {"choices": [], "error": {"message": "Down", "code": "529"}},
        {"choices": [{"delta": {}, "error": {"message": "JSON error", "code": "server_error"}}]},
        *(delta(finish) for finish in ("error", "network_error", "insufficient_system_resource")),
    ],
)
def test_an_error_within_an_answer_is_told_and_tried_again(chunk: dict[str, Any]) -> None:
    assert fail(delta(content="Hel"), chunk).kind in RETRIED


def test_a_full_window_is_told_as_one_where_nothing_came_and_as_the_end_where_something_did() -> (
    None
):
    assert fail(delta("model_context_window_exceeded")).kind is ErrorKind.CONTEXT_OVERFLOW
    assert hear(delta("model_context_window_exceeded", content="x")).finished.reason == "length"


@pytest.mark.parametrize(
    ("chunks", "done", "settings", "end"),
    [
        ([delta(content="x")], False, {}, ""),
        ([delta(content="x")], True, {}, "stop"),
        ([delta(content="x")], False, {"base_url": "http://localhost:1/v1"}, "unmarked"),
        (
            [delta(tool_calls=[piece('{"a', index=0, name="read")])],
            False,
            {"base_url": "http://localhost:1/v1"},
            "",
        ),
        ([], True, {}, ""),
    ],
)
def test_an_answer_without_a_reason_for_its_end(
    chunks: list[dict[str, Any]], done: bool, settings: dict[str, Any], end: str
) -> None:
    model = "openai/own" if settings else MODEL
    if end:
        finished = hear(*chunks, model=model, done=done, **settings).finished
        assert (finished.reason, finished.marked) == (end, end == "stop")
    else:
        with pytest.raises(WireFailure) as failed:
            hear(*chunks, model=model, done=done, **settings)
        assert failed.value.failure.cause == "ended"


def test_cached_tokens_are_taken_out_of_the_prompt() -> None:
    reported = {
        "prompt": 1000,
        "completion": 50,
        "cache_read": 600,
        "cache_write": 300,
        "reasoning": 20,
    }

    assert usage_of(reported) == Usage(
        input=100, output=50, cache_read=600, cache_write=300, reasoning=20
    )


def test_a_prompt_smaller_than_the_cached_part_counts_the_rest() -> None:
    assert usage_of({"prompt": 10, "completion": 1, "cache_read": 600}) == Usage(
        input=10, output=1, cache_read=600
    )


_ODD = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.booleans(),
    st.lists(st.integers()),
)


@given(
    st.dictionaries(
        st.sampled_from(["prompt", "completion", "cache_read", "cache_write", "reasoning"]), _ODD
    )
)
def test_whatever_is_reported_nothing_odd_comes_out(reported: dict[str, object]) -> None:
    usage = usage_of(reported)

    if usage is not None:
        numbers = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
        assert all(0 <= number <= MAX_TOKENS for number in numbers)
        assert usage.prompt > 0
        assert usage.reasoning <= usage.output


@given(st.data())
def test_whatever_a_server_sends_is_read_or_refused(data: st.DataObject) -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "cost": 0.5,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    chunks = [
        delta(reasoning_details=[{"type": "reasoning.text", "text": "Hm.", "index": 0}]),
        delta(thinking_blocks=[{"type": "thinking", "thinking": "Hm."}]),
        delta(reasoning="Hm.", content="Hi."),
        delta(tool_calls=[piece(FIRST, index=0, id="1", name="read")]),
        delta("stop", function_call={"name": "read", "arguments": FIRST}),
        {"choices": [], "usage": usage},
    ]
    chunks = json.loads(json.dumps(chunks))
    spoil(chunks, data)
    with contextlib.suppress(WireFailure):
        heard = hear(*chunks)
        assert all(
            isinstance(one.call_id, str) and isinstance(one.tool, str) for one in heard.calls
        )
        assert heard.usage is None or heard.usage.cost is None or heard.usage.cost >= 0
        second_body(chat, route_to(MODEL), heard)
