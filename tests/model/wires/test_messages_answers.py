"""Answers in Anthropic's format as servers really give them: in order, out of order, paused, refused, cut off."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.wires.runs import spoil
from tests.support.thoroughness import examples
from tests.support.wire_rounds import Heard, first_path, read, request_of, route_to, second_body
from tui_agent.model.errors import classify
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.wires import messages
from tui_agent.model.wires.wire import WireFailure
from tui_agent.session.entries import Usage

MODEL = "anthropic/claude-opus-5-5"
Event = Mapping[str, Any]

USED = {
    "input_tokens": 10,
    "cache_read_input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "output_tokens": 1,
}


def start(block: Event, index: int = 0) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int = 0, **fields: Any) -> Event:
    kind = {"text": "text_delta", "thinking": "thinking_delta", "signature": "signature_delta"}
    name = next(iter(fields))
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind[name], **fields}}


def arguments(text: object, index: int = 0) -> Event:
    piece = {"type": "input_json_delta", "partial_json": text}
    return {"type": "content_block_delta", "index": index, "delta": piece}


def stop(index: int = 0) -> Event:
    return {"type": "content_block_stop", "index": index}


def text(words: str, index: int = 0) -> list[Event]:
    return [start({"type": "text", "text": ""}, index), delta(index, text=words), stop(index)]


def call(
    index: int = 0, name: str = "read", given: object = "{}", call_id: str = "toolu_1"
) -> list[Event]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return [start(block, index), arguments(given, index), stop(index)]


def begin(**usage: Any) -> Event:
    return {
        "type": "message_start",
        "message": {"id": "msg_1", "content": [], "usage": {**USED, **usage}},
    }


def finish(reason: str | None = "end_turn", **more: Any) -> list[Event]:
    usage = more.pop("usage", {"output_tokens": 5})
    end = {"type": "message_delta", "delta": {"stop_reason": reason, **more}, "usage": usage}
    return [end, {"type": "message_stop"}]


def stream(*events: Event) -> bytes:
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


def hear(*events: Event, model: str = MODEL, **settings: Any) -> Heard:
    return heard_of(stream(*events), model, **settings)


def heard_of(body: bytes, model: str = MODEL, **settings: Any) -> Heard:
    return read(messages.reader(request_of(first_path(), model), route_to(model, **settings)), body)


def error_of(body: bytes, **settings: Any) -> ModelError:
    with pytest.raises(WireFailure) as failed:
        heard_of(body, **settings)
    return classify(failed.value.failure, route_to(MODEL).target, now=0)


@pytest.mark.parametrize("reason", ["compaction", "max_tokens", "refusal"])
def test_a_compaction_comes_whole_in_the_stream_or_is_a_failure(reason: str) -> None:
    block = {"type": "compaction", "content": "Summary: they talked.", "signature": "EuYBCkQY=="}
    parts = [start(block), {"type": "ping"}, stop()] if reason == "compaction" else []
    usage = {
        "output_tokens": 0,
        "iterations": [{"type": "compaction", "input_tokens": 144, "output_tokens": 276}],
    }
    request = request_of(first_path(), MODEL, compact=True)
    body = stream(begin(input_tokens=0), *parts, *finish(reason, usage=usage))

    if reason != "compaction":
        with pytest.raises(WireFailure, match="no compaction"):
            read(messages.reader(request, route_to(MODEL)), body)
        return
    heard = read(messages.reader(request, route_to(MODEL)), body)

    assert heard.text == block["content"]
    assert json.loads(heard.finished.reasoning_blob or "") == {"compacted": [block]}
    assert heard.used == Usage(input=144, output=276)


def test_what_is_not_known_is_passed_over() -> None:
    deltas = ({"type": "aroma_delta", "scent": "pine"}, {"type": "text_delta", "text": None}, 3)
    heard = hear(
        {"type": "ping"},
        begin(),
        {"type": "vibration", "strength": 3},
        start({"type": "text", "text": "", "citations": 3}),
        *({"type": "content_block_delta", "index": 0, "delta": odd} for odd in deltas),
        arguments("{}", 7),
        delta(text="Hi."),
        stop(),
        stop(9),
        *finish(),
    )
    assert (heard.text, heard.finished.reason) == ("Hi.", "stop")


def test_a_new_kind_of_block_is_kept_and_goes_back_as_it_came() -> None:
    block = {"type": "hologram", "data": "eA==", "model": "claude-next"}
    heard = hear(begin(), *text("So."), start(block, 1), stop(1), *text("Hi.", 2), *finish())
    assert heard.text == "So.\n\n[hologram] claude-next\n\nHi."
    turn = second_body(messages, route_to(MODEL), heard)["messages"][1]["content"]
    assert turn[1] == block
    assert [block.get("text") for block in turn] == ["So.", None, "Hi."]


def test_gateways_that_leave_out_where_blocks_begin_are_understood() -> None:
    heard = hear(begin(), delta(thinking="Hm."), delta(1, text="Hi."), *finish())
    assert (heard.reasoning, heard.text) == ("Hm.", "Hi.")


def test_calls_without_an_id_or_with_the_same_one_are_told_apart() -> None:
    heard = hear(begin(), *call(), *call(1), *call(2, call_id=""), *finish("tool_use"))
    ids = [each.call_id for each in heard.calls]
    assert ids[:2] == ["toolu_1", "toolu_1_2"]
    assert ids[2]
    assert len(set(ids)) == 3


def test_arguments_that_are_no_text_become_json() -> None:
    heard = hear(begin(), *call(given={"path": "a"}), *finish("tool_use"))
    assert [call.arguments for call in heard.calls] == ['{"path": "a"}']


def test_an_answer_that_a_gateway_begins_anew_is_the_second_one() -> None:
    thought = [
        start({"type": "thinking", "thinking": ""}),
        delta(thinking="Hm."),
        delta(signature="c2ln"),
        stop(),
    ]
    heard = hear(begin(), *text("Hel"), begin(), *thought, *text("Hello.", 1), *finish())
    assert heard.text == "HelHello."
    turn = second_body(messages, route_to(MODEL), heard)["messages"][1]["content"]
    assert [block.get("text") for block in turn] == [None, "Hello."]


def test_a_document_instead_of_a_stream_is_read() -> None:
    document: dict[str, Any] = {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "Hi.", "citations": [{"url": "https://t"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}},
        ],
        "stop_reason": "tool_use",
        "usage": {**USED, "output_tokens": 7},
    }
    reader = messages.reader(request_of(first_path(), MODEL), route_to(MODEL))
    heard = Heard((*reader.feed("", json.dumps(document)), *reader.end()))
    assert (heard.reasoning, heard.text, heard.calls[0].arguments) == (
        "Hm.",
        "Hi.",
        '{"path": "a.py"}',
    )
    assert heard.used == Usage(input=10, output=7)
    turn = second_body(messages, route_to(MODEL), heard)["messages"][1]["content"]
    assert turn[:2] == document["content"][:2]


@pytest.mark.parametrize(
    ("reason", "ours"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause"),
        ("a_reason_of_tomorrow", "stop"),
    ],
)
def test_every_reason_to_stop_is_told(reason: str, ours: str) -> None:
    assert hear(begin(), *text("Hi."), *finish(reason)).finished.reason == ours


def test_a_refusal_says_why() -> None:
    why = {"type": "refusal", "category": "cyber", "explanation": "Blocked under the usage policy."}
    finished = hear(begin(), *finish("refusal", stop_details=why)).finished
    assert (finished.reason, finished.note) == ("content_filter", "Blocked under the usage policy.")


def test_a_window_that_is_full_before_a_word_was_said_is_an_overflow() -> None:
    assert (
        error_of(stream(begin(), *finish("model_context_window_exceeded"))).kind
        is ErrorKind.CONTEXT_OVERFLOW
    )


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        ("overloaded_error", ErrorKind.OVERLOADED),
        ("authentication_error", ErrorKind.AUTH),
        ("billing_error", ErrorKind.QUOTA),
    ],
)
def test_an_error_in_the_stream_is_told_for_what_it_is(kind: str, ours: ErrorKind) -> None:
    error = {
        "type": "error",
        "error": {"type": kind, "message": "It did not work."},
        "request_id": "req_1",
    }
    assert error_of(stream(begin(), *text("Hi."), error)).kind is ours


def test_an_error_that_only_its_event_or_body_tells_counts() -> None:
    error = b'{"error": {"type": "overloaded_error", "message": "Overloaded"}}'
    for body in (b'event: error\ndata: {"message": "Overloaded"}', b"data: " + error):
        assert error_of(body + b"\n\n").kind is ErrorKind.OVERLOADED


def test_an_answer_without_an_end_is_not_whole() -> None:
    begun = (begin(), *text("Hi."))
    for body in (b"", stream(*begun), stream(*begun, finish(None)[0])):
        assert error_of(body).kind is ErrorKind.NETWORK


def test_ones_own_small_server_may_leave_the_end_out() -> None:
    model = "lm_studio/local"
    heard = hear(begin(), *text("Hi."), *call(1), model=model, wire="messages")
    assert (heard.text, heard.finished.reason) == ("Hi.", "unmarked")
    assert not heard.finished.marked
    with pytest.raises(WireFailure):
        hear(begin(), *call(given='{"a'), model=model, wire="messages")


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_whatever_a_server_sends_is_read_or_refused_and_never_a_crash(data: st.DataObject) -> None:
    search = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "x"},
    }
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [{"title": "A"}],
    }
    cited = {"type": "text", "text": "Hi.", "citations": [{"url": "https://t"}]}
    thought = [
        start({"type": "thinking", "thinking": ""}, 1),
        delta(1, thinking="Hm."),
        delta(1, signature="s"),
        stop(1),
    ]
    blocks = [
        event
        for at, block in enumerate((search, found, cited), 3)
        for event in (start(block, at), stop(at))
    ]
    document = {
        "type": "message",
        "content": [cited, search],
        "stop_reason": "end_turn",
        "usage": dict(USED),
    }
    whole = [begin(), *text("So."), *thought, *call(2), *blocks, *finish()]
    events = json.loads(json.dumps(data.draw(st.sampled_from([whole, [document]]))))
    spoil(events, data)
    try:
        heard = heard_of(b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events))
    except WireFailure:
        return
    second_body(messages, route_to(MODEL), heard)


def test_a_server_that_tells_no_usage_has_none() -> None:
    event = {"type": "message_start", "message": {"content": []}}
    assert hear(event, *text("Hi."), *finish(usage=None)).usage is None
    assert hear(event, *text("Hi."), *finish(usage={"output_tokens": "many"})).usage is None


def test_what_came_from_the_cache_is_told_beside_what_did_not() -> None:
    heard = hear(begin(input_tokens=100, cache_read_input_tokens=40), *text("Hi."), *finish())
    assert heard.used == Usage(input=100, cache_read=40, output=5)


@pytest.mark.parametrize(("for_an_hour", "cost"), [(0, 3.75), (1_000_000, 6.0)])
def test_what_is_kept_for_an_hour_is_priced_so(for_an_hour: int, cost: float) -> None:
    split = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": for_an_hour}
    started = begin(cache_creation_input_tokens=1_000_000, input_tokens=0, cache_creation=split)
    report = hear(started, *text("Hi."), *finish(), model="anthropic/claude-sonnet-4-5").usage
    assert report is not None
    assert report.cost == pytest.approx(cost, abs=0.001)
