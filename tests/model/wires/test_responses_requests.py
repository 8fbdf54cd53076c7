"""What is posted to OpenAI's Responses: any conversation makes a body that a strict server takes."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.model.wires.responses_checker import check
from tests.model.wires.runs import MODEL, encoded, read, route, spoil
from tests.support.entry_strategies import Growing, arguments, images, texts
from tests.support.responses_wire import Item, function_call, message, reasoning, response, stream
from tests.support.thoroughness import examples
from tests.support.wire_rounds import Heard
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.model.wires import responses
from tui_agent.model.wires.wire import WireFailure
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    AssistantEntry,
    ContextEditEntry,
    ModelChangeEntry,
    PruneEntry,
    ReasoningPart,
    SystemEntry,
    TextPart,
    ToolResultEntry,
    ToolSchema,
    ToolStatus,
    UserEntry,
)

IMAGE = b"\x89PNG\r\n\x1a\n"
BLOBS = {"a" * 64: IMAGE}
"""One of the two images is lost."""
READ = ToolSchema(name="read", description="Read a file", parameters={"type": "object"})

SOURCE = {
    "type": "url_citation",
    "url": "https://example.org/a",
    "title": "A",
    "start_index": 0,
    "end_index": 1,
}
KINDS = ("reasoning",) * 3 + ("message",) * 3 + ("function_call",) * 3 + ("hosted", "unknown")


@dataclass
class Talk:
    """A conversation being drawn: its entries, and what the server gave."""

    path: Growing = field(default_factory=Growing)
    given: list[list[Item]] = field(default_factory=list)
    number: int = 0

    def next(self) -> int:
        self.number += 1
        return self.number

    def request(self, model: str = MODEL, *, until: int | None = None) -> ModelRequest:
        request = project(self.path.entries[:until], ModelTraits(model))
        request.blobs.update(BLOBS)
        return request


@st.composite
def items(draw: st.DrawFn, talk: Talk) -> list[Item]:
    """Draw the items of one answer."""
    found: list[Item] = []
    for kind in draw(st.lists(st.sampled_from(KINDS), max_size=6)):
        number = talk.next()
        match kind:
            case "reasoning":
                encrypted = draw(st.sampled_from(["gAAAA+/=\u00e9", "gAAAB", "", None]))
                summary = draw(st.lists(st.text(min_size=1, max_size=9), max_size=2))
                found.append(reasoning(number, encrypted=encrypted, summary=summary))
            case "message":
                notes = draw(st.sampled_from([(), (), (SOURCE,)]))
                phase = draw(st.sampled_from([None, "commentary", "final_answer"]))
                text, refusal = draw(texts), draw(st.sampled_from(["", "", "", "No."]))
                found.append(message(number, text, phase=phase, annotations=notes, refusal=refusal))
            case "function_call":
                call_id = draw(st.sampled_from([None, None, "call_1", "", "call é"]))
                tool = draw(st.sampled_from(["read", "weird tool"]))
                found.append(function_call(number, tool, draw(arguments), call_id))
            case "hosted":
                found.append(
                    {
                        "id": f"ws_{number}",
                        "type": "web_search_call",
                        "status": "completed",
                        "action": {},
                    }
                )
            case _:
                unknown = {"type": "custom_tool_call", "call_id": "x", "input": "rm", "name": "y"}
                found.append({"id": f"ctc_{number}", **unknown})
    return found


@st.composite
def talks(draw: st.DrawFn, *, breaking: bool = True) -> Talk:
    """Draw a conversation as the program holds it: answers are what the reader made of the server's bytes."""
    talk = Talk()
    if draw(st.booleans()):
        talk.path.append(
            SystemEntry,
            blocks=("You are an agent.", "Directory: /home/me"),
            tools=(READ,),
            model=MODEL,
        )
    for _ in range(draw(st.integers(1, 4))):
        parts = tuple(
            draw(
                st.lists(st.one_of(st.builds(TextPart, text=texts), images), min_size=1, max_size=2)
            )
        )
        talk.path.append(UserEntry, parts=(TextPart(text="go on"), *parts))
        _answer(draw, talk)
        if breaking and draw(st.integers(0, 3)) == 0:
            target = draw(st.integers(1, len(talk.path.entries)))
            breaks: list[tuple[Any, dict[str, Any]]] = [
                (PruneEntry, {"targets": (target,), "tokens_freed": 1, "reason": "pressure"}),
                (ContextEditEntry, {"target": target, "action": "drop"}),
                (ContextEditEntry, {"target": target, "action": "mask"}),
                (ModelChangeEntry, {"model": MODEL}),
            ]
            kind, values = draw(st.sampled_from(breaks))
            talk.path.append(kind, **values)
    talk.path.append(UserEntry, parts=(TextPart(text="and now"),))
    return talk


