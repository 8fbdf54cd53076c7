"""A refused request goes out once more in another form: at most three times, and never twice the same."""

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.test_refusals import WORDS
from tests.support.drawn import drawn
from tests.support.entry_strategies import MODELS, paths
from tests.support.model_client import OPENAI_KEY, ask, collect, host_client
from tests.support.model_script import Recorded
from tests.support.model_server import Fault, ModelServer, Turn, status
from tests.support.request_validator import validate
from tests.support.thoroughness import examples, thorough
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.model.catalog import Catalog
from tui_agent.model.client import ProviderClient
from tui_agent.model.error_body import ErrorBody
from tui_agent.model.forms import (
    MAX_TRIES,
    REMEDIES,
    Refused,
    ServerForm,
    Shape,
    next_shape,
    shaped,
)
from tui_agent.model.learnt import LearntFacts
from tui_agent.model.protocol import Finished, PartLeftOut
from tui_agent.model.refusals import Part, Refusal
from tui_agent.model.route import Router
from tui_agent.model.settings import ModelSettings
from tui_agent.session.entries import ToolSchema

PICTURE = "a" * 64
MODEL = "openai/own"
TOOLS = tuple(
    ToolSchema(
        name=name,
        description=name,
        parameters={"type": "object", "properties": {"q": {"type": "array"}}},
    )
    for name in ("read", "srv_search", "srv_price")
)


def says(role: Any, text: str, **fields: Any) -> Message:
    return Message(role, (ContentText(text),), **fields)


WHOLE = ModelRequest(
    MODEL,
    (
        says("system", "You work.", cache=True),
        says("user", "Directory: /home/me", cache=True),
        Message("user", (ContentText("look"), ImageRef(PICTURE, "image/png"))),
        Message(
            "assistant",
            tool_calls=(RequestToolCall("x" * 50, "read", "{}"),),
            reasoning=('{"reasoning": "hm"}',),
        ),
        says("tool", "done", call_id="x" * 50),
        says("user", "And now?"),
    ),
    tools=TOOLS,
    max_output_tokens=32_000,
    blobs={PICTURE: drawn()},
)
"""A request that has every part that can be refused."""


def client_at(
    server: ModelServer, learnt: LearntFacts | None = None, **fields: Any
) -> ProviderClient:
    models = {MODEL: ModelSettings(base_url=server.openai_url, **fields)}
    return ProviderClient(
        Router(Catalog(models), {"OPENAI_API_KEY": OPENAI_KEY}, models=models), learnt
    )


# -- any sequence of refusals --------------------------------------------------------------------------------

ANSWERS = st.one_of(
    st.sampled_from(WORDS).map(lambda row: (row[1], row[2])),
    st.sampled_from(
        [
            (529, '{"error": {"type": "overloaded_error"}}'),
            (500, ""),
            (400, "no"),
            (401, "no"),
            None,
        ]
    ),
)


@pytest.fixture(scope="module")
def provider() -> Any:
    with ModelServer() as server:
        yield server


@settings(max_examples=examples(90), deadline=None)
@given(st.lists(ANSWERS, max_size=6), st.sampled_from(["chat", "messages", "responses"]))
def test_no_sequence_of_refusals_sends_a_request_often_or_twice_the_same(
    provider: ModelServer, answers: list[tuple[int | None, str] | None], wire: str
) -> None:
    turns = [
        Turn("fine")
        if row is None
        else Turn(fault=Fault("status", status=row[0] or 400, body=row[1].encode()))
        for row in answers
    ]
    provider.play(*turns, Turn("fine"))

    async def ask_once() -> Any:
        client = client_at(provider, wire=wire, vision=True)
        answer = await collect(client, WHOLE)
        await client.aclose()
        return answer

    answer = asyncio.run(ask_once())
    bodies = [request.path + json.dumps(request.json, sort_keys=True) for request in provider.calls]

    assert len(bodies) <= MAX_TRIES
    assert len(set(bodies)) == len(bodies)
    refused = len(bodies) - (answer.error is None)
    told = [event for event in answer.events if isinstance(event, PartLeftOut)]
    assert len(told) == (1 if refused and answer.error is None else 0), (
        "a change of the request is said once"
    )


# -- each part -----------------------------------------------------------------------------------------------


