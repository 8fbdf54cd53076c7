"""One odd tool of a server takes nothing else with it: any list is read row by row."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.types import JSONRPCError, JSONRPCResponse, ListToolsResult, jsonrpc_message_adapter
from mcp.types.methods import validate_server_result

from tests.model.test_tool_schemas import JSON
from tests.support.thoroughness import examples
from tui_agent.agent.mcp.leniency import (
    repair_introduction,
    repair_line,
    repair_page,
    repair_tool_list,
    repair_tool_result,
)

FIELDS = (
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "_meta",
    "execution",
    "icons",
)
ROWS = st.one_of(
    JSON,
    st.dictionaries(st.sampled_from(FIELDS), JSON),
    st.builds(
        lambda name, row: {**row, "name": name},
        st.text(),
        st.dictionaries(st.sampled_from(FIELDS), JSON),
    ),
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(ROWS, max_size=4),
    st.sampled_from(["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"]),
)
def test_any_list_is_one_that_the_protocol_takes(rows: list[Any], version: str) -> None:
    good = {
        "name": "good tool",
        "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
    }
    result: dict[str, Any] = {"tools": [*rows, good]}
    if version == "2026-07-28":
        result |= {"resultType": "complete", "ttlMs": 1, "cacheScope": "private"}
    problems = repair_tool_list(result)
    validate_server_result("tools/list", version, result)
    read = ListToolsResult.model_validate(result, by_name=False)

    assert any(tool.name == "good tool" for tool in read.tools)
    assert len(read.tools) + len(problems) == len(rows) + 1


def test_what_is_left_out_is_named() -> None:
    result = {"tools": [{"inputSchema": {}}, {"name": "a"}, {"name": "a"}, "x"]}

    assert repair_tool_list(result) == [
        "Tool 1 has no name and is left out.",
        "There are two tools “a”; the second one is left out.",
        "Tool 4 has no name and is left out.",
    ]
    assert result["tools"] == [{"name": "a", "inputSchema": {"type": "object"}}]


def test_a_result_without_content_is_one_that_the_protocol_takes() -> None:
    for result in (
        {"structuredContent": {"k": 1}},
        {"content": "done"},
        {"content": None, "structuredContent": {}},
    ):
        repair_tool_result(result)
        validate_server_result("tools/call", "2025-06-18", result)


def test_a_field_that_is_null_is_one_that_is_left_out() -> None:
    page = {"uri": "a:b", "mimeType": None, "text": "words", "blob": None}
    picture = {"uri": "a:c", "mimeType": "image/png", "text": None, "blob": "aGk="}
    result = {"content": [{"type": "resource", "resource": given} for given in (page, picture)]}
    repair_tool_result(result)
    assert [block.get("resource") for block in result["content"]] == [
        {"uri": "a:b", "text": "words"},
        {"uri": "a:c", "mimeType": "image/png", "blob": "aGk="},
    ]


@pytest.mark.parametrize(
    ("written", "is_error"), [(True, True), ("true", True), (1, True), ("false", False), (0, False)]
)
def test_the_error_flag_may_be_text(written: object, is_error: bool) -> None:
    result = {"content": "x", "isError": written}
    repair_tool_result(result)
    assert result["isError"] is is_error


BLOCKS = st.one_of(
    JSON,
    st.dictionaries(
        st.sampled_from(["type", "text", "data", "mimeType", "uri", "name", "resource"]),
        st.one_of(st.sampled_from(["text", "image", "resource", "resource_link", "audio"]), JSON),
    ),
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.one_of(JSON, st.lists(BLOCKS, max_size=3)),
    st.one_of(st.none(), JSON),
    st.sampled_from(["content", "toolResult"]),
)
def test_any_content_of_a_result_is_one_that_the_protocol_takes(
    content: Any, structured: Any, field: str
) -> None:
    """And what stands beside it stays."""
    said = {"type": "text", "text": "WORDS"}
    result = {field: [*content, said] if isinstance(content, list) else content}
    if structured is not None:
        result["structuredContent"] = structured
    repair_tool_result(result)
    validate_server_result("tools/call", "2025-06-18", result)
    if isinstance(content, list):
        assert said in result["content"]


@given(st.one_of(JSON, st.dictionaries(st.text(), JSON)), JSON, JSON)
def test_whatever_a_server_says_of_itself_it_is_there(able: Any, about: Any, words: Any) -> None:
    result = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"extra": able},
        "serverInfo": about,
        "instructions": words,
    }
    repair_introduction(result)
    validate_server_result("initialize", "2025-06-18", result)
    spoilt = {"protocolVersion": "2025-06-18", "capabilities": able}
    repair_introduction(spoilt)
    validate_server_result("initialize", "2025-06-18", spoilt)


def test_a_line_that_the_sdk_cannot_read_is_a_message_all_the_same() -> None:
    answer = '{"id": 3, "result": {"text": "half \\ud83d of it"}}'
    (read,) = repair_line(answer)
    assert read == {"id": 3, "result": {"text": "half \ufffd of it"}, "jsonrpc": "2.0"}
    assert repair_line(f"[{answer}, {answer}]") == [read, read]
    deep = '{"a":' * 300 + "1" + "}" * 300
    assert repair_line(f'{{"jsonrpc": "2.0", "id": 3, "result": {deep}}}')
    for noise in ("Server started", "[1, 2]", '{"level": "info"}', '{"id": 3}', 7, None, "1e999"):
        assert repair_line(noise) == []


@given(st.sampled_from(["result", "error"]), JSON)
def test_an_answer_of_any_form_reaches_whoever_asked(field: str, value: Any) -> None:
    (read,) = repair_line({"id": 3, field: value})
    if "result" in read:
        repair_tool_result(read["result"])
    message = jsonrpc_message_adapter.validate_python(read, by_name=False)
    assert isinstance(message, JSONRPCResponse | JSONRPCError)
    assert message.id == 3


@pytest.mark.parametrize(
    "odd",
    [{"id": 5.0}, {"id": 5, "jsonrpc": "1.0"}, {"id": 5, "jsonrpc": None}, {"id": float("inf")}],
)
def test_an_odd_number_or_version_ends_no_connection(odd: dict[str, Any]) -> None:
    (read,) = repair_line({"result": {}, **odd})
    assert read["jsonrpc"] == "2.0"
    assert read["id"] in {5, float("inf")}


def test_what_an_odd_error_says_is_kept() -> None:
    (read,) = repair_line({"id": 3.0, "error": {"message": "no such table", "data": [1]}})
    assert read["id"] == 3
    assert read["error"] == {"code": -32603, "message": "no such table", "data": [1]}
    (bare,) = repair_line({"id": 3, "error": "no such table", "result": None})
    assert "no such table" in bare["error"]["message"]


def test_tools_under_their_names_are_tools_and_none_are_none() -> None:
    result = {"tools": {"look": {"description": "Looks."}}, "nextCursor": 2}
    assert repair_tool_list(result) == []
    repair_page(result)
    validate_server_result("tools/list", "2025-06-18", result)
    assert result["tools"][0]["name"] == "look"
    assert result["nextCursor"] == "2"
    for nothing in (None, {}, "none"):
        empty = {"tools": nothing, "nextCursor": [1]}
        assert repair_tool_list(empty) == []
        repair_page(empty)
        assert empty == {"tools": []}


def test_a_schema_without_end_takes_nothing_else_with_it() -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"type": "object", "properties": {"a": deep}}
    result = {"tools": [{"name": "deep", "inputSchema": deep}]}
    repair_tool_list(result)
    assert result["tools"] == [{"name": "deep", "inputSchema": {"type": "object"}}]
