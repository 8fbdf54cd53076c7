"""The providers' own search: how it is asked for, and the pages that come of it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.wires.runs import encoded, spoil
from tests.model.wires.test_messages_answers import begin, finish, start, stop, text
from tests.support.responses_wire import message, response, stream
from tests.support.thoroughness import examples
from tests.support.wire_rounds import READ, Heard, read, route_to
from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.model.protocol import PageFound
from tui_agent.model.wires import messages, responses
from tui_agent.model.wires.wire import WireFailure

CLAUDE = "anthropic/claude-sonnet-4-5"
GPT = "openai/gpt-5.4"
WIRES = {CLAUDE: messages, GPT: responses}
A_PAGE = "https://a.example/x"
B_PAGE = "https://b.example/y"


def asking(model: str, hosts: tuple[str, ...] | None = ()) -> ModelRequest:
    said = Message("user", (ContentText("Search for trees."),))
    return ModelRequest(model, (said,), search_hosts=hosts)


def body(model: str, hosts: tuple[str, ...] | None = (), **more: Any) -> Any:
    return WIRES[model].call(asking(model, hosts), route_to(model, **more)).body


def heard(model: str, events: Sequence[Mapping[str, Any]], **fields: Any) -> Heard:
    reader = WIRES[model].reader(asking(model, **fields), route_to(model))
    return read(reader, encoded([dict(event) for event in events]))


def claude_events() -> list[Any]:
    used = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "tree"}}
    rows = [
        {
            "type": "web_search_result",
            "url": A_PAGE,
            "title": "About A",
            "encrypted_content": "EqgfCio=",
            "page_age": "April 30, 2025",
        },
        {"type": "web_search_result", "url": B_PAGE, "title": "About B"},
    ]
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": rows}
    cited = {
        "type": "web_search_result_location",
        "url": B_PAGE,
        "title": "About B",
        "cited_text": "Trees grow.",
    }
    citation = {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "citations_delta", "citation": cited},
    }
    said = text("They do.", 2)
    blocks = [start(used, 0), stop(0), start(found, 1), stop(1), *said[:2], citation, said[2]]
    return [begin(), *blocks, *finish()]


def gpt_events() -> list[Any]:
    words = f"- Trees grow ([About A]({A_PAGE})).\n- They fall ([About B]({B_PAGE})) at times."
    marks = [words.index("(["), words.index("([", 30)]
    notes = [
        {
            "type": "url_citation",
            "start_index": at,
            "end_index": words.index("))", at) + 2,
            "url": url,
            "title": title,
        }
        for at, url, title in zip(marks, (A_PAGE, B_PAGE), ("About A", "About B"), strict=True)
    ]
    call = {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "trees"},
    }
    return list(stream(response([call, message(2, words, annotations=notes)])))


def test_the_search_is_the_only_tool_of_the_request() -> None:
    plain = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    assert body(CLAUDE)["tools"] == [plain]
    assert body(CLAUDE, ("a.org",))["tools"] == [{**plain, "allowed_domains": ["a.org"]}]
    assert body(GPT)["tools"] == [{"type": "web_search"}]
    filtered = {"type": "web_search", "filters": {"allowed_domains": ["a.org"]}}
    assert body(GPT, ("a.org",))["tools"] == [filtered]
    for model in WIRES:
        own = {"options": {"tools": [{"type": "web_search", "name": "web_search"}]}}
        assert body(model, **own)["tools"] == body(model)["tools"]
        assert "tools" not in body(model, None)


def test_pages_come_from_results_and_from_what_is_cited() -> None:
    assert heard(CLAUDE, claude_events()).pages == [
        PageFound(A_PAGE, "About A", day="April 30, 2025"),
        PageFound(B_PAGE, "About B"),
        PageFound(B_PAGE, "About B", "Trees grow."),
    ]
    assert heard(GPT, gpt_events()).pages == [
        PageFound(A_PAGE, "About A", "Trees grow"),
        PageFound(B_PAGE, "About B", "They fall"),
    ]


@pytest.mark.parametrize(
    ("model", "events"), [(CLAUDE, claude_events()), (GPT, gpt_events())], ids=WIRES
)
def test_a_search_that_was_not_asked_for_changes_nothing(model: str, events: Any) -> None:
    plain = heard(model, events, hosts=None)
    searching = heard(model, events)
    assert plain.pages == []
    assert [event for event in searching.events if not isinstance(event, PageFound)] == list(
        plain.events
    )


def test_a_search_that_failed_is_told_in_words() -> None:
    failed = {"type": "web_search_tool_result_error", "error_code": "too_many_requests"}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": failed}
    answer = heard(CLAUDE, [begin(), start(found), stop(), *finish()])
    assert answer.pages == []
    assert "too_many_requests" in answer.text


def test_a_search_that_ends_as_nothing_is_left_out() -> None:
    events = json.loads(json.dumps(gpt_events()))
    for event in events:
        if event["type"] == "response.output_item.done" and event["item"]["id"] == "ws_1":
            event["item"] = {}
    assert heard(GPT, events).text == heard(GPT, gpt_events()).text


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_whatever_a_provider_sends_is_read_or_refused(data: st.DataObject) -> None:
    model, made = data.draw(st.sampled_from([(CLAUDE, claude_events), (GPT, gpt_events)]))
    events = json.loads(json.dumps(made()))
    spoil(events, data)
    try:
        answer = heard(model, events)
    except WireFailure:
        return
    for page in answer.pages:
        assert page.url
        assert all(isinstance(each, str) for each in (page.title, page.text, page.day))


def test_only_tools_of_the_program_are_sent_where_nothing_is_searched() -> None:
    request = ModelRequest(CLAUDE, asking(CLAUDE).messages, tools=(READ,))
    assert [tool["name"] for tool in messages.call(request, route_to(CLAUDE)).body["tools"]] == [
        "read"
    ]