def insisting(part: Part, text: str) -> Any:
    """A server that refuses requests as long as they have a part."""

    def script(request: Recorded) -> Turn:
        body = request.json
        roles = [message["role"] for message in body["messages"]]
        after = [role for role in roles if role != "system"]
        calls = [
            call["id"] for message in body["messages"] for call in message.get("tool_calls", ())
        ]
        tools = [tool["function"]["name"] for tool in body.get("tools", ())]
        has = {
            Part.ROLES: any(
                a == b == "user" or (a, b) == ("tool", "user") for a, b in pairwise(after)
            ),
            Part.SYSTEM: "system" in roles,
            Part.PICTURE: "image_url" in str(body["messages"]),
            Part.PICTURES: "image_url" in str(body["messages"]),
            Part.TOOLS: bool(tools) or "tool" in roles or bool(calls),
            Part.TOOL_COUNT: len(tools) > 1,
            Part.TOOL: "srv_price" in tools,
            Part.CALL_IDS: any(len(call_id) > 40 for call_id in calls),
            Part.REASONING: "reasoning" in body["messages"][3],
            Part.ROOM: body.get("max_tokens", 0) > 8_192,
            Part.FIELD: "stream_options" in body,
            Part.CACHE_MARKS: "cache_control" in str(body["messages"]),
        }
        return status(400, text) if has[part] else Turn("fine")

    return script


INSISTING = [
    (Part.ROLES, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (Part.SYSTEM, "System role not supported"),
    (Part.PICTURE, "Could not process image"),
    (Part.PICTURES, "This model does not support image input"),
    (Part.TOOLS, "registry.ollama.ai/library/gemma:2b does not support tools"),
    (Part.TOOL_COUNT, "Invalid 'tools': array too long. Expected an array with maximum length 1"),
    (Part.TOOL, "Invalid schema for function 'srv_price': array schema missing items"),
    (
        Part.CALL_IDS,
        "Invalid 'tool_calls[0].id': string too long. Expected a string with maximum length 40",
    ),
    (Part.REASONING, "Unknown field: messages.3.reasoning"),
    (Part.ROOM, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
    (Part.FIELD, "Unknown parameter: 'stream_options'."),
    (Part.CACHE_MARKS, "messages.0.content.0.cache_control: Extra inputs are not permitted"),
]


@pytest.mark.parametrize(("part", "text"), INSISTING)
async def test_a_refused_part_goes_the_work_goes_on_and_what_is_the_servers_is_remembered(
    provider: ModelServer, tmp_path: Path, part: Part, text: str
) -> None:
    learnt = tmp_path / "learnt.json"
    provider.play_function(insisting(part, text))
    client = client_at(provider, LearntFacts(learnt), vision=True, cache_marks=True)
    first = await collect(client, WHOLE)
    sent = len(provider.calls)
    await client.aclose()
    again = client_at(provider, LearntFacts(learnt), vision=True, cache_marks=True)
    second = await collect(again, WHOLE)
    await again.aclose()

    assert (first.text, second.text) == ("fine", "fine")
    assert 2 <= sent <= MAX_TRIES
    is_kept = REMEDIES[part].kept == "server" or part is Part.REASONING
    assert len(provider.calls) == sent + (1 if is_kept else sent)
    (told,) = [event for event in first.events if isinstance(event, PartLeftOut)]
    assert all(message.endswith(".") for message in told.messages)
    if part is Part.TOOL:
        assert "the schema of srv_price" in told.messages[0]
    assert told.blobs == (frozenset({PICTURE}) if part is Part.PICTURE else frozenset())


async def test_of_too_many_tools_those_that_were_called_and_the_first_stay(
    provider: ModelServer,
) -> None:
    many = tuple(ToolSchema(name=f"t{n}", description="", parameters={}) for n in range(140))
    request = replace(WHOLE, tools=(*many, TOOLS[0]))
    words = (
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 141"
    )
    provider.play(status(400, words), Turn("fine"))
    client = client_at(provider)
    answer = await collect(client, request)
    await client.aclose()

    names = [tool["function"]["name"] for tool in provider.calls[-1].json["tools"]]
    assert names == [*(f"t{n}" for n in range(127)), "read"]
    (told,) = [event for event in answer.events if isinstance(event, PartLeftOut)]
    assert "Left out: t127, t128, t129, t130, t131 and 8 more." in told.messages[0]


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        ("Too many images in request. Max is 3.", 1),
        ("Could not process image", 2),
    ],
)
async def test_of_several_pictures_the_oldest_go_first(
    provider: ModelServer, words: str, left_out: int
) -> None:
    names = [letter * 64 for letter in "abcd"]
    content = (ContentText("see"), *(ImageRef(name, "image/png") for name in names))
    blobs = {name: drawn(size=(3, 3 + at)) for at, name in enumerate(names)}
    request = replace(WHOLE, messages=(Message("user", content),), blobs=blobs)
    provider.play(status(400, words), Turn("fine"))
    client = client_at(provider, vision=True)
    answer = await collect(client, request)
    await client.aclose()

    (told,) = [event for event in answer.events if isinstance(event, PartLeftOut)]
    assert told.blobs == frozenset(names[:left_out])


