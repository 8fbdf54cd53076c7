"""Every recorded answer in Anthropic's format: bytes in, entry out, second request out."""

import json
import re
from typing import Any

import pytest

from tests.support.messages_rules import check
from tests.support.recordings import Recording, recordings
from tests.support.wire_rounds import Heard, answered, first_path, read, request_of, route_to
from tui_agent.model.errors import classify
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.wires import messages
from tui_agent.model.wires.wire import WireFailure
from tui_agent.session.entries import TextPart, UserEntry

OURS = {"text", "thinking", "redacted_thinking", "tool_use"}
ANSWERS = [found for found in recordings() if found.wire == "anthropic"]
WHOLE = [found for found in ANSWERS if found.body.count(b"event: message_start") <= 1]
"""Those that are one message; others were glued together from several for tests of their own."""

pytestmark = pytest.mark.skipif(not WHOLE, reason="no recordings here")
each = pytest.mark.parametrize("recording", WHOLE, ids=lambda found: found.id[-60:])


def model_of(recording: Recording) -> str:
    return f"anthropic/{recording.model}"


def hear(recording: Recording, body: bytes | None = None, cuts: tuple[int, ...] = ()) -> Heard:
    route = route_to(model_of(recording))
    request = request_of(first_path(), model_of(recording))
    return read(messages.reader(request, route), recording.body if body is None else body, cuts)


def blocks_in(body: bytes) -> list[dict[str, Any]]:
    """Return an answer's content blocks, put together by the documentation's rules and nothing else."""
    blocks: list[dict[str, Any]] = []
    for line in body.decode().splitlines():
        if not line.startswith("data:"):
            continue
        event = json.loads(line[5:])
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"], "json": ""})
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], blocks[event["index"]]
            match delta["type"]:
                case "text_delta":
                    block["text"] += delta["text"]
                case "thinking_delta":
                    block["thinking"] += delta["thinking"]
                case "signature_delta":
                    block["signature"] = delta["signature"]
                case "input_json_delta":
                    block["json"] += delta["partial_json"]
                case "citations_delta":
                    block["citations"].append(delta["citation"])
    for block in blocks:
        if arguments := block.pop("json"):
            block["input"] = json.loads(arguments)
    return blocks


def sent_back(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block without what says nothing: marks, no sources, a call that the model made itself."""
    block = {key: value for key, value in block.items() if key != "cache_control"}
    if block["type"] == "tool_use" and block.get("caller") == {"type": "direct"}:
        del block["caller"]
    if block["type"] == "text" and not block.get("citations"):
        block.pop("citations", None)
    return block


@each
def test_an_answer_is_read_as_it_was_written(recording: Recording) -> None:
    heard, says = hear(recording), recording.says

    assert heard.reasoning == says["reasoning"]
    if not says["server_side"]:
        assert heard.text == says["text"]
    assert [(call.tool, json.loads(call.arguments)) for call in heard.calls] == [
        (call["name"], json.loads(call["arguments"])) for call in says["calls"]
    ]
    assert heard.finished.reason == says["finish"]
    assert heard.usage is not None
    assert heard.usage.usage.model_dump() == says["usage"]


@each
def test_what_the_provider_ran_itself_is_shown_and_never_run(recording: Recording) -> None:
    heard = hear(recording)
    assert all(not call.call_id.startswith("srvtoolu_") for call in heard.calls)
    for block in blocks_in(recording.body):
        if block["type"] == "server_tool_use":
            assert f"[{block['name']}]" in heard.text
        if block["type"].endswith("_tool_result"):
            assert f"[{block['type'].removesuffix('_tool_result')}]" in heard.text


@each
def test_the_next_request_sends_every_block_back_where_it_was(recording: Recording) -> None:
    model, heard = model_of(recording), hear(recording)
    path = answered(first_path(), heard, model)
    call = messages.call(request_of(path, model), route_to(model))

    turns = call.body["messages"]
    came = [sent_back(block) for block in blocks_in(recording.body)]
    came = [block for block in came if block["type"] != "text" or block["text"].strip()]
    if came:
        assert [sent_back(block) for block in turns[1]["content"]] == came
    if "test_pause_turn" not in recording.id:  # it goes on with an answer that isn't in it
        check(call.body, call.headers)


@each
def test_a_second_answer_only_adds_to_what_was_sent(recording: Recording) -> None:
    model, heard = model_of(recording), hear(recording)
    path = answered(first_path(), heard, model)
    first = messages.call(request_of(path, model), route_to(model)).body["messages"]
    more = answered([*path, UserEntry(id=90, parts=(TextPart(text="Go on."),))], heard, model)
    second = messages.call(request_of(more, model), route_to(model)).body["messages"]

    for before, after in zip(first, second, strict=False):
        size = len(before["content"])
        assert [sent_back(block) for block in after["content"]][:size] == [
            sent_back(block) for block in before["content"]
        ]


@each
def test_it_makes_no_difference_where_bytes_are_cut(recording: Recording) -> None:
    whole = hear(recording)
    for pieces in (3, 61, 997, 4_999):
        size = max(1, len(recording.body) // pieces)
        assert hear(recording, cuts=tuple(range(0, len(recording.body), size))).events == whole.events


@each
def test_an_answer_that_is_cut_off_is_never_taken_for_a_whole_one(recording: Recording) -> None:
    said = [match.end() for match in re.finditer(rb'"stop_reason": ?"[^\n]*\n', recording.body)][-1]
    for tenth in range(10):
        end = len(recording.body) * tenth // 10
        body = recording.body[:end]
        if said <= end:
            assert hear(recording, body).finished.reason == recording.says["finish"]
            continue
        with pytest.raises(WireFailure) as failed:
            hear(recording, body)
        error = classify(failed.value.failure, route_to(model_of(recording)).target, now=0)
        assert error.kind is ErrorKind.NETWORK
