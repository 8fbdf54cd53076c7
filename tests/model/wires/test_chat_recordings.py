"""Every recorded answer of chat completions: bytes in, entry out, second request out."""

import json
import random

import pytest

from tests.support.recordings import Recording, recordings
from tests.support.wire_rounds import Heard, first_path, read, request_of, route_to, second_body
from tui_agent.model.errors import classify
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.retry import RETRIED
from tui_agent.model.wires import chat
from tui_agent.model.wires.wire import WireFailure

ANSWERS = [found for found in recordings() if found.wire == "openai"]
WHOLE = [found for found in ANSWERS if not found.says["error"]]
FAILED = [found for found in ANSWERS if found.says["error"]]

pytestmark = pytest.mark.skipif(not ANSWERS, reason="no recordings here")
each = pytest.mark.parametrize("recording", WHOLE, ids=lambda found: found.id[-60:])


def model_of(recording: Recording) -> str:
    return f"{recording.provider}/{recording.model}"


def hear(recording: Recording, body: bytes | None = None, cuts: tuple[int, ...] = ()) -> Heard:
    model = model_of(recording)
    reader = chat.reader(request_of(first_path(), model), route_to(model))
    return read(reader, recording.body if body is None else body, cuts)


def in_tags(text: str) -> tuple[str, str]:
    """Return the reasoning and the answer of a text that has both."""
    thought, _tag, answer = text.removeprefix("<think>").partition("</think>")
    return thought.lstrip(), answer.lstrip()


@each
def test_an_answer_is_read_as_it_was_written(recording: Recording) -> None:
    heard, says = hear(recording), recording.says

    if says["text"].startswith("<think>"):
        assert (heard.reasoning, heard.text) == in_tags(says["text"])
    else:
        assert heard.text == says["text"]
        # One reader of Snowflake's answers did not look into reasoning_details.
        assert heard.reasoning == says["reasoning"] or not says["reasoning"]
    assert [(call.tool, json.loads(call.arguments)) for call in heard.calls] == [
        (call["name"], json.loads(call["arguments"] or "{}")) for call in says["calls"]
    ]
    assert {number: (call.call_id, call.tool, call.arguments) for number, call in enumerate(heard.calls)} == (
        heard.written
    )
    assert heard.finished.reason == says["finish"] or says["provider_finish"] is None


@each
def test_what_an_answer_took_and_cost_is_what_the_provider_says(recording: Recording) -> None:
    heard, says = hear(recording), recording.says
    if says["usage"] is None:
        assert heard.usage is None
        return

    assert heard.usage is not None
    usage = heard.usage.usage.model_dump()
    google = (recording.model or "").startswith("google/") and recording.provider != "openrouter"
    if google or recording.provider == "xai":
        # They count reasoning beside the output; it is paid for as output.
        usage["output"] -= usage["reasoning"]
    assert usage == says["usage"]
    if says["cost"] is not None:
        assert heard.usage.cost == pytest.approx(says["cost"])


@each
def test_signatures_go_back_byte_for_byte(recording: Recording) -> None:
    model, heard = model_of(recording), hear(recording)
    sent = second_body(chat, route_to(model, reasoning_back="as_received"), heard)["messages"]

    answers = json.dumps([message for message in sent if message["role"] == "assistant"])
    for signature in recording.says["signatures"]:
        assert json.dumps(signature) in answers


@each
def test_calls_and_results_of_the_next_request_belong_together(recording: Recording) -> None:
    model, heard = model_of(recording), hear(recording)
    sent = second_body(chat, route_to(model), heard)["messages"]

    called = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    assert called == [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert len(set(called)) == len(heard.calls)


@each
def test_an_answer_is_the_same_however_it_is_cut(recording: Recording) -> None:
    cuts = random.Random(recording.id).sample(range(len(recording.body)), min(40, len(recording.body)))
    joined, cut = hear(recording), hear(recording, cuts=tuple(cuts))

    assert (cut.text, cut.reasoning, cut.usage) == (joined.text, joined.reasoning, joined.usage)
    assert [call.arguments for call in cut.calls] == [call.arguments for call in joined.calls]


@each
def test_an_answer_whose_connection_ends_early_is_not_whole(recording: Recording) -> None:
    if recording.says["provider_finish"] is None:
        pytest.skip("this server never says why an answer ends")
    end = recording.body.rfind(b'"finish_reason":"')
    for tenth in range(1, 10):
        size = len(recording.body) * tenth // 10
        if size >= end > 0:
            break
        with pytest.raises(WireFailure) as failed:
            hear(recording, recording.body[:size])
        assert failed.value.failure.cause in {"closed", "broken"}


@pytest.mark.parametrize("recording", FAILED, ids=lambda found: found.id[-60:])
def test_an_error_within_a_stream_is_tried_again(recording: Recording) -> None:
    with pytest.raises(WireFailure) as failed:
        hear(recording)

    error = classify(failed.value.failure, route_to(model_of(recording)).target, now=0)
    assert error.kind in RETRIED | {ErrorKind.INVALID_REQUEST}
    assert recording.says["error"]["message"][:60] in error.message
