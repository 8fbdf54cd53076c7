"""What is sent to Gemini: parts in order, signatures where they belong, results beside each other."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.wires.runs import spoil
from tests.support.wire_rounds import Heard, answered, first_path, read, request_of, route_to
from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.model.errors import classify
from tui_agent.model.protocol import ErrorKind, Finished, ModelError
from tui_agent.model.wires import gemini
from tui_agent.model.wires.wire import WireFailure
from tui_agent.session.effort import Effort

HI = Message("user", (ContentText("hi"),))
OLD, NEW = "gemini/gemini-2.5-flash", "gemini/gemini-3-flash-preview"


def sent(model: str, *messages: Message, **fields: Any) -> dict[str, Any]:
    return gemini.call(ModelRequest(model, messages, **fields), route_to(model)).body


def called(*arguments: str) -> tuple[RequestToolCall, ...]:
    return tuple(
        RequestToolCall(f"c{number}", "read", text) for number, text in enumerate(arguments)
    )


def test_what_was_thought_is_shown_and_not_sent_back() -> None:
    said = heard(
        saying({"text": "Hmm.", "thought": True}, {"text": "Yes."}, finishReason="STOP"), model=NEW
    )

    contents = gemini.call(request_of(answered(first_path(), said, NEW), NEW), route_to(NEW)).body[
        "contents"
    ]

    assert (said.reasoning, said.text) == ("Hmm.", "Yes.")
    assert contents[1]["parts"] == [{"text": "Yes."}]


def test_calls_of_another_model_pass_the_check_of_signatures() -> None:
    foreign = Message("assistant", tool_calls=called('{"path": "a"}', "{}"))

    parts = sent(NEW, foreign)["contents"][0]["parts"]

    assert [part.get("thoughtSignature") for part in parts] == [
        "skip_thought_signature_validator",
        None,
    ]
    assert [part["functionCall"]["args"] for part in parts] == [{"path": "a"}, {}]


def test_a_signature_in_an_old_sessions_id_goes_back() -> None:
    old = Message("assistant", tool_calls=(RequestToolCall("call_1__thought__c2ln", "read", "{}"),))

    assert sent(NEW, old)["contents"][0]["parts"][0]["thoughtSignature"] == "c2ln"


def test_a_message_that_is_no_longer_what_the_model_wrote_keeps_the_signatures_of_its_calls() -> (
    None
):
    blob = json.dumps(
        {
            "gemini": [
                {"text": 99, "thoughtSignature": "dA=="},
                {"call": "c0", "thoughtSignature": "Yw=="},
            ]
        }
    )
    cut = Message("assistant", (ContentText("short"),), called("{}"), reasoning=(blob,))

    assert sent(NEW, cut)["contents"][0]["parts"] == [
        {"text": "short"},
        {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "Yw=="},
    ]


def test_a_failed_call_says_so_and_images_stand_beside_results() -> None:
    image = ImageRef("b1", "image/png")
    messages = (
        Message("assistant", tool_calls=called("{}", "{}")),
        Message("tool", (ContentText("no such file"),), call_id="c0", failed=True),
        Message("tool", (ContentText("a picture"), image), call_id="c1"),
        Message("user", (ContentText("and?"), ImageRef("gone", "image/png"))),
    )

    contents = sent(OLD, *messages, blobs={"b1": b"\x89PNG"})["contents"]

    assert contents[1]["parts"] == [
        {"functionResponse": {"name": "read", "response": {"error": "no such file"}}},
        {"functionResponse": {"name": "read", "response": {"output": "a picture"}}},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
    ]
    assert contents[2]["parts"][1] == {"text": "[image: no longer available]"}


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        (OLD, None, {"includeThoughts": True}),
        (OLD, Effort.OFF, {"includeThoughts": False, "thinkingBudget": 0}),
        (OLD, Effort.MAX, {"includeThoughts": True, "thinkingBudget": 24_576}),
        (NEW, Effort.OFF, {"includeThoughts": False, "thinkingLevel": "minimal"}),
        (NEW, Effort.MAX, {"includeThoughts": True, "thinkingLevel": "high"}),
        (
            "gemini/gemini-flash-latest",
            Effort.LOW,
            {"includeThoughts": True, "thinkingLevel": "low"},
        ),
    ],
)
def test_how_much_to_think(model: str, effort: Effort | None, thinking: dict[str, Any]) -> None:
    body = sent(model, HI, effort=effort)

    assert body["generationConfig"]["thinkingConfig"] == thinking


def test_a_model_that_does_not_think_is_not_told_to() -> None:
    assert "generationConfig" not in sent("gemini/gemma-3-27b-it", HI)


def test_the_users_own_options_count() -> None:
    options = {"generationConfig": {"temperature": 0.2}, "safetySettings": []}
    request = ModelRequest(OLD, (HI,), max_output_tokens=9)

    body = gemini.call(request, route_to(OLD, options=options)).body

    assert body["generationConfig"]["temperature"] == 0.2
    assert body["generationConfig"]["maxOutputTokens"] == 9
    assert body["safetySettings"] == []


@pytest.mark.parametrize(("given", "added"), [("", "/v1beta"), ("/v1alpha", "")])
def test_an_address_may_leave_out_the_version(given: str, added: str) -> None:
    call = gemini.call(
        ModelRequest(OLD, (HI,)), route_to(OLD, base_url=f"https://proxy.example.com{given}")
    )

    assert call.path == f"{added}/models/gemini-2.5-flash:streamGenerateContent?alt=sse"


def test_a_list_without_events_is_read_as_well() -> None:
    chunks = [saying({"text": "Hel"}), saying({"text": "lo"}, finishReason="STOP")]
    reader = gemini.reader(request_of(first_path(), OLD), route_to(OLD))

    assert Heard((*reader.feed("", json.dumps(chunks)), *reader.end())).text == "Hello"


def heard(*chunks: dict[str, Any], model: str = OLD) -> Heard:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()
    return read(gemini.reader(request_of(first_path(), model), route_to(model)), body)


def saying(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, **more}]}


def failure(*chunks: dict[str, Any]) -> ModelError:
    with pytest.raises(WireFailure) as failed:
        heard(*chunks)
    return classify(failed.value.failure, route_to(OLD).target, now=0)


def test_usage_after_the_end_of_an_answer_is_counted() -> None:
    usage = {"usageMetadata": {"promptTokenCount": 40, "candidatesTokenCount": 5}}
    used = heard(saying({"text": "Hello."}, finishReason="STOP"), usage).used

    assert (used.input, used.output) == (40, 5)


def test_a_prompt_that_is_blocked_is_filtered() -> None:
    blocked = {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 4},
    }

    assert heard(blocked).events[-1] == Finished("content_filter", note="SAFETY")


def test_a_call_the_model_could_not_write_is_asked_for_again_and_a_wait_is_kept_to() -> None:
    message = "Malformed function call: read(path"
    broken = {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message}]}
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    error = {
        "error": {
            "code": 429,
            "message": "Quota",
            "status": "RESOURCE_EXHAUSTED",
            "details": details,
        }
    }
    half = saying({"text": "Hel"})

    assert failure(broken).kind is ErrorKind.OVERLOADED
    assert message in failure(broken).message
    assert (failure(half, error).kind, failure(half, error).retry_after) == (
        ErrorKind.RATE_LIMIT,
        34.0,
    )


@pytest.mark.parametrize("parts", [5, "text", {"text": "x"}, [None, 7]])
def test_parts_that_are_none_say_nothing_more(parts: object) -> None:
    odd = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}

    assert heard(saying({"text": "hello"}), odd).text == "hello"


def test_an_error_within_a_list_of_chunks_is_told_for_what_it_is() -> None:
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    body = json.dumps([saying({"text": "Hel"}), error]).encode()
    reader = gemini.reader(request_of(first_path(), OLD), route_to(OLD))
    with pytest.raises(WireFailure) as failed:
        reader.feed("", body.decode())
    assert classify(failed.value.failure, route_to(OLD).target, now=0).kind is ErrorKind.OVERLOADED


@given(st.data())
def test_whatever_google_sends_is_read_or_refused(data: st.DataObject) -> None:
    call = {"functionCall": {"id": "c", "name": "read", "args": {"path": "a"}}}
    chunks = [
        saying({"text": "Hm.", "thought": True, "thoughtSignature": "s"}, {"text": "Hi."}),
        saying({**call, "thoughtSignature": "s"}, {"executableCode": {"code": "x"}}),
        saying({"text": "."}, finishReason="STOP", finishMessage="done"),
        {
            "usageMetadata": {"promptTokenCount": 40, "candidatesTokenCount": 5},
            "promptFeedback": {"blockReason": ""},
        },
    ]
    chunks = json.loads(json.dumps(chunks))
    spoil(chunks, data)
    with contextlib.suppress(WireFailure):
        said = heard(*chunks, model=NEW)
        assert all(isinstance(one.call_id, str) and isinstance(one.tool, str) for one in said.calls)
        request = request_of(answered(first_path(), said, NEW), NEW)
        gemini.call(request, route_to(NEW))
