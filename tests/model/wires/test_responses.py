"""OpenAI's Responses, by small answers as OpenAI and servers like it give them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.model.wires.runs import MODEL, answer, encoded, read, route
from tests.support.responses_wire import Item, function_call, message, reasoning, response, stream
from tests.support.wire_rounds import Heard
from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.model.catalog import Catalog
from tui_agent.model.errors import classify
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.route import Router
from tui_agent.model.wires import responses
from tui_agent.model.wires.wire import WireFailure
from tui_agent.session.effort import Effort
from tui_agent.session.entries import ToolSchema

READ = ToolSchema(name="read", description="Read a file", parameters={"type": "object"})
THOUGHT = reasoning(1, encrypted="gAAAA", summary=["Look first."])


def user(text: str = "hello") -> Message:
    return Message("user", (ContentText(text),))


def replayed(heard: Heard, text: str | None = None) -> list[Item]:
    """The items an answer goes back as; ``text`` in place of what it said."""
    said, blob = heard.text if text is None else text, heard.finished.reasoning_blob
    calls = tuple(RequestToolCall(call.call_id, call.tool, call.arguments) for call in heard.calls)
    back = Message(
        "assistant", (ContentText(said),) if said else (), calls, reasoning=(blob,) if blob else ()
    )
    return responses.call(ModelRequest(MODEL, (user(), back)), route()).body["input"][1:]  # type: ignore[no-any-return]


def body_of(*messages: Message, model: str = MODEL, **fields: Any) -> Item:
    return responses.call(ModelRequest(model, messages or (user(),), **fields), route(model)).body


def test_nothing_is_stored_and_reasoning_is_asked_for_encrypted_and_summed_up() -> None:
    body = body_of(user(), tools=(READ,), session="session-1", max_output_tokens=500)

    assert body == {
        "model": "gpt-5.4",
        "input": [{"role": "user", "content": "hello"}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
        "prompt_cache_key": "session-1",
        "max_output_tokens": 500,
        "tools": [{"type": "function", **READ.model_dump(), "strict": False}],
    }


def test_both_blocks_of_instructions_come_first_as_the_developers() -> None:
    head = (
        Message("system", (ContentText("You are an agent."),)),
        Message("system", (ContentText("It is May."),)),
    )

    assert body_of(*head, user())["input"] == [
        {"role": "developer", "content": "You are an agent.\n\nIt is May."},
        {"role": "user", "content": "hello"},
    ]
    assert body_of(*head, user(), model="xai/grok-4.3")["input"][0]["role"] == "system"
    beside = body_of(*head, user(), model="chatgpt/gpt-6-sol")
    assert beside["instructions"] == "You are an agent.\n\nIt is May."
    assert beside["input"] == [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(
    ("model", "effort", "word"),
    [
        (MODEL, Effort.OFF, "none"),
        (MODEL, Effort.MINIMAL, "minimal"),
        (MODEL, Effort.XHIGH, "xhigh"),
        (MODEL, Effort.MAX, "xhigh"),
        ("openai/gpt-6-sol", Effort.XHIGH, "xhigh"),
        ("openai/gpt-6-sol", Effort.MAX, "max"),
    ],
)
def test_how_much_to_think_is_told_in_the_formats_words(
    model: str, effort: Effort, word: str
) -> None:
    where = Router(Catalog(), {"OPENAI_API_KEY": "k"}).route(model)
    summary = {} if effort is Effort.OFF else {"summary": "auto"}

    body = responses.call(ModelRequest(model, (user(),), effort=effort), where).body

    assert body["reasoning"] == {"effort": word, **summary}


def test_a_server_of_ones_own_is_asked_for_nothing_special() -> None:
    body = responses.call(
        ModelRequest("lm_studio/qwen3", (user(),), session="s"), route("lm_studio/qwen3")
    ).body

    assert body == {
        "model": "qwen3",
        "input": [{"role": "user", "content": "hello"}],
        "stream": True,
        "store": False,
    }


def test_the_users_own_fields_stand_above_all() -> None:
    options = {"service_tier": "flex", "reasoning": {"summary": "detailed"}}

    body = responses.call(ModelRequest(MODEL, (user(),)), route(options=options)).body

    assert {name: body[name] for name in options} == options


def test_images_stand_in_messages_and_in_results() -> None:
    shot, lost = ImageRef("a", "image/png"), ImageRef("b", "image/png")
    asked = Message("user", (ContentText("What is it?"), shot, lost))
    call = Message("assistant", (), (RequestToolCall("c1", "read", "{}"),))
    result = Message("tool", (ContentText("shot.png"), shot), call_id="c1")
    request = ModelRequest(MODEL, (asked, call, result), blobs={"a": b"png"})
    picture = {"type": "input_image", "image_url": "data:image/png;base64,cG5n", "detail": "auto"}

    items = responses.call(request, route()).body["input"]
    elsewhere = responses.call(request, route("xai/grok-4.3")).body["input"]

    assert items[0]["content"][1:] == [
        picture,
        {"type": "input_text", "text": "[image: no longer available]"},
    ]
    assert items[2]["output"] == [{"type": "input_text", "text": "shot.png"}, picture]
    assert elsewhere[2:] == [
        {"type": "function_call_output", "call_id": "c1", "output": "shot.png"},
        {"role": "user", "content": [picture]},
    ]


def test_parts_of_a_summary_are_shown_apart_and_half_characters_in_them_end_nothing() -> None:
    heard = answer(
        [reasoning(1, encrypted="g", summary=["**First**", "\ud83d"]), message(2, "Done.")]
    )

    assert (heard.reasoning, heard.text) == ("**First**\n\n\ud83d", "Done.")
    assert (heard.finished.reasoning_blob or "").encode("utf-8")
    assert replayed(heard)[0]["encrypted_content"] == "g"


@pytest.mark.parametrize(
    ("said", "end", "finish"),
    [
        (message(1, "Half an"), {"status": "incomplete", "reason": "max_output_tokens"}, "length"),
        (
            message(1, "Half an"),
            {"status": "incomplete", "reason": "content_filter"},
            "content_filter",
        ),
        (message(1, "Half an"), {"status": "incomplete", "reason": "something_new"}, "length"),
        (message(1, "", refusal="Half an"), {}, "content_filter"),
    ],
)
def test_an_answer_that_was_ended_early_or_refused_says_why(
    said: Item, end: dict[str, Any], finish: str
) -> None:
    heard = answer([said], **end)

    assert (heard.text, heard.finished.reason) == ("Half an", finish)


def test_sources_are_named_where_the_text_does_not() -> None:
    notes = [
        {"type": "url_citation", "url": "https://a.example/x", "title": "About A"},
        {"type": "url_citation", "url": "https://b.example/y", "title": "B"},
        {"type": "file_citation", "filename": "notes.pdf", "file_id": "f"},
        {"type": "url_citation", "url": "https://a.example/x", "title": "About A"},
    ]
    heard = answer(
        [
            message(1, "It is so ([B](https://b.example/y)).", annotations=notes),
            message(2, "And more."),
        ]
    )

    assert heard.text == (
        "It is so ([B](https://b.example/y)).\n\nSources:\n- [About A](https://a.example/x)\n- notes.pdf\n\nAnd more."
    )
    assert [item["content"] for item in replayed(heard)] == [
        "It is so ([B](https://b.example/y)).",
        "And more.",
    ]


def test_tools_that_run_elsewhere_and_what_is_unknown_are_never_run_here() -> None:
    search = {"type": "search", "query": "x"}
    output = [
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": search},
        {
            "id": "ctc_2",
            "type": "custom_tool_call",
            "call_id": "c",
            "name": "bash",
            "input": "rm -rf /",
        },
        {"id": "lsh_3", "type": "local_shell_call", "call_id": "d", "action": {"command": ["rm"]}},
        {"id": "new_4", "type": "never_heard_of", "status": "completed"},
        message(5, "Found it."),
    ]
    heard = answer(output)

    assert (heard.calls, heard.text) == ([], "Found it.")
    assert [item.get("type", "message") for item in replayed(heard)] == [
        "web_search_call",
        "message",
    ]


def test_reasoning_stays_away_from_a_text_that_changed() -> None:
    back = replayed(answer([THOUGHT, message(2, "The answer is 4.")]), text="[cleared]")

    assert back == [{"type": "message", "role": "assistant", "content": "[cleared]"}]


def test_a_blob_of_another_format_is_left_out() -> None:
    foreign = (
        '{"messages": [{"type": "thinking", "thinking": "t", "signature": "s"}]}',
        "not json",
        "[]",
        "{}",
    )
    odd = ('{"responses": [1, {"type": "message", "chars": "5"}]}', '{"responses": "x"}')

    for blob in (*foreign, *odd):
        said = Message("assistant", (ContentText("Hello"),), reasoning=(blob,))
        assert body_of(user(), said)["input"][1:] == [
            {"type": "message", "role": "assistant", "content": "Hello"}
        ]


def test_a_body_without_a_stream_is_a_whole_answer() -> None:
    output = [THOUGHT, message(2, "Hi."), function_call(3, "read", "{}")]
    reader = responses.reader(ModelRequest(MODEL, ()), route())

    heard = Heard((*reader.feed("", json.dumps(response(output))), *reader.end()))

    assert (heard.reasoning, heard.text) == ("Look first.", "Hi.")
    assert [call.tool for call in heard.calls] == ["read"]
    assert replayed(heard)[0] == THOUGHT


def other_ids(events: list[Item]) -> list[Item]:
    """Give every event other ids."""
    changed = []
    for number, event in enumerate(events):
        own = {"item_id": f"x{number}"} if "item_id" in event else {}
        item = {"item": {**event["item"], "id": f"y{number}"}} if "item" in event else {}
        changed.append(event | own | item)
    return changed


def is_end(event: Item) -> bool:
    return str(event["type"]).endswith("output_item.done")


ODD: dict[str, Callable[[list[Item]], list[Item]]] = {
    "ids that change with every event": other_ids,
    "no numbers": lambda events: [
        {key: event[key] for key in event if key != "output_index"} for event in events
    ],
    "all number 0": lambda events: [
        event | ({"output_index": 0} if "output_index" in event else {}) for event in events
    ],
    "items close only with the whole response": lambda events: [
        event for event in events if not event["type"].endswith((".done", "arguments.delta"))
    ],
    "a piece of the arguments is lost": lambda events: [
        event
        for event in events
        if event is not next(e for e in events if e["type"].endswith("arguments.delta"))
    ],
    "items close twice": lambda events: [
        event for event in events for _ in range(1 + is_end(event))
    ],
    "the whole message is said to be another": lambda events: [
        event
        | (
            {"item": message(2, "Something else.")}
            if is_end(event) and event["item"]["type"] == "message"
            else {}
        )
        for event in events
    ],
}


@pytest.mark.parametrize("made", ODD.values(), ids=ODD)
def test_a_stream_that_is_odd_is_read_all_the_same(
    made: Callable[[list[Item]], list[Item]],
) -> None:
    note = {"type": "url_citation", "url": "https://a.example/x", "title": "A"}
    said = message(2, "One two three.", annotations=[note])
    output = [THOUGHT, said, function_call(3, "read", '{"a": 1}'), function_call(4, "read", "{}")]

    heard = read(encoded(made(stream(response(output)))))

    assert heard.text.removesuffix("\n\nSources:\n- [A](https://a.example/x)") == "One two three."
    assert [call.arguments for call in heard.calls] == ['{"a": 1}', "{}"]
    assert replayed(heard)[0].get("encrypted_content", "gAAAA") == "gAAAA"


def test_calls_written_at_once_are_told_by_their_ids_where_there_are_no_numbers() -> None:
    calls = [function_call(1, "read", '{"a": 1}'), function_call(2, "read", '{"b": 2}')]
    start, echo, *events = stream(response(calls))
    bare = [
        {name: value for name, value in event.items() if name != "output_index"} for event in events
    ]
    half = (len(bare) - 1) // 2
    mixed = [event for pair in zip(bare[:half], bare[half:-1], strict=True) for event in pair]

    heard = read(encoded([start, echo, *mixed, bare[-1]]))

    assert [call.arguments for call in heard.calls] == ['{"a": 1}', '{"b": 2}']


def test_a_servers_last_word_is_enough_where_everything_was_closed() -> None:
    events = stream(response([message(1, "Hi.")]))[:-1]
    closed = encoded(events) + b"data: [DONE]\n\n"
    open_ = encoded(events[:-1]) + b"data: [DONE]\n\n"

    assert read(closed).text == "Hi."
    with pytest.raises(WireFailure) as caught:
        read(open_)
    assert caught.value.failure.cause == "ended"


def _failure(*events: Item) -> WireFailure:
    start = stream(response([message(1, "Half an")]))[:5]
    with pytest.raises(WireFailure) as caught:
        read(encoded([*start, *events]))
    return caught.value


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", ErrorKind.OVERLOADED),
        ("context_length_exceeded", ErrorKind.CONTEXT_OVERFLOW),
    ],
)
def test_a_failed_response_is_judged_by_its_code(code: str, kind: ErrorKind) -> None:
    end = response([], status="failed", error={"code": code, "message": "Something happened."})

    error = classify(
        _failure({"type": "response.failed", "response": end}).failure, route().target, now=0.0
    )

    assert error.kind is kind


def test_a_status_and_headers_within_the_stream_count() -> None:
    event = {
        "type": "error",
        "status": 503,
        "headers": {"Retry-After": "7"},
        "error": {"message": "Busy."},
    }

    error = classify(_failure(event).failure, route().target, now=0.0)

    assert (error.kind, error.status, error.retry_after) == (ErrorKind.OVERLOADED, 503, 7.0)


def test_an_error_in_a_body_without_a_stream_is_told() -> None:
    reader = responses.reader(ModelRequest(MODEL, ()), route())

    with pytest.raises(WireFailure, match="no such model"):
        reader.feed(
            "", json.dumps({"error": {"message": "no such model", "code": "model_not_found"}})
        )


RESPONSES = """
    openai/gpt-5 openai/gpt-5-mini-2025-08-07 openai/gpt-5.1-codex-max openai/gpt-5.6-sol openai/gpt-7
    openai/gpt-12.5-nano openai/o1-pro openai/o3 openai/o4-mini openai/codex-mini-latest
    openai/ft:o4-mini-2025-04-16:org openai/gpt-daybreak-red-latest gpt-5.4 azure/my-gpt-5-deployment
    azure/gpt5-mini xai/grok-4.3 xai/grok-9
"""
CHAT = """
    openai/gpt-4o openai/gpt-4.1-mini openai/gpt-3.5-turbo openai/gpt-5-chat-latest openai/gpt-audio-mini
    openai/some-model-of-mine azure/gpt-35-turbo openrouter/openai/gpt-5 lm_studio/openai/gpt-oss-20b
"""


@pytest.mark.parametrize(("models", "wire"), [(RESPONSES, "responses"), (CHAT, "chat")])
def test_models_that_think_are_asked_by_responses_and_others_are_not(
    models: str, wire: str
) -> None:
    router = Router(Catalog(), {})

    assert {model: router.wire(model) for model in models.split()} == dict.fromkeys(
        models.split(), wire
    )
