"""What is posted in Anthropic's format: rules of the interface, thinking per model, cache marks, results."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.wires.messages_rules import check
from tests.support.entry_strategies import paths
from tests.support.thoroughness import examples
from tests.support.wire_rounds import first_path, route_to
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.model.wires import messages
from tui_agent.model.wires.wire import Call
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    ReasoningPart,
    TextPart,
    ToolSchema,
    UserEntry,
)

MODELS = [
    f"anthropic/claude-{name}"
    for name in ("haiku-4-5", "opus-4-6", "sonnet-5-5", "opus-5-5", "haiku-5-5")
]
OPUS, SONNET, HAIKU = (
    "anthropic/claude-opus-5-5",
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-haiku-5-5",
)
THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
SECRET: dict[str, Any] = {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"}
SEARCH: dict[str, Any] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "x"},
}
FOUND: dict[str, Any] = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"data": "eA=="}],
}
GET = ToolSchema(name="get", description="Get.", parameters={"type": "object"})


def posted(request: ModelRequest, **options: Any) -> Call:
    return messages.call(request, route_to(request.model, **options))


def body(request: ModelRequest, **options: Any) -> dict[str, Any]:
    return posted(request, **options).body


def say(text: str = "Go on.", **fields: Any) -> Message:
    return Message("user", (ContentText(text),), **fields)


def asked(model: str, *conversation: Message, **fields: Any) -> ModelRequest:
    return ModelRequest(model, conversation or (say(),), **fields)


def answer(*kept: dict[str, Any], text: str = "", calls: int = 0, key: str = "messages") -> Message:
    """Return an answer whose blocks were kept."""
    return Message(
        "assistant",
        (ContentText(text),) if text else (),
        tool_calls=tuple(
            RequestToolCall(f"toolu_{number}", "read", "{}") for number in range(calls)
        ),
        reasoning=(json.dumps({key: list(kept)}),) if kept else (),
    )


def result(number: int = 0, **fields: Any) -> Message:
    return Message("tool", (ContentText("done"),), call_id=f"toolu_{number}", **fields)


def kinds(turn: dict[str, Any]) -> list[str]:
    return [block["type"] for block in turn["content"]]


@st.composite
def requests(draw: st.DrawFn) -> ModelRequest:
    """Draw the request of any path to any model, with any settings."""
    model = draw(st.sampled_from(MODELS))
    traits = ModelTraits(
        model, images_in_results=draw(st.booleans()), bound_reasoning=draw(st.booleans())
    )
    path = _with_blobs(draw, draw(paths()), model)
    request = project(path, traits)
    names = {
        part.blob
        for message in request.messages
        for part in message.content
        if isinstance(part, ImageRef)
    }
    return replace(
        request,
        effort=draw(st.none() | st.sampled_from(tuple(Effort))),
        max_output_tokens=draw(st.none() | st.integers(1, 200_000)),
        cache_ttl=draw(st.sampled_from(["5m", "1h"])),
        tool_choice=draw(st.sampled_from(["auto", "none"])),
        blobs={name: b"\x89PNG" for name in names if draw(st.booleans())},
    )


def _with_blobs(draw: st.DrawFn, path: list[Entry], model: str) -> list[Entry]:
    """Give answers blocks as this format keeps them: fitting their text and calls, or not any more."""
    given = []
    for entry in path:
        if not isinstance(entry, AssistantEntry) or draw(st.booleans()):
            given.append(entry)
            continue
        extra = draw(st.sampled_from([0, 0, 0, 3]))
        kept = [
            *draw(
                st.sampled_from(
                    [(), (THOUGHT,), (SECRET, THOUGHT), (SEARCH, FOUND), ({"type": "thinking"},)]
                )
            ),
            {"type": "text", "chars": len(entry.text) + extra},
            *({"type": "tool_use"} for _call in entry.tool_calls),
        ]
        parts = [part for part in entry.parts if not isinstance(part, ReasoningPart)]
        blob = ReasoningPart(text="", blob=json.dumps({"messages": kept}), model=model)
        given.append(entry.model_copy(update={"parts": (blob, *parts)}))
    return given


@settings(max_examples=examples(150), deadline=None)
@given(requests(), st.booleans())
def test_any_path_makes_a_request_that_is_accepted(
    request: ModelRequest, with_reasoning: bool
) -> None:
    if not any(message.role != "system" for message in request.messages):
        return
    call = messages.call(request, route_to(request.model), with_reasoning=with_reasoning)
    check(call.body, call.headers)
    assert messages.call(request, route_to(request.model), with_reasoning=with_reasoning) == call


def test_results_come_first_in_a_turn_of_several_messages() -> None:
    conversation = (say("a"), answer(calls=2), result(0), say("wait"), result(1))
    turns = body(asked(OPUS, *conversation))["messages"]
    assert list(map(kinds, turns)) == [
        ["text"],
        ["tool_use"] * 2,
        ["tool_result", "tool_result", "text"],
    ]


def test_without_tools_allowed_they_are_still_told() -> None:
    sent = body(asked(OPUS, tools=(GET,), tool_choice="none"))
    assert sent["tool_choice"] == {"type": "none"}
    assert [each["name"] for each in sent["tools"]] == ["get"]


def test_a_results_images_and_its_failure_stand_in_it() -> None:
    parts = (ContentText("half of it"), ImageRef("ab", "image/png"))
    failed = Message("tool", parts, call_id="toolu_0", failed=True)
    [found] = body(asked(OPUS, say(), answer(calls=1), failed, blobs={"ab": b"\x89PNG"}))[
        "messages"
    ][-1]["content"]
    assert found["is_error"] is True
    assert kinds(found) == ["text", "image"]
    assert found["content"][1]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": "iVBORw==",
    }


def test_an_image_that_is_lost_is_told_of() -> None:
    request = asked(OPUS, Message("user", (ImageRef("gone", "image/png"),)))
    texts = [block["text"] for block in body(request)["messages"][0]["content"]]
    assert texts == ["[image: no longer available]"]


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "word"),
    [
        ("claude-3-5-haiku-20241022", Effort.HIGH, None, None),
        ("claude-haiku-4-5", Effort.MINIMAL, {"type": "enabled", "budget_tokens": 1_024}, None),
        ("claude-sonnet-4.5", Effort.MAX, {"type": "enabled", "budget_tokens": 32_000}, None),
        ("claude-opus-5", None, {"type": "adaptive"}, None),
        ("claude-opus-4-7", Effort.XHIGH, {"type": "adaptive"}, "xhigh"),
        ("claude-opus-4-6", Effort.MAX, {"type": "adaptive"}, "max"),
        ("claude-opus-5", Effort.OFF, {"type": "disabled"}, None),
        ("claude-sonnet-5-5", Effort.OFF, {"type": "between_tools"}, None),
        ("claude-opus-5-5", Effort.OFF, {"type": "adaptive"}, "low"),
    ],
)
def test_each_model_is_told_to_think_its_own_way(
    model: str, effort: Effort | None, thinking: dict[str, Any] | None, word: str | None
) -> None:
    sent = body(asked(f"anthropic/{model}", effort=effort))
    told = sent.get("thinking") or {}
    assert {key: told[key] for key in ("type", "budget_tokens") if key in told} == (thinking or {})
    assert sent.get("output_config", {}).get("effort") == word
    if thinking == {"type": "adaptive"}:
        assert told["display"] == "summarized"


def test_another_makers_model_is_given_a_budget_and_can_be_turned_off() -> None:
    model, options = (
        "minimax/MiniMax-M2",
        {"wire": "messages", "base_url": "http://127.0.0.1:9/anthropic"},
    )
    assert body(asked(model, effort=Effort.HIGH), **options)["thinking"] == {
        "type": "enabled",
        "budget_tokens": 16_384,
    }
    assert body(asked(model, effort=Effort.OFF), **options)["thinking"] == {"type": "disabled"}
    assert "thinking" not in body(asked(model), **options)


@pytest.mark.parametrize(
    ("model", "limit", "room"),
    [
        ("claude-opus-5-5", None, 128_000),
        ("claude-opus-5-5", 30_000, 30_000),
        ("claude-opus-5-5", 100, 16_484),
        ("claude-opus-4-6", 100, 100),
        ("claude-of-tomorrow", None, 32_000),
    ],
)
def test_an_answer_has_room_for_thinking_and_is_never_cut_short(
    model: str, limit: int | None, room: int
) -> None:
    assert body(asked(f"anthropic/{model}", max_output_tokens=limit))["max_tokens"] == room


def test_thinking_between_calls_is_asked_for_where_it_has_to_be() -> None:
    old = posted(
        asked(SONNET, tools=(GET,), effort=Effort.LOW),
        headers={"Anthropic-Beta": "context-1m-2025-08-07"},
    )
    assert old.headers["Anthropic-Beta"] == "context-1m-2025-08-07,interleaved-thinking-2025-05-14"
    assert "anthropic-beta" not in posted(asked(SONNET, tools=(GET,))).headers
    assert "interleaved" not in posted(asked(OPUS, tools=(GET,))).headers.get("anthropic-beta", "")


def test_a_turn_begun_without_thinking_is_gone_on_with_without() -> None:
    begun = (say(), answer(calls=1), result())
    assert "thinking" not in body(asked(SONNET, *begun, effort=Effort.HIGH))
    thought = (say(), answer(THOUGHT, {"type": "tool_use"}, calls=1), result())
    assert body(asked(SONNET, *thought, effort=Effort.HIGH))["thinking"]["type"] == "enabled"
    assert (
        body(asked(SONNET, *begun, answer(text="Done."), say(), effort=Effort.HIGH))["thinking"][
            "type"
        ]
        == "enabled"
    )


def test_only_anthropics_own_address_is_asked_for_what_others_refuse() -> None:
    own = posted(asked(OPUS, tools=(GET,)))
    assert own.body["tools"][0]["eager_input_streaming"] is True
    assert own.body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert own.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"
    gateway = posted(asked(OPUS, tools=(GET,)), base_url="https://gateway.example/anthropic")
    assert "eager_input_streaming" not in gateway.body["tools"][0]
    assert "block_binding" not in gateway.body["thinking"]
    assert set(gateway.headers) == {"anthropic-version"}


def test_sessions_that_went_through_litellm_keep_their_signatures() -> None:
    turn = body(
        asked(
            OPUS,
            say(),
            answer(THOUGHT, SECRET, text="Yes.", calls=1, key="thinking_blocks"),
            result(),
        )
    )
    assert turn["messages"][1]["content"][:2] == [THOUGHT, SECRET]
    assert kinds(turn["messages"][1])[2:] == ["text", "tool_use"]


def test_thinking_that_was_refused_or_turned_off_stays_away() -> None:
    conversation = (say(), answer(THOUGHT, {"type": "text", "chars": 4}, text="Yes."), say())
    again = messages.call(
        asked(OPUS, *conversation, effort=Effort.LOW), route_to(OPUS), with_reasoning=False
    )
    assert kinds(again.body["messages"][1]) == ["text"]
    assert not {"thinking", "output_config"} & set(again.body)
    assert set(again.headers) == {"anthropic-version"}
    assert kinds(body(asked(HAIKU, *conversation, effort=Effort.OFF))["messages"][1]) == ["text"]


def test_thinking_without_a_signature_goes_back_to_others_only() -> None:
    unsigned = {"type": "thinking", "thinking": "Hm."}
    conversation = (say(), answer(unsigned, {"type": "text", "chars": 4}, text="Yes."), say())
    assert kinds(body(asked(OPUS, *conversation))["messages"][1]) == ["text"]
    other = body(
        asked("deepseek/deepseek-v4", *conversation), wire="messages", base_url="http://127.0.0.1:9"
    )
    assert other["messages"][1]["content"][0] == unsigned


def test_thinking_from_before_a_change_stays_away_from_models_that_check_it() -> None:
    """A summary changes everything before what is kept, an edit what comes after its target."""
    blob = json.dumps({"messages": [THOUGHT, {"type": "text", "chars": 4}]})
    thought = (ReasoningPart(text="Hm.", blob=blob, model=OPUS), TextPart(text="Yes."))

    def goes_back(*change: Entry, bound: bool = True) -> list[bool]:
        path = [
            *first_path(),
            AssistantEntry(id=3, parts=thought, model=OPUS),
            UserEntry(id=4, parts=(TextPart(text="Go on."),)),
            AssistantEntry(id=5, parts=thought, model=OPUS),
            *change,
            UserEntry(id=7, parts=(TextPart(text="Go on."),)),
            AssistantEntry(id=8, parts=thought, model=OPUS),
        ]
        request = project(path, ModelTraits(OPUS, bound_reasoning=bound))
        return [
            bool(message.reasoning) for message in request.messages if message.role == "assistant"
        ]

    mask = ContextEditEntry(id=6, target=4, action="mask")
    summary = CompactionEntry(
        id=6, summary="Work.", first_kept_id=4, trigger="manual", tokens_before=9, tokens_after=3
    )
    assert goes_back() == [True, True, True]
    assert goes_back(mask) == [True, False, True]
    assert goes_back(mask, bound=False) == [True, True, True]
    assert goes_back(summary) == [False, True]


def marks(sent: dict[str, Any]) -> list[tuple[str, Any]]:
    blocks = [
        *sent.get("system", ()),
        *(block for turn in sent["messages"] for block in turn["content"]),
    ]
    return [(block["type"], block["cache_control"]) for block in blocks if "cache_control" in block]


def test_the_last_four_marks_stand_and_none_where_they_are_not_taken() -> None:
    conversation = [
        each
        for _ in range(4)
        for each in (say(cache=True), replace(answer(text="Yes."), cache=True))
    ]
    request = asked(
        OPUS, Message("system", (ContentText("You work."),)), *conversation, say(), cache_ttl="1h"
    )
    assert marks(body(request)) == [("text", {"type": "ephemeral", "ttl": "1h"})] * 4
    assert marks(body(request, cache_marks=False)) == []
    assert (
        marks(body(replace(request, messages=request.messages[:3], cache_ttl="5m")))
        == [("text", {"type": "ephemeral"})] * 2
    )


def test_thinking_is_never_marked() -> None:
    assert marks(body(asked(OPUS, say(), replace(answer(THOUGHT), cache=True), say()))) == []


def test_the_users_own_fields_are_laid_over_and_tools_of_the_provider_added() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    options = {"tools": [search], "temperature": 1, "thinking": {"type": "adaptive"}}
    sent = body(asked(OPUS, tools=(GET,)), options=options)
    assert [each["name"] for each in sent["tools"]] == ["get", "web_search"]
    assert (sent["temperature"], sent["thinking"]) == (1, {"type": "adaptive"})


@pytest.mark.parametrize(
    ("first_kept", "roles"), [(None, []), (3, ["assistant"]), (2, ["assistant"])]
)
def test_a_compaction_of_the_providers_stands_before_all_that_is_kept(
    first_kept: int | None, roles: list[str]
) -> None:
    block = {"type": "compaction", "content": "They talked.", "signature": "c2ln"}
    fields = {
        "summary": "By rule.",
        "trigger": "manual",
        "tokens_before": 9,
        "tokens_after": 1,
        "model": OPUS,
    }
    path = [
        UserEntry(id=1, parts=(TextPart(text="Hello."),)),
        UserEntry(id=2, parts=(TextPart(text="More."),)),
        AssistantEntry(id=3, parts=(TextPart(text="Yes."),), model=OPUS),
        CompactionEntry(
            id=4, first_kept_id=first_kept, item=json.dumps({"compacted": [block]}), **fields
        ),
    ]
    call = messages.call(
        project(path, ModelTraits(OPUS)), route_to(OPUS, options={"context_management": {}})
    )

    check(call.body, call.headers)
    first, *rest = call.body["messages"]
    assert first["content"][0] == block
    assert not [text for text in ("By rule.", "Hello.") if text in json.dumps(call.body)]
    assert [turn["role"] for turn in rest] == roles
