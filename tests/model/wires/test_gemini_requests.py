"""What is sent to Gemini: parts in order, signatures where they belong, results beside each other."""

import json
from typing import Any

import pytest

from tests.support.wire_rounds import Heard, answered, first_path, read, request_of, route_to
from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.model.errors import classify
from tui_agent.model.protocol import ErrorKind, Finished, ModelError
from tui_agent.model.wires import gemini
from tui_agent.model.wires.wire import WireFailure
from tui_agent.session.effort import Effort

OLD, NEW = "gemini/gemini-2.5-flash", "gemini/gemini-3-flash-preview"


def hear(model: str, *parts: dict[str, Any]) -> Heard:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": 0, "finishReason": "STOP"}
    body = b"data: " + json.dumps({"candidates": [candidate]}).encode() + b"\n\n"
    return read(gemini.reader(request_of(first_path(), model), route_to(model)), body)


def sent(model: str, *messages: Message, **fields: Any) -> dict[str, Any]:
    return gemini.call(ModelRequest(model, messages, **fields), route_to(model)).body


def called(*arguments: str) -> tuple[RequestToolCall, ...]:
    return tuple(RequestToolCall(f"c{number}", "read", text) for number, text in enumerate(arguments))


def test_what_was_thought_is_shown_and_not_sent_back() -> None:
    heard = hear(NEW, {"text": "Hmm.", "thought": True}, {"text": "Yes."})

    contents = gemini.call(request_of(answered(first_path(), heard, NEW), NEW), route_to(NEW)).body["contents"]

    assert (heard.reasoning, heard.text) == ("Hmm.", "Yes.")
    assert contents[1]["parts"] == [{"text": "Yes."}]


def test_calls_of_another_model_pass_the_check_of_signatures() -> None:
    foreign = Message("assistant", tool_calls=called('{"path": "a"}', "{}"))

    parts = sent(NEW, foreign)["contents"][0]["parts"]

    assert [part.get("thoughtSignature") for part in parts] == ["skip_thought_signature_validator", None]
    assert [part["functionCall"]["args"] for part in parts] == [{"path": "a"}, {}]


def test_a_signature_in_an_old_sessions_id_goes_back() -> None:
    old = Message("assistant", tool_calls=(RequestToolCall("call_1__thought__c2ln", "read", "{}"),))

    assert sent(NEW, old)["contents"][0]["parts"][0]["thoughtSignature"] == "c2ln"


def test_a_message_that_is_no_longer_what_the_model_wrote_keeps_the_signatures_of_its_calls() -> None:
    blob = json.dumps(
        {"gemini": [{"text": 99, "thoughtSignature": "dA=="}, {"call": "c0", "thoughtSignature": "Yw=="}]}
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
        ("gemini/gemini-flash-latest", Effort.LOW, {"includeThoughts": True, "thinkingLevel": "low"}),
    ],
)
def test_how_much_to_think(model: str, effort: Effort | None, thinking: dict[str, Any]) -> None:
    body = sent(model, Message("user", (ContentText("hi"),)), effort=effort)

    assert body["generationConfig"]["thinkingConfig"] == thinking


def test_a_model_that_does_not_think_is_not_told_to() -> None:
    assert "generationConfig" not in sent("gemini/gemma-3-27b-it", Message("user", (ContentText("hi"),)))


def test_the_users_own_options_count() -> None:
    options = {"generationConfig": {"temperature": 0.2}, "safetySettings": []}
    request = ModelRequest(OLD, (Message("user", (ContentText("hi"),)),), max_output_tokens=9)

    body = gemini.call(request, route_to(OLD, options=options)).body

    assert body["generationConfig"]["temperature"] == 0.2
    assert body["generationConfig"]["maxOutputTokens"] == 9
    assert body["safetySettings"] == []


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        ("https://proxy.example.com", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
        ("https://proxy.example.com/v1alpha", "/models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
    ],
)
def test_an_address_may_leave_out_the_version(base_url: str, path: str) -> None:
    request = ModelRequest(OLD, (Message("user", (ContentText("hi"),)),))

    assert gemini.call(request, route_to(OLD, base_url=base_url)).path == path


def test_a_list_without_events_is_read_as_well() -> None:
    chunks = [
        {"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "lo"}]}, "finishReason": "STOP"}]},
    ]
    reader = gemini.reader(request_of(first_path(), OLD), route_to(OLD))

    events = [*reader.feed("", json.dumps(chunks)), *reader.end()]

    assert Heard(tuple(events)).text == "Hello"


def failure(*chunks: dict[str, Any]) -> ModelError:
    with pytest.raises(WireFailure) as failed:
        chunks_read(*chunks)
    return classify(failed.value.failure, route_to(OLD).target, now=0)


def chunks_read(*chunks: dict[str, Any]) -> Heard:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()
    return read(gemini.reader(request_of(first_path(), OLD), route_to(OLD)), body)


def test_usage_after_the_end_of_an_answer_is_counted() -> None:
    whole = {"candidates": [{"content": {"parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]}
    usage = chunks_read(whole, {"usageMetadata": {"promptTokenCount": 40, "candidatesTokenCount": 5}}).usage

    assert usage is not None
    assert (usage.usage.input, usage.usage.output) == (40, 5)


def test_a_prompt_that_is_blocked_is_filtered() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}

    assert chunks_read(blocked).events[-1] == Finished("content_filter", note="SAFETY")


def test_a_call_the_model_could_not_write_is_asked_for_again_and_a_wait_is_kept_to() -> None:
    message = "Malformed function call: read(path"
    broken = {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message}]}
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    error = {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED", "details": details}}
    half = {"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]}

    assert failure(broken).kind is ErrorKind.OVERLOADED
    assert message in failure(broken).message
    assert (failure(half, error).kind, failure(half, error).retry_after) == (ErrorKind.RATE_LIMIT, 34.0)


@pytest.mark.parametrize("parts", [5, "text", {"text": "x"}, [None, 7]])
def test_parts_that_are_none_say_nothing_more(parts: object) -> None:
    said = {"candidates": [{"content": {"parts": [{"text": "hello"}]}}]}
    odd = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}

    assert chunks_read(said, odd).text == "hello"
