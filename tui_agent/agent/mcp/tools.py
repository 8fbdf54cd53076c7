"""Defines the MCP servers' tools for the model: single tools, and one tool that replaces many.

``hub`` decides which of them are offered.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tui_agent.agent.mcp.records import McpError, ToolInfo
from tui_agent.errors import ToolError
from tui_agent.json_text import as_lines, loads
from tui_agent.lazy import LazyPattern
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.safe_text import one_line
from tui_agent.session.entries import ToolSchema
from tui_agent.tools.base import (
    DynamicTool,
    FreeTool,
    RawInput,
    Tool,
    ToolContext,
    ToolInput,
    ToolResult,
)
from tui_agent.tools.outputs import FILTER_OUTPUT, Output, finish

if TYPE_CHECKING:
    from tui_agent.agent.mcp.server import McpServer

SEARCH_TOOL = "mcp"
"""Name of the tool that lists and calls other tools."""
MAX_SEARCH_RESULTS = 8
"""Maximum number of tools that a search by words returns."""
MAX_NAMES = 100
"""Maximum number of tool names that are listed when a search finds no tools."""
MAX_LINE_CHARS = 90
"""Maximum characters of a tool's description in the list of tools."""

ListDetail = Literal["lines", "names", "numbers"]
"""How detailed a list of tools is: names and descriptions, only names, or the number of tools per
server."""

_WORD = LazyPattern(r"[a-z0-9]+")


class McpTool(DynamicTool):
    """One tool of an MCP server, as it is offered to the model.

    ``name`` is unique among all servers' tools; ``info.name`` is the tool's name on its server.
    """

    def __init__(self, name: str, server: McpServer, info: ToolInfo) -> None:
        super().__init__(
            ToolSchema(name=name, description=info.description, parameters=info.parameters)
        )
        self.read_only = info.read_only
        self.server = server
        self.info = info

    @property
    def is_on(self) -> bool:
        """Whether the user's settings offer the tool to the model.

        This may change after the model has seen the tool.
        """
        return self.server.spec.settings.offers(self.info.name)

    def needs(self, arguments: RawInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        del context
        if not self.is_on:
            raise ToolError(f"The user turned {self.name} off. Continue without it.")
        called = {"server": self.server.name, "tool": self.info.name}
        detail = "\n".join(filter(None, [as_lines(called), as_lines(arguments.values)]))
        return (PermissionNeed(Permission.MCP, self.name, detail, aliases=(self.server.name,)),)

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        from tui_agent.agent.mcp.content import Reader

        reader = Reader(context.put_blob, vision=context.vision)
        try:
            content = await self.server.connection().call(
                self.info.name, arguments.values, reader, context.report
            )
        except McpError as error:
            raise ToolError(str(error)) from None
        output = Output(
            content.text or ("" if content.images else "(no output)"),
            title=self.title(arguments),
            keep="ends",
            cut_hint=FILTER_OUTPUT,
            is_error=content.is_error,
            attachments=content.images,
        )
        return await finish(output, context)


class McpSearchTool(DynamicTool, FreeTool[RawInput]):
    """A tool with which the model finds and calls MCP tools that are not in the request head.

    Its description lists the tools ``offered``. A search returns their parameters as a tool result,
    which keeps the prompt cache valid. ``known`` returns all current tools by name.
    """

    def __init__(
        self,
        offered: Sequence[McpTool],
        known: Callable[[], Mapping[str, McpTool]],
        detail: ListDetail,
    ) -> None:
        super().__init__(_search_schema(offered, detail), read_only=True)
        self._known = known

    def resolve(self, arguments: RawInput) -> tuple[Tool[Any], ToolInput]:
        """Return the tool that a call names, and its arguments.

        For a search, the returned tool is this one.

        Raises ToolError for an unknown tool, or for arguments that aren't an object.
        """
        values = arguments.values
        if values.get("action") != "call":
            return self, arguments
        name = str(values.get("name", ""))
        tool = self._known().get(name)
        if tool is None:
            raise ToolError(
                f"There is no MCP tool {name!r}. Search for it first: action=search, query=words."
            )
        inner = values.get("arguments") or {}
        if isinstance(inner, str):
            try:
                inner = loads(inner)
            except ValueError:
                inner = None
        if not isinstance(inner, dict):
            raise ToolError(
                f"The arguments of {name} must be a JSON object. Its parameters: {_parameters(tool)}"
            )
        return tool, RawInput(values=inner)

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        values = arguments.values
        if values.get("action") != "search":
            raise ToolError("action must be search (with query) or call (with name and arguments).")
        query = str(values.get("query", ""))
        tools = [tool for tool in self._known().values() if tool.is_on]
        found = best_matches(query, tools)
        lines: list[str] = []
        for tool in found:
            lines.append(f"{tool.name}: {tool.description}\n  parameters: {_parameters(tool)}")
        rest = len(tools) - len(found)
        if not found:
            names = [tool.name for tool in tools[:MAX_NAMES]]
            if rest > MAX_NAMES:
                names.append("…")
            lines.append(f"No tool matches {query!r}. All tools: {', '.join(names)}")
        elif rest:
            lines.append(f"[{rest} more tools; use other words to find them.]")
        title = f"{query} · {len(found)} found"
        return await finish(Output("\n".join(lines), title=title, cut_hint=FILTER_OUTPUT), context)


def best_matches(query: str, tools: Sequence[McpTool]) -> list[McpTool]:
    """Return the tools that a query names in full, else those that contain its words, best first.

    A search by words returns at most `MAX_SEARCH_RESULTS` tools.
    """
    named = [tool for tool in tools if tool.name in query.replace(",", " ").split()]
    if named:
        return named
    words = set(_WORD.findall(query.lower()))

    scores = {tool.name: _score(tool, words) for tool in tools}
    fitting = [tool for tool in tools if scores[tool.name]]
    fitting.sort(key=lambda tool: (-scores[tool.name], tool.name))
    return fitting[:MAX_SEARCH_RESULTS]


def _score(tool: McpTool, words: Iterable[str]) -> int:
    name = tool.name.lower()
    about = tool.description.lower()
    whole = _WORD.findall(name)
    score = 0
    for word in words:
        if word in whole:
            score += 6
        else:
            score += 3 * (word in name) + (word in about)
    return score


def _parameters(tool: McpTool) -> str:
    return json.dumps(tool.info.parameters, ensure_ascii=False, separators=(",", ":"))


def _search_schema(offered: Sequence[McpTool], detail: ListDetail) -> ToolSchema:
    return ToolSchema(
        name=SEARCH_TOOL,
        description=f"Tools of connected servers: {_list(offered, detail)}\n"
        "First search for the parameters, by words or by full names from the list; then call a tool by its full name.",
        parameters={
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["search", "call"]},
                "query": {
                    "type": "string",
                    "description": "for search: full names, or words of what it should do",
                },
                "name": {"type": "string", "description": "for call"},
                "arguments": {
                    "type": "object",
                    "description": "for call: as its parameters say",
                    "properties": {},
                },
            },
            "required": ["action"],
        },
    )


def _list(offered: Sequence[McpTool], detail: ListDetail) -> str:
    match detail:
        case "lines":
            text = ""
            for tool in offered:
                text += f"\n- {tool.name}: {one_line(tool.description, MAX_LINE_CHARS)}"
            return text
        case "names":
            return ", ".join([tool.name for tool in offered])
        case "numbers":
            counts = Counter([tool.server.name for tool in offered])
            return ", ".join([f"{name} ({number} tools)" for name, number in counts.items()])
