"""Every recorded answer of a real provider, in each format: bytes in, entry out, second request out."""

import json
import random
import re
from typing import Any

import pytest

from tests.model.recordings import Recording, recordings
from tests.model.wires import messages_rules, responses_checker
from tests.support.wire_rounds import (
    Heard,
    answered,
    first_path,
    read,
    request_of,
    route_to,
    second_body,
)
from tui_agent.model.wires import chat, gemini, messages, responses
from tui_agent.model.wires.wire import WireFailure
from tui_agent.session.entries import TextPart, UserEntry

WIRES: dict[str | None, Any] = {
    "openai": chat,
    "anthropic": messages,
    "gemini": gemini,
    "responses": responses,
}
ENDS = {
    "openai": rb'"finish_reason": ?"',
    "anthropic": rb'"stop_reason": ?"',
    "gemini": rb'"finishReason"',
    "responses": rb'(?:event: |"type": ?")response\.completed',
}
"""Where a format says why an answer ends."""


def completed(recording: Recording) -> list[dict[str, Any]]:
    """Return the accounts of whole answers that a body in OpenAI's Responses has."""
    return [
        event["response"]
        for event in events_in(recording.body)
        if event.get("type") == "response.completed"
    ]


def events_in(body: bytes) -> list[dict[str, Any]]:
    lines = (line[5:].strip() for line in body.decode().splitlines() if line.startswith("data:"))
    return [json.loads(line) for line in lines if line != "[DONE]"]


def is_whole(recording: Recording) -> bool:
    """Tell whether a recording is one answer in a format: some were glued together for tests of their own."""
    match recording.wire:
        case "anthropic":
            return recording.body.count(b"event: message_start") <= 1
        case "responses":
            return len(completed(recording)) == 1
        case "gemini":
            # Arguments in pieces come only to those who ask for them.
            return "partialArgs" not in recording.says["server_side"]
        case "openai":
            return not recording.says["error"]
    return False


def of(*wires: str, own: bool = False) -> pytest.MarkDecorator:
    """Return the whole answers in some formats as cases; ``own``: without those in which the provider ran a tool."""
    found = [
        recording
        for recording in recordings()
        if recording.wire in wires
        and is_whole(recording)
        and not (own and recording.says.get("server_side"))
    ]
    return pytest.mark.parametrize(
        "recording", found, ids=lambda recording: f"{recording.wire} {recording.id[-60:]}"
    )


pytestmark = pytest.mark.skipif(not recordings(), reason="no recordings here")
each = of(*filter(None, WIRES))


def model_of(recording: Recording) -> str:
    fixed = {"gemini": "gemini/gemini-3.1-pro-preview", "responses": "openai/gpt-5.4"}
    provider = "anthropic" if recording.wire == "anthropic" else recording.provider
    return fixed.get(recording.wire or "") or f"{provider}/{recording.model}"


def hear(recording: Recording, body: bytes | None = None, cuts: tuple[int, ...] = ()) -> Heard:
    model = model_of(recording)
    reader = WIRES[recording.wire].reader(request_of(first_path(), model), route_to(model))
    return read(reader, recording.body if body is None else body, cuts)


def next_body(recording: Recording, **settings: Any) -> dict[str, Any]:
    """Return the body of the request that follows the answer."""
    return second_body(
        WIRES[recording.wire], route_to(model_of(recording), **settings), hear(recording)
    )


def said(recording: Recording) -> tuple[str, str]:
    """Return the reasoning and the text of an answer, as another program read them."""
    text, reasoning = recording.says["text"], recording.says.get("reasoning") or ""
    if recording.wire == "responses":
        text = "\n\n".join(texts_in(completed(recording)[0]["output"]))
    if recording.wire == "openai" and text.startswith("<think>"):
        reasoning, _tag, text = text.removeprefix("<think>").partition("</think>")
    return reasoning.strip(), text.lstrip()


def texts_in(output: list[dict[str, Any]]) -> list[str]:
    texts = (
        "".join(part["text"] for part in item["content"])
        for item in output
        if item["type"] == "message"
    )
    return list(filter(None, texts))


@each
def test_an_answer_is_read_as_it_was_written(recording: Recording) -> None:
    heard, says = hear(recording), recording.says
    reasoning, text = said(recording)

    if not says.get("server_side"):
        assert heard.text.lstrip() == text
    # One reader of Snowflake's answers did not look into reasoning_details.
    assert heard.reasoning.replace("\n", "").strip() == reasoning.replace("\n", "") or not reasoning
    assert [(call.tool, json.loads(call.arguments)) for call in heard.calls] == [
        (call["name"], json.loads(call["arguments"] or "{}")) for call in says["calls"]
    ]
    if recording.wire == "openai":
        assert heard.written == {
            at: (call.call_id, call.tool, call.arguments) for at, call in enumerate(heard.calls)
        }
    assert heard.finished.reason == says["finish"] or says.get("provider_finish", "") is None


