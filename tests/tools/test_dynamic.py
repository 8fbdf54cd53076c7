"""A tool whose schema comes from outside: offered as it is, its arguments left to whoever offers it."""

import pytest

from tui_agent.errors import ToolError
from tui_agent.permission import PermissionNeed
from tui_agent.session.entries import ToolSchema
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.base import DynamicTool, RawInput, ToolContext, ToolResult
from tui_agent.tools.registry import builtin_tools, find_tool

SCHEMA = ToolSchema(
    name="tracker_search",
    description="Search issues.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string"}, "description": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
    },
)


class Tracker(DynamicTool):
    def needs(self, arguments: RawInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        return ()

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        return ToolResult("")


TOOL = Tracker(SCHEMA)


def test_arguments_are_passed_on_as_they_came() -> None:
    arguments = parse_arguments(TOOL, '{"query": "a", "description": "b", "limit": null}')
    assert isinstance(arguments, RawInput)
    assert arguments.values == {"query": "a", "description": "b", "limit": None}
    assert TOOL.title(arguments) == "a"
    assert TOOL.title(RawInput(values={"n": 1, "deep": {"x": 2}})) == "n=1, deep={'x': 2}"


def test_arguments_that_are_no_object_are_answered_with_the_fields() -> None:
    with pytest.raises(ToolError, match=r"one JSON object.*query \(string, required\).*limit \(integer\)"):
        parse_arguments(TOOL, "[1]")


def test_a_servers_tool_goes_before_what_another_program_calls_a_tool_so() -> None:
    with pytest.raises(ToolError, match="no tool 'search'"):
        find_tool("search", (*builtin_tools(), TOOL))
    with pytest.raises(ToolError, match="no tool 'shell'"):
        find_tool("shell", [tool for tool in builtin_tools() if tool.name != "bash"])