async def test_a_picture_whose_place_is_named_goes_alone(provider: ModelServer) -> None:
    other = "b" * 64
    place = "messages[2].content[3].image_url"
    content = (
        ContentText("two"),
        ImageRef(other, "image/png"),
        ContentText("and"),
        ImageRef(PICTURE, "image/png"),
    )
    request = replace(
        WHOLE,
        messages=(*WHOLE.messages[:2], Message("user", content)),
        blobs={PICTURE: drawn(), other: drawn(size=(3, 3))},
    )
    provider.play(status(400, f"Invalid image at {place}"), Turn("fine"))
    client = client_at(provider, vision=True)
    answer = await collect(client, request)
    await client.aclose()

    (told,) = [event for event in answer.events if isinstance(event, PartLeftOut)]
    assert told.blobs == frozenset({PICTURE})
    assert str(provider.calls[-1].json).count("image_url'}") == 0
    assert str(provider.calls[-1].json).count("'type': 'image_url'") == 1


async def test_a_picture_goes_out_as_its_server_takes_it_and_one_that_cannot_be_read_is_left_out(
    provider: ModelServer,
) -> None:
    webp, page = "b" * 64, "c" * 64
    content = (ContentText("see"), ImageRef(webp, "image/png"), ImageRef(page, "image/png"))
    blobs = {webp: drawn("WEBP"), page: b"<html>Not found</html>"}
    request = replace(WHOLE, messages=(Message("user", content),), blobs=blobs)
    provider.play(Turn("fine"))
    client = client_at(provider, vision=True)
    answer = await collect(client, request)
    await client.aclose()

    (told,) = [event for event in answer.events if isinstance(event, PartLeftOut)]
    assert told.messages == ("A picture can't be sent because it is a web page.",)
    assert told.blobs == frozenset({page})
    _text, sent, note = provider.calls[0].json["messages"][0]["content"]
    assert sent["image_url"]["url"].startswith("data:image/png;base64,iVBOR"), (
        "llama.cpp reads no WebP"
    )
    assert note["type"] == "text"


async def test_a_refusal_that_holds_for_every_form_is_told_and_nothing_is_remembered(
    provider: ModelServer,
) -> None:
    facts = LearntFacts()
    provider.play(*[status(400, "Conversation roles must alternate")] * 9)
    client = client_at(provider, facts, vision=True)
    answer = await collect(client, WHOLE)
    await client.aclose()

    assert "must alternate" in answer.failure.message
    assert len(provider.calls) <= MAX_TRIES
    assert facts.models.forms == {}


async def test_a_server_of_ones_own_gets_the_opening_and_the_first_message_as_one_turn(
    provider: ModelServer,
) -> None:
    models = {"lm_studio/devstral": ModelSettings(base_url=provider.openai_url)}
    client = ProviderClient(Router(Catalog(models), {}, models=models))
    provider.play(Turn("fine"))
    await collect(client, replace(WHOLE, model="lm_studio/devstral", messages=WHOLE.messages[:3]))
    await client.aclose()

    assert [message["role"] for message in provider.calls[0].json["messages"]] == ["system", "user"]


async def test_litellm_is_told_of_a_refusal_too(server: ModelServer) -> None:
    client = host_client(server)
    server.play(status(500, "Conversation roles must alternate user/assistant"), Turn("fine"))
    answer = await collect(
        client, ask("openai/gpt-4o-2024-11-20", messages=WHOLE.messages[1:3][:1] * 2)
    )
    await client.aclose()

    assert (answer.error, answer.text) == (None, "fine")
    assert [message["role"] for message in server.calls[-1].json["messages"]] == ["user"]


# -- forms of any path ---------------------------------------------------------------------------------------

FORMS = st.builds(
    ServerForm,
    roles=st.sampled_from(["apart", "joined", "alternating"]),
    system=st.booleans(),
    tools=st.booleans(),
    tool_count=st.integers(0, 3),
    pictures=st.booleans(),
    takes_reasoning=st.booleans(),
    call_id_chars=st.sampled_from([0, 9, 40, 64]),
)


@given(paths(), FORMS, st.sampled_from(MODELS))
@thorough
def test_any_path_in_any_form_is_a_request_that_is_accepted(
    path: Any, form: ServerForm, model: str
) -> None:
    request = shaped(project(path, ModelTraits(model)), Shape(form))

    validate(
        request, vision=form.pictures, alternating=form.roles == "alternating", foreign_ids=True
    )
    ids = [call.call_id for message in request.messages for call in message.tool_calls]
    if form.call_id_chars == 9:
        assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)
    elif form.call_id_chars:
        assert all(len(call_id) <= form.call_id_chars for call_id in ids)
    if not form.system:
        assert all(message.role != "system" for message in request.messages)