@each
def test_what_an_answer_took_and_cost_is_what_the_provider_says(recording: Recording) -> None:
    heard, says = hear(recording), recording.says
    if not says["usage"] or not any(says["usage"].values()):
        assert heard.usage is None
        return

    assert heard.usage is not None
    usage = heard.usage.usage.model_dump()
    if recording.wire == "openai" and (
        recording.provider == "xai"
        or ((recording.model or "").startswith("google/") and recording.provider != "openrouter")
    ):
        # They count reasoning beside the output; it is paid for as output.
        usage["output"] -= usage["reasoning"]
    if recording.wire == "gemini" and says["server_side"]:
        # What a search found is paid for as input; the other reader leaves it out.
        assert usage["input"] >= says["usage"]["input"]
        return
    assert {name: usage[name] for name in says["usage"]} == says["usage"]
    if says.get("cost") is not None:
        assert heard.usage.cost == pytest.approx(says["cost"])


@each
def test_an_answer_is_the_same_however_it_is_cut(recording: Recording) -> None:
    size, whole = len(recording.body), hear(recording)
    for cuts in (random.Random(recording.id).sample(range(size), min(40, size)), range(7, size, 7)):
        cut = hear(recording, cuts=tuple(cuts))
        assert (cut.text, cut.reasoning, cut.usage) == (whole.text, whole.reasoning, whole.usage)
        # Gemini's calls often have no ids of their own.
        assert [(c.tool, c.arguments) for c in cut.calls] == [
            (c.tool, c.arguments) for c in whole.calls
        ]


@each
def test_an_answer_whose_connection_ends_early_is_not_whole(recording: Recording) -> None:
    if recording.says.get("provider_finish", "") is None:
        pytest.skip("this server never says why an answer ends")
    ends = [match.start() for match in re.finditer(ENDS[recording.wire or ""], recording.body)]
    # Some say it twice; Gemini says it with every piece.
    end = ends[-1 if recording.wire == "gemini" else 0]
    for tenth in range(10):
        with pytest.raises(WireFailure) as failed:
            hear(recording, recording.body[: end * tenth // 10])
        assert failed.value.failure.cause in {"ended", "broken"}


@of("openai", "anthropic", "gemini")
def test_signatures_go_back_byte_for_byte(recording: Recording) -> None:
    settings = {"reasoning_back": "as_received"} if recording.wire == "openai" else {}
    sent = json.dumps(next_body(recording, **settings))

    for signature in recording.says.get("signatures", ()):
        assert json.dumps(signature) in sent


def blocks_in(body: bytes) -> list[dict[str, Any]]:
    """Return an answer's content blocks, put together by the documentation's rules and nothing else."""
    blocks: list[dict[str, Any]] = []
    for event in events_in(body):
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


@of("anthropic")
def test_the_next_request_sends_every_block_back_where_it_was_and_later_ones_only_add(
    recording: Recording,
) -> None:
    model, heard = model_of(recording), hear(recording)
    path = answered(first_path(), heard, model)
    call = messages.call(request_of(path, model), route_to(model))

    turns = call.body["messages"]
    came = [sent_back(block) for block in blocks_in(recording.body)]
    assert all(
        f"[{block['name']}]" in heard.text for block in came if block["type"] == "server_tool_use"
    )
    came = [block for block in came if block["type"] != "text" or block["text"].strip()]
    if came:
        assert [sent_back(block) for block in turns[1]["content"]] == came
    if "test_pause_turn" not in recording.id:  # it goes on with an answer that isn't in it
        messages_rules.check(call.body, call.headers)
    more = answered([*path, UserEntry(id=90, parts=(TextPart(text="Go on."),))], heard, model)
    second = messages.call(request_of(more, model), route_to(model)).body["messages"]
    for before, after in zip(turns, second, strict=False):
        sent = [sent_back(block) for block in before["content"]]
        assert [sent_back(block) for block in after["content"]][: len(sent)] == sent


def items_back(
    recording: Recording, *, with_reasoning: bool = True
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the body of the request after an answer, and the items of the answer in it."""
    model, heard = model_of(recording), hear(recording)
    request = request_of(answered(first_path(), heard, model), model)
    body = responses.call(request, route_to(model), with_reasoning=with_reasoning).body
    return body, body["input"][2 : -max(len(heard.calls), 1)]


def given_in(recording: Recording) -> list[dict[str, Any]]:
    return [
        event["item"]
        for event in events_in(recording.body)
        if event.get("type") == "response.output_item.done"
    ]


@of("responses")
def test_the_second_request_is_one_the_provider_takes(recording: Recording) -> None:
    output = completed(recording)[0]["output"]
    body, back = items_back(recording)

    # What was given last counts: one provider gives an item another id with every event.
    given = given_in(recording)
    responses_checker.check(body, [given if len(given) == len(output) else output])
    if not recording.says.get("server_side"):
        texts = [item["content"] for item in back if item.get("role") == "assistant"]
        assert [text if isinstance(text, str) else text[0]["text"] for text in texts] == texts_in(
            output
        )
    body, back = items_back(recording, with_reasoning=False)
    responses_checker.check(body)
    assert all(item.get("type", "message") in {"message", "function_call"} for item in back)


@of("responses", own=True)
def test_encrypted_reasoning_goes_back_byte_for_byte_and_in_its_place(recording: Recording) -> None:
    given = given_in(recording)
    thoughts = [
        item for item in given if item["type"] == "reasoning" and item.get("encrypted_content")
    ]

    _, back = items_back(recording)

    if thoughts:
        assert [(item["type"], item.get("id")) for item in back] == [
            (item["type"], item.get("id")) for item in given
        ]
    assert [item for item in back if item.get("encrypted_content")] == thoughts
    phases = [item["phase"] for item in given if item.get("phase")]
    assert [item["phase"] for item in back if "phase" in item] == phases