def _answer(draw: st.DrawFn, talk: Talk) -> None:
    given = draw(items(talk))
    reason = draw(st.sampled_from([None, None, None, "max_output_tokens"]))
    end = response(given, status="incomplete" if reason else "completed", reason=reason)
    events = stream(end, pieces=draw(st.integers(1, 3)))
    cut = draw(st.one_of(st.none(), st.none(), st.integers(0, len(events) - 1)))
    talk.given.append(given)
    if cut is not None:
        _cut_short(talk, events[:cut])
        return
    heard = read(encoded(events), talk.request())
    talk.path.entries.append(heard.entry(MODEL, len(talk.path.entries) + 1))
    for call in heard.calls:
        if draw(st.integers(0, 5)):
            shown = tuple(draw(st.lists(images, max_size=1)))
            fields = {
                "status": draw(st.sampled_from(ToolStatus)),
                "output": draw(texts),
                "attachments": shown,
            }
            talk.path.append(ToolResultEntry, call_id=call.call_id, tool=call.tool, **fields)


def _cut_short(talk: Talk, events: list[Item]) -> None:
    """Keep of an answer that was interrupted what the program does: what had come, and nothing to send back."""
    reader = responses.reader(talk.request(), route())
    heard = Heard(
        tuple(event for one in events for event in reader.feed(one["type"], json.dumps(one)))
    )
    parts: list[Any] = [ReasoningPart(text=heard.reasoning, model=MODEL)] if heard.reasoning else []
    parts += [TextPart(text=heard.text)] if heard.text else []
    talk.path.append(
        AssistantEntry, parts=tuple(parts), model=MODEL, interrupted=True, finish="interrupted"
    )


LOOSE = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@LOOSE
@given(talks(), st.sampled_from(["openai/gpt-5.5", "xai/grok-4.3", "lm_studio/qwen3"]))
def test_any_conversation_makes_a_request_a_strict_server_takes(talk: Talk, other: str) -> None:
    check(responses.call(talk.request(), route()).body, talk.given)
    without = responses.call(talk.request(), route(), with_reasoning=False).body
    check(without, talk.given)
    assert not any("id" in item for item in without["input"])
    assert "include" not in without
    assert "summary" not in without.get("reasoning", {})
    elsewhere = responses.call(talk.request(other), route(other)).body
    check(elsewhere, talk.given)
    assert not any("id" in item or "phase" in item for item in elsewhere["input"])


@LOOSE
@given(talks(breaking=False), st.data())
def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter(
    talk: Talk, data: st.DataObject
) -> None:
    users = [at for at, entry in enumerate(talk.path.entries) if entry.kind == "user"]
    until = data.draw(st.sampled_from(users)) + 1
    longer = responses.call(talk.request(), route()).body
    shorter = responses.call(talk.request(until=until), route()).body

    assert json.dumps(longer["input"]).startswith(json.dumps(shorter["input"])[:-1])
    assert {**longer, "input": 0} == {**shorter, "input": 0}
    assert json.dumps(longer) == json.dumps(responses.call(talk.request(), route()).body)


@pytest.mark.parametrize(
    ("model", "known", "thinks"),
    [(MODEL, True, True), (MODEL, False, True), ("openai/gpt-4.1", False, False)],
)
@pytest.mark.parametrize("effort", [None, *Effort])
def test_whatever_is_asked_for_the_fields_are_allowed(
    model: str, known: bool, thinks: bool, effort: Effort | None
) -> None:
    said = (Message("user", (ContentText("hi"),)),)
    request = ModelRequest(
        model,
        said,
        (READ,),
        max_output_tokens=1,
        tool_choice="none",
        effort=effort,
        session="s" * 80,
    )
    body = responses.call(request, route(model, reasoning=known)).body

    check(body)
    assert ("include" in body) is thinks
    assert body.get("reasoning", {}).get("effort") in {
        "none",
        "minimal",
        "low",
        "medium",
        "high",
        "xhigh",
        None,
    }


@LOOSE
@given(st.data())
def test_events_with_anything_in_them_break_nothing_but_the_answer(data: st.DataObject) -> None:
    talk = Talk()
    talk.path.append(UserEntry, parts=(TextPart(text="hello"),))
    events = stream(response(data.draw(items(talk)), usage={"input_tokens": 5, "output_tokens": 2}))
    spoil(events, data)

    try:
        heard = read(
            b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events), talk.request()
        )
    except WireFailure:
        return
    talk.path.entries.append(heard.entry(MODEL, 2))
    talk.path.append(UserEntry, parts=(TextPart(text="go on"),))
    json.dumps(responses.call(talk.request(), route()).body)