def test_the_same_short_ids_come_again_and_those_that_fit_stay() -> None:
    calls = tuple(
        RequestToolCall(call_id, "read", "{}") for call_id in ("call_1_very_long", "abcDEF123")
    )
    results = tuple(says("tool", "x", call_id=call.call_id) for call in calls)
    request = ModelRequest(
        MODEL, (says("user", "hi"), Message("assistant", tool_calls=calls), *results)
    )
    longer = replace(
        request, messages=(*request.messages, says("assistant", "done"), says("user", "on"))
    )

    sent, later = (
        shaped(request, Shape(), call_id_chars=9),
        shaped(longer, Shape(), call_id_chars=9),
    )
    ids = [call.call_id for call in sent.messages[1].tool_calls]
    assert ids[1] == "abcDEF123"
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)
    assert [message.call_id for message in sent.messages[2:]] == ids
    assert later.messages[: len(sent.messages)] == sent.messages


def test_a_simplified_tool_keeps_the_types_of_its_parameters() -> None:
    properties = {
        "count": {"type": ["integer", "null"], "minimum": 1},
        "names": {"type": "array", "items": {"type": "string", "pattern": "^a"}},
        "rows": {"type": "array"},
        "options": {"type": "object"},
    }
    tool = ToolSchema(name="t", description="d", parameters={"properties": properties})
    request = ModelRequest(MODEL, (says("user", "hi"),), tools=(tool, *WHOLE.tools))
    shape = next_shape(Refused(request, Shape(), {}, ErrorBody("")), Refusal(Part.TOOL, ("t",)))
    assert shape is not None
    sent = shaped(request, shape).tools[0].parameters["properties"]
    assert sent == {
        "count": {"type": "integer"},
        "names": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "string"},
    }


def test_an_id_that_the_model_made_like_a_short_one_is_not_given_twice() -> None:
    named = ("call_1_very_long", "c00000002", "call_2_very_long", "c00000000")
    calls = tuple(RequestToolCall(call_id, "read", "{}") for call_id in named)
    request = ModelRequest(MODEL, (says("user", "hi"), Message("assistant", tool_calls=calls)))
    sent = shaped(request, Shape(), call_id_chars=9)
    ids = [call.call_id for call in sent.messages[1].tool_calls]
    assert len({*ids}) == len(named)
    assert all(len(call_id) == 9 for call_id in ids)


def test_a_server_that_wants_alternating_roles_gets_an_answer_between_result_and_user() -> None:
    call = RequestToolCall("a", "read", "{}")
    path = (says("user", "hello"), says("user", "again"), Message("assistant", tool_calls=(call,)),
            says("tool", "data", call_id="a"), says("user", "and"))  # fmt: skip
    sent = shaped(ModelRequest(MODEL, path), Shape(ServerForm(roles="alternating")))

    assert [(message.role, message.text) for message in sent.messages] == [
        ("user", "hello\n\nagain"), ("assistant", ""), ("tool", "data"), ("assistant", "[…]"), ("user", "and"),
    ]  # fmt: skip


# -- the end of an answer ------------------------------------------------------------------------------------


UNMARKED = Turn(
    fault=Fault(
        "status", status=200, body=b'data: {"choices": [{"delta": {"content": "half"}}]}\n\n'
    )
)


async def ends_of(client: ProviderClient, count: int) -> list[str]:
    """Return the finish reasons of some answers, or the messages of their errors."""
    ends = []
    for _ in range(count):
        answer = await collect(client, WHOLE)
        if answer.error is not None:
            ends.append(f"{answer.error.kind}: {answer.error.message}")
            continue
        assert not any(isinstance(event, PartLeftOut) for event in answer.events)
        ends += [event.reason for event in answer.events if isinstance(event, Finished)]
    return ends


async def test_a_server_that_never_marks_ends_is_believed_after_its_first_answer(
    provider: ModelServer, tmp_path: Path
) -> None:
    provider.play(UNMARKED, UNMARKED, UNMARKED)
    client = client_at(provider, LearntFacts(tmp_path / "learnt.json"))
    assert await ends_of(client, 3) == ["unmarked", "stop", "stop"]
    await client.aclose()


async def test_an_answer_that_ends_early_fails_where_the_server_marks_ends(
    provider: ModelServer, tmp_path: Path
) -> None:
    whole = Turn("whole")
    provider.play(whole, UNMARKED, whole, UNMARKED, UNMARKED, UNMARKED, UNMARKED, whole, UNMARKED)
    client = client_at(provider, LearntFacts(tmp_path / "learnt.json"))
    early = f"network: 127.0.0.1:{provider.port} ended the answer early."
    ends = await ends_of(client, 9)
    await client.aclose()
    assert ends == ["stop", early, "stop", early, early, "unmarked", "unmarked", "stop", early]
