"""One odd tool of a server takes nothing else with it: any list is read row by row."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.types import ListToolsResult
from mcp.types.methods import validate_server_result

from tests.model.test_tool_schemas import JSON
from tests.support.thoroughness import examples
from tui_agent.agent.mcp.tool_rows import read_answer, read_rows

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
    problems = read_rows(result)
    validate_server_result("tools/list", version, result)
    read = ListToolsResult.model_validate(result, by_name=False)

    assert any(tool.name == "good tool" for tool in read.tools)
    assert len(read.tools) + len(problems) == len(rows) + 1


def test_what_is_left_out_is_named() -> None:
    result = {"tools": [{"inputSchema": {}}, {"name": "a"}, {"name": "a"}, "x"]}

    assert read_rows(result) == [
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
        read_answer(result)
        validate_server_result("tools/call", "2025-06-18", result)
