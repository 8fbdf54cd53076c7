"""Answers real providers gave in OpenAI's Responses: bytes in, entry out, second request out."""

import json
from typing import Any

import pytest

from tests.support.recordings import Recording, recordings
from tests.support.responses_checker import check
from tests.support.responses_runs import MODEL, read, route
from tests.support.responses_wire import Item
from tests.support.wire_rounds import Heard
from tui_agent.context.request import ContentText, Message, ModelRequest, RequestToolCall
from tui_agent.model.wires import responses
from tui_agent.model.wires.http import EventDecoder
from tui_agent.model.wires.wire import WireFailure

REQUEST = ModelRequest(MODEL, (Message("user", (ContentText("hello"),)),))
ROUTE = route()


def _events(body: bytes) -> list[Any]:
    decoder = EventDecoder()
    return [json.loads(data) for _, data in [*decoder.feed(body), *decoder.end()] if data != "[DONE]"]


def _ends(recording: Recording) -> list[Item]:
    return [event["response"] for event in _events(recording.body) if event.get("type") == "response.completed"]


# Some are several answers glued together, one is no Responses at all, and some have tools that ran at the provider.
WHOLE = [one for one in recordings() if one.wire == "responses" and len(_ends(one)) == 1]
OWN = [one for one in WHOLE if not one.says.get("server_side")]

pytestmark = pytest.mark.skipif(not recordings(), reason="the recordings are not here")
each = pytest.mark.parametrize("recording", OWN, ids=lambda one: one.id)
each_whole = pytest.mark.parametrize("recording", WHOLE, ids=lambda one: one.id)


def _texts(output: list[Item]) -> list[str]:
    texts = ["".join(part["text"] for part in item["content"]) for item in output if item["type"] == "message"]
    return [text for text in texts if text]


def _sent_back(heard: Heard, *, with_reasoning: bool = True) -> tuple[Item, list[Item]]:
    """The body of the request after an answer, and the items of the answer in it."""
    text, blob = heard.text, heard.finished.reasoning_blob
    calls = tuple(RequestToolCall(call.call_id, call.tool, call.arguments) for call in heard.calls)
    answer = Message("assistant", (ContentText(text),) if text else (), calls, reasoning=(blob,) if blob else ())
    results = [Message("tool", (ContentText("done"),), call_id=call.call_id) for call in calls]
    messages = (*REQUEST.messages, *((answer,) if text or calls else ()), *results)
    request = ModelRequest(MODEL, (*messages, Message("user", (ContentText("go on"),))))
    body = responses.call(request, ROUTE, with_reasoning=with_reasoning).body
    return body, body["input"][1 : -1 - len(results)]


@each
def test_a_recorded_answer_is_read_as_it_was_given(recording: Recording) -> None:
    output = _ends(recording)[0]["output"]

    heard = read(recording.body, REQUEST)

    assert heard.text == "\n\n".join(_texts(output))
    assert [(call.tool, call.arguments) for call in heard.calls] == [
        (item["name"], item["arguments"]) for item in output if item["type"] == "function_call"
    ]
    assert heard.reasoning.replace("\n", "") == (recording.says.get("reasoning") or "").replace("\n", "")
    assert heard.finished.reason == recording.says["finish"]


@each_whole
def test_the_usage_a_provider_counted_is_reported(recording: Recording) -> None:
    told, expected = read(recording.body, REQUEST).usage, recording.says["usage"]

    if not any(expected.values()):
        assert told is None
        return
    assert told is not None
    assert {name: getattr(told.usage, name) for name in expected} == expected


@each_whole
def test_the_second_request_is_one_the_provider_takes(recording: Recording) -> None:
    output = _ends(recording)[0]["output"]

    body, back = _sent_back(read(recording.body, REQUEST))

    # What was given last counts: one provider gives an item another id with every event.
    given = [event["item"] for event in _events(recording.body) if event["type"] == "response.output_item.done"]
    check(body, [given if len(given) == len(output) else output])
    if recording in OWN:
        texts = [item["content"] for item in back if item.get("role") == "assistant"]
        assert [text if isinstance(text, str) else text[0]["text"] for text in texts] == _texts(output)


@each
def test_encrypted_reasoning_goes_back_byte_for_byte_and_in_its_place(recording: Recording) -> None:
    events = _events(recording.body)
    given = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    thoughts = [item for item in given if item["type"] == "reasoning" and item.get("encrypted_content")]

    _, back = _sent_back(read(recording.body, REQUEST))

    if thoughts:
        assert [item["type"] for item in back] == [item["type"] for item in given]
        assert [item.get("id") for item in back] == [item.get("id") for item in given]
    assert [item for item in back if item.get("encrypted_content")] == thoughts
    phases = [item["phase"] for item in given if item.get("phase")]
    assert [item["phase"] for item in back if "phase" in item] == phases


@each_whole
def test_without_reasoning_nothing_of_it_goes_back(recording: Recording) -> None:
    body, back = _sent_back(read(recording.body, REQUEST), with_reasoning=False)

    check(body)
    assert all(item.get("type", "message") in {"message", "function_call"} for item in back)


@each_whole
def test_bytes_cut_anywhere_read_the_same(recording: Recording) -> None:
    whole = read(recording.body, REQUEST)

    for size in (7, 1_021):
        assert read(recording.body, REQUEST, size=size) == whole


@each_whole
def test_an_answer_that_ends_early_is_not_taken_for_whole(recording: Recording) -> None:
    whole = read(recording.body, REQUEST)

    for tenth in range(10):
        body = recording.body[: len(recording.body) * tenth // 10]
        if any(event.get("type") == "response.completed" for event in _readable(body)):
            assert read(body, REQUEST) == whole
            continue
        with pytest.raises(WireFailure) as caught:
            read(body, REQUEST)
        assert caught.value.failure.cause in {"closed", "broken"}


def _readable(body: bytes) -> list[Any]:
    found = []
    decoder = EventDecoder()
    for _, data in [*decoder.feed(body), *decoder.end()]:
        try:
            found.append(json.loads(data))
        except ValueError:
            continue
    return found


def test_a_recorded_failure_in_mid_stream_is_told() -> None:
    failures = [one for one in recordings() if one.wire == "responses" and one.says.get("error")]
    assert failures

    for one in failures:
        with pytest.raises(WireFailure) as caught:
            read(one.body, REQUEST)
        assert one.says["error"]["message"] in caught.value.failure.text
