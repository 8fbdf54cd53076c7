"""Servers' tools as the model calls them: one by one, or through one tool that lists, loads and calls them."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from tui_agent.agent.mcp.content import Reader
from tui_agent.agent.mcp.records import McpError, ToolInfo
from tui_agent.agent.mcp.server import McpServer
from tui_agent.errors import ToolError
from tui_agent.json_text import loads
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.safe_text import one_line
from tui_agent.session.entries import ToolSchema
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.dynamic import DynamicTool, RawInput
from tui_agent.tools.outputs import FILTER_OUTPUT, Output, finish

SEARCH_TOOL = "mcp"
"""The name of the tool that stands for all others."""
MAX_SEARCH_RESULTS = 8
"""Tools a search by words shows with their parameters."""
MAX_LINE_CHARS = 90
"""Characters of a tool's description in the list."""

ListDetail = Literal["lines", "names", "numbers"]
"""What the list holds: a line for each tool, its name, or how many a server has."""

_WORD = re.compile(r"[a-z0-9]+")


class McpTool(DynamicTool):
    """One tool of one server."""

    def __init__(self, name: str, server: McpServer, info: ToolInfo) -> None:
        super().__init__(ToolSchema(name=name, description=info.description, parameters=info.parameters))
        self.read_only = info.read_only
        self.server = server
        self.info = info

    @property
    def is_on(self) -> bool:
        """Whether the user lets it be used; that may change after the model was told of it."""
        return self.server.offers(self.info.name)

    def needs(self, arguments: RawInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        """Ask for the tool by its name, with everything that is sent.

        Raises:
            ToolError: it is switched off.
        """
        del context
        if not self.is_on:
            raise ToolError(f"{self.name} is switched off by the user. Do without it.")
        sent = json.dumps(arguments.values, ensure_ascii=False, indent=2)
        return (PermissionNeed(Permission.MCP, self.name, sent),)

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        reader = Reader(context.put_blob, vision=context.vision)
        try:
            content = await self.server.call(self.info.name, arguments.values, reader, context.report)
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


class McpSearchTool(DynamicTool):
    """Lists servers' tools, shows the parameters of those the model asks for, and calls them by name.

    Parameters come as results, at the end of the conversation, so that what the provider caches stays as it is.
    ``known`` gives the tools there are, by name, at the time of a call.
    """

    def __init__(
        self, offered: Sequence[McpTool], known: Callable[[], Mapping[str, McpTool]], detail: ListDetail
    ) -> None:
        super().__init__(_search_schema(offered, detail), read_only=True)
        self._known = known

    def resolve(self, arguments: RawInput) -> tuple[Tool[Any], ToolInput]:
        """Return the tool that a call names; a search stays here.

        Raises:
            ToolError: there is no such tool.
        """
        values = arguments.values
        if values.get("action") != "call":
            return self, arguments
        name = str(values.get("name", ""))
        tool = self._known().get(name)
        if tool is None:
            raise ToolError(f"There is no MCP tool {name!r}. Search for it first: action=search, query=words.")
        inner = values.get("arguments") or {}
        if isinstance(inner, str):
            try:
                inner = loads(inner)
            except ValueError:
                inner = None
        if not isinstance(inner, dict):
            raise ToolError(f"The arguments of {name} must be a JSON object. Its parameters: {_parameters(tool)}")
        return tool, RawInput(values=inner)

    def needs(self, arguments: RawInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        del arguments, context
        return ()

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        values = arguments.values
        if values.get("action") != "search":
            raise ToolError("action must be search (with query) or call (with name and arguments).")
        query = str(values.get("query", ""))
        tools = [tool for tool in self._known().values() if tool.is_on]
        found = best_matches(query, tools)
        lines = [f"{tool.name}: {tool.description}\n  parameters: {_parameters(tool)}" for tool in found]
        rest = len(tools) - len(found)
        if not found:
            names = ", ".join(tool.name for tool in tools[:100])
            lines = [f"No tool fits {query!r}. There are: {names}{', …' if len(tools) > 100 else ''}"]
        elif rest:
            lines.append(f"[{rest} more tools; use other words to find them.]")
        title = f"{query} · {len(found)} found"
        return await finish(Output("\n".join(lines), title=title, cut_hint=FILTER_OUTPUT), context)


def best_matches(query: str, tools: Sequence[McpTool], most: int = MAX_SEARCH_RESULTS) -> list[McpTool]:
    """Return the tools that a query names, or those whose names and descriptions hold its words, best first."""
    named = [tool for tool in tools if tool.name in query.replace(",", " ").split()]
    if named:
        return named
    words = set(_WORD.findall(query.lower()))
    scored = [(sum(_weight(word, tool) for word in words), tool) for tool in tools]
    fitting = [row for row in scored if row[0]]
    return [tool for _score, tool in sorted(fitting, key=lambda row: (-row[0], row[1].name))[:most]]


def _weight(word: str, tool: McpTool) -> int:
    name, description = tool.name.lower(), tool.description.lower()
    if word in _WORD.findall(name):
        return 6
    return 3 * (word in name) + (word in description)


def _parameters(tool: McpTool) -> str:
    return json.dumps(tool.info.parameters, ensure_ascii=False, separators=(",", ":"))


def _search_schema(offered: Sequence[McpTool], detail: ListDetail) -> ToolSchema:
    return ToolSchema(
        name=SEARCH_TOOL,
        description=f"Tools of connected servers: {_listed(offered, detail)}\n"
        "First search for the parameters, by words or by full names from the list; then call a tool by its full name.",
        parameters={
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["search", "call"]},
                "query": {"type": "string", "description": "for search: full names, or words of what it should do"},
                "name": {"type": "string", "description": "for call"},
                "arguments": {"type": "object", "description": "for call: as its parameters say", "properties": {}},
            },
            "required": ["action"],
        },
    )


def _listed(offered: Sequence[McpTool], detail: ListDetail) -> str:
    match detail:
        case "lines":
            return "".join(f"\n- {tool.name}: {one_line(tool.description, MAX_LINE_CHARS)}" for tool in offered)
        case "names":
            return ", ".join(tool.name for tool in offered)
        case "numbers":
            counts = Counter(tool.server.name for tool in offered)
            return ", ".join(f"{name} ({number} tools)" for name, number in counts.items())
