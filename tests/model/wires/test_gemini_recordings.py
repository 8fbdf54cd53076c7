"""Every recorded answer of Gemini: bytes in, entry out, second request out."""

import json
import random

import pytest

from tests.support.recordings import Recording, recordings
from tests.support.wire_rounds import Heard, first_path, read, request_of, route_to, second_body
from tui_agent.model.wires import gemini
from tui_agent.model.wires.wire import WireFailure

ANSWERS = [
    found
    for found in recordings()
    # Arguments in pieces come only to those who ask for them.
    if found.wire == "gemini" and "partialArgs" not in found.says["server_side"]
]
MODEL = "gemini/gemini-3.1-pro-preview"

pytestmark = pytest.mark.skipif(not ANSWERS, reason="no recordings here")
each = pytest.mark.parametrize("recording", ANSWERS, ids=lambda found: found.id[-60:])


def hear(recording: Recording, body: bytes | None = None, cuts: tuple[int, ...] = ()) -> Heard:
    reader = gemini.reader(request_of(first_path(), MODEL), route_to(MODEL))
    return read(reader, recording.body if body is None else body, cuts)


@each
def test_an_answer_is_read_as_it_was_written(recording: Recording) -> None:
    heard, says = hear(recording), recording.says

    assert heard.text == says["text"]
    assert heard.reasoning == says["reasoning"]
    assert [(call.tool, json.loads(call.arguments)) for call in heard.calls] == [
        (call["name"], json.loads(call["arguments"] or "{}")) for call in says["calls"]
    ]
    assert heard.finished.reason == says["finish"]


@each
def test_what_an_answer_took_is_what_google_says(recording: Recording) -> None:
    heard, says = hear(recording), recording.says

    assert heard.usage is not None
    usage = heard.usage.usage.model_dump()
    if says["server_side"]:
        # What a search found is paid for as input; the other reader leaves it out.
        assert usage["input"] >= says["usage"]["input"]
        return
    assert usage == says["usage"]


@each
def test_signatures_go_back_on_the_part_they_came_with(recording: Recording) -> None:
    heard = hear(recording)
    sent = json.dumps(second_body(gemini, route_to(MODEL), heard)["contents"])

    for signature in recording.says["signatures"]:
        assert json.dumps(signature) in sent


@each
def test_there_are_as_many_results_as_calls(recording: Recording) -> None:
    heard = hear(recording)
    contents = second_body(gemini, route_to(MODEL), heard)["contents"]

    called = [part["functionCall"] for content in contents for part in content["parts"] if "functionCall" in part]
    answered = [
        part["functionResponse"] for content in contents for part in content["parts"] if "functionResponse" in part
    ]
    assert [call["name"] for call in called] == [result["name"] for result in answered]
    assert [call.get("id") for call in called] == [result.get("id") for result in answered]
    assert len(called) == len(heard.calls)
    assert [content["role"] for content in contents] == ["user", "model", "user"]


@each
def test_an_answer_is_the_same_however_it_is_cut(recording: Recording) -> None:
    cuts = random.Random(recording.id).sample(range(len(recording.body)), min(40, len(recording.body)))
    joined, cut = hear(recording), hear(recording, cuts=tuple(cuts))

    assert (cut.text, cut.reasoning, cut.usage) == (joined.text, joined.reasoning, joined.usage)


@each
def test_an_answer_whose_connection_ends_early_is_not_whole(recording: Recording) -> None:
    end = recording.body.rfind(b'"finishReason"')
    for tenth in range(1, 10):
        with pytest.raises(WireFailure) as caught:
            hear(recording, recording.body[: end * tenth // 10])
        assert caught.value.failure.cause in {"closed", "broken"}
