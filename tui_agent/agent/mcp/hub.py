"""All servers of a project and their tools: started in the background, never waited for longer than a moment.

Most projects have none: the code that runs them is loaded with the first.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from tui_agent.agent.events import Notice, Severity
from tui_agent.agent.mcp.records import (
    LoginState,
    McpError,
    McpServerStatus,
    McpToolRow,
    ServerOffer,
    ServerState,
    ToolInfo,
    portable_name,
    shortened,
)
from tui_agent.agent.mcp.settings import (
    ConnectionContext,
    FoundServers,
    McpConfigError,
    McpServerSettings,
    Timeouts,
)
from tui_agent.errors import ToolError
from tui_agent.json_text import loads
from tui_agent.lazy import LazyPattern
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.safe_text import one_line
from tui_agent.say_once import SayOnce
from tui_agent.session.entries import FilePart, TextPart, ToolSchema, UserPart
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
from tui_agent.tools.questions import Asker, Host

if TYPE_CHECKING:
    from tui_agent.agent.mcp.content import PutBlob
    from tui_agent.agent.mcp.oauth import TokenFile
    from tui_agent.agent.mcp.server import McpServer

SEARCH_TOOL = "mcp"
"""The name of the tool that stands for all others."""
MAX_SEARCH_RESULTS = 8
"""Tools a search by words shows with their parameters."""
MAX_NAMES = 100
"""Tools that are named where a search finds none."""
MAX_LINE_CHARS = 90
"""Characters of a tool's description in the list."""

ListDetail = Literal["lines", "names", "numbers"]
"""Detail of the list: a line for each tool, its name, or how many a server has."""

_WORD = LazyPattern(r"[a-z0-9]+")

SHARE_OF_WINDOW = 0.1
"""Part of a model's window that servers' tools may take before the model loads their parameters on
demand."""

LIST_SHARE = 0.03
"""Part of the window that the list of such tools may take: a line for each, else its name, else
their number."""

INSTRUCTION_SHARE = 0.02
"""Part of a model's window that the instructions of one server may take."""

MAX_INSTRUCTION_TOKENS = 4_000
_SECTION = "server_instructions"

_JOINS = "The model has them from its next step on."
_HOW_TO_TELL = "In a long conversation they wait for another model or /mcp reload: all would be sent at full price."


class McpTool(DynamicTool):
    """One tool of one server."""

    def __init__(self, name: str, server: McpServer, info: ToolInfo) -> None:
        super().__init__(
            ToolSchema(name=name, description=info.description, parameters=info.parameters)
        )
        self.read_only = info.read_only
        self.server = server
        self.info = info

    @property
    def is_on(self) -> bool:
        """Whether the user lets it be used; that may change after the model has seen it."""
        return self.server.spec.settings.offers(self.info.name)

    def needs(self, arguments: RawInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        del context
        if not self.is_on:
            raise ToolError(f"{self.name} is switched off by the user. Do without it.")
        sent = json.dumps(arguments.values, ensure_ascii=False, indent=2)
        return (PermissionNeed(Permission.MCP, self.name, sent),)

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
    """Lists servers' tools, shows the parameters of those the model asks for, and calls them by name.

    Parameters come as results, at the end of the conversation, so that the provider's cache stays
    valid. ``known`` gives the tools there are, by name, at the time of a call.
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
        """Return the tool that a call names; a search stays here."""
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
            lines.append(f"No tool fits {query!r}. There are: {', '.join(names)}")
        elif rest:
            lines.append(f"[{rest} more tools; use other words to find them.]")
        title = f"{query} · {len(found)} found"
        return await finish(Output("\n".join(lines), title=title, cut_hint=FILTER_OUTPUT), context)


def best_matches(query: str, tools: Sequence[McpTool]) -> list[McpTool]:
    """Return the tools that a query names, or those whose names and descriptions hold its words, best first."""
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


class McpHub:
    """The servers that ``find`` names; none without it.

    ``find`` is asked when they are started and on a reload.

    Agents of one project share a hub. Everything is called on the event loop's thread. Requests
    that fail, for want of such a server or because it refuses, raise McpError.
    """

    def __init__(
        self,
        find: Callable[[], FoundServers] = FoundServers,
        around: ConnectionContext | None = None,
        patience: Timeouts | None = None,
    ) -> None:
        self._find = find
        self._around = around
        self._patience = patience or Timeouts()
        self._servers: dict[str, McpServer] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._tools: dict[str, McpTool] = {}
        self._known_tools: set[str] | None = None
        """Names of the tools that the model was told of; None before its first request."""
        self._said = SayOnce()
        self._started = False
        self.arrivals = 0
        """How often tools came after the model was told of its tools."""
        self.listeners: list[Callable[[Notice], None]] = []
        """Called with notices for the user."""
        self.watchers: list[Callable[[], None]] = []
        """Called whenever ``status`` may be different."""
        self.sessions: list[Host] = []
        """Sessions whose person servers may ask."""

    @property
    def joins_always(self) -> bool:
        """Whether tools that come late are told to the model at any price: nobody is there who could reload."""
        return self._patience.settle is None

    # -- life -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        if not self._started:
            self._started = True
            self._take(self._find())

    async def settle(self) -> None:
        """Wait until every server is ready or has failed, but only so long: their tools may come later.

        Those that are required have the time to start that their setting gives them.
        """
        self.start()
        servers = list(self._servers.values())
        required = [server.settled() for server in servers if server.spec.settings.required]
        async with _no_longer_than(self._patience.settle):
            await asyncio.gather(*(server.settled() for server in servers))
        await asyncio.gather(*required)

    def check_required(self) -> None:
        """Raise McpError where a server that is required isn't there."""
        for server in self._servers.values():
            settings = server.spec.settings
            if settings.required and settings.enabled and server.state is not ServerState.READY:
                why = server.detail or server.state.value
                raise McpError(
                    f"The MCP server {server.name} is required but not available: {why.rstrip('.')}."
                )

    async def restart(self, name: str) -> None:
        server = self._server(name)
        if server.state is ServerState.DISABLED:
            raise McpError(f"The MCP server {name} is disabled in the configuration.")
        await server.stop()
        server.restarts = 0
        server.start()

    async def reload(self) -> None:
        """Reread the configuration: start new and failed servers, end removed ones, keep the rest running."""
        self._started = True
        found = self._find()
        wanted = {spec.name: spec for spec in found.specs}
        gone: list[McpServer] = []
        for name, server in tuple(self._servers.items()):
            if name in wanted and server.spec.runs_on(wanted[name]):
                server.spec = wanted[name]
            else:
                gone.append(self._servers.pop(name))
        await _stop(gone)
        self._take(found)
        self._servers = {name: self._servers[name] for name in wanted}
        for server in self._servers.values():
            server.start()
        await self.settle()
        self._collect()

    async def sign_out(self, name: str) -> None:
        """Forget the login to a server and start it again: it asks for another one."""
        tokens = self._tokens(self._server(name))
        if tokens is None:
            raise McpError(f"{name} has no login of the program's own.")
        tokens.forget()
        await self.restart(name)

    def switch(self, name: str, tool: str, *, on: bool) -> McpServerSettings:
        """Switch a tool on or off, from the next system prompt on; return the changed settings."""
        server = self._server(name)
        try:
            settings = server.spec.settings.switched(tool, on=on)
        except McpConfigError as error:
            raise McpError(str(error)) from None
        server.spec = replace(server.spec, settings=settings)
        self._server_changed(server)
        return settings

    async def aclose(self) -> None:
        await _stop(self._servers.values())

    def _take(self, found: FoundServers) -> None:
        for problem in found.problems:
            self._say(problem, "warning")
        for spec in found.specs:
            if spec.name not in self._servers:
                from tui_agent.agent.mcp.server import McpServer

                if self._around is None:
                    raise McpError("MCP servers cannot run here.")
                self._servers[spec.name] = McpServer(
                    spec, self._around, self._patience, self._asker, self._server_changed
                )
                self._servers[spec.name].start()

    # -- tools ----------------------------------------------------------------------------------------------

    def known(self) -> tuple[Tool[Any], ...]:
        """Return every tool a call may name, those of stopped or failed servers too: calling one says so."""
        if not self._tools:
            return ()
        return (*self._tools.values(), McpSearchTool((), lambda: self._tools, "numbers"))

    def offered(self, window: int, count: Callable[[ToolSchema], int]) -> tuple[Tool[Any], ...]:
        """Return the tools for a head rendered now; ``window`` is in tokens, as ``count`` counts.

        The tools of the servers that are ready, and one that lists and loads those whose parameters
        are left out.
        """
        later = self._on_demand(window, count)
        shown: list[Tool[Any]] = []
        listed: list[McpTool] = []
        for tool in self._tools_ready():
            if tool.server.name in later:
                listed.append(tool)
            else:
                shown.append(tool)
        if listed:
            shown.append(self._search_tool(listed, LIST_SHARE * window, count))
        return tuple(shown)

    def _search_tool(
        self, listed: Sequence[McpTool], room: float, count: Callable[[ToolSchema], int]
    ) -> McpSearchTool:
        """Return the tool that stands for others, with the fullest list that takes ``room`` tokens."""
        details: tuple[ListDetail, ...] = ("lines", "names")
        for detail in details:
            tool = McpSearchTool(listed, lambda: self._tools, detail)
            if count(tool.schema()) <= room:
                return tool
        return McpSearchTool(listed, lambda: self._tools, "numbers")

    def _on_demand(self, window: int, count: Callable[[ToolSchema], int]) -> set[str]:
        """Return the servers whose tools' parameters the model loads when it needs them."""
        later: set[str] = set()
        auto: set[str] = set()
        tokens = 0
        for tool in self._tools_ready():
            match tool.server.spec.settings.schemas:
                case "on_demand":
                    later.add(tool.server.name)
                case "auto":
                    auto.add(tool.server.name)
                    tokens += count(tool.schema())
                case "always":
                    pass
        if tokens > SHARE_OF_WINDOW * window:
            return later | auto
        return later

    def _tools_ready(self) -> list[McpTool]:
        return [tool for tool in self._tools.values() if tool.server.is_ready and tool.is_on]

    def note_offered(self) -> None:
        self._known_tools = {tool.name for tool in self._tools_ready()}

    def note_announced(self, names: Iterable[str]) -> None:
        """Take note of the tools that a head rendered earlier lists."""
        listed = set(names)
        self._known_tools = (self._known_tools or set()) | (
            set(self._tools) if SEARCH_TOOL in listed else listed
        )

    @property
    def is_settled(self) -> bool:
        opening = {ServerState.STARTING, ServerState.LOGIN}
        states = {server.state for server in self._servers.values()}
        return self._started and states.isdisjoint(opening)

    def sections(self, window: int, count: Callable[[str], int]) -> tuple[str, ...]:
        """Return the instructions of servers that are ready, each within `INSTRUCTION_SHARE` of the window."""
        found = [_section(server, window, count) for server in self._servers.values()]
        return tuple(section for section in found if section)

    # -- for screens and commands -----------------------------------------------------------------------------

    def status(
        self,
        count: Callable[[ToolSchema], int] = lambda _schema: 0,
        *,
        window: int = 0,
        count_text: Callable[[str], int] = len,
    ) -> tuple[McpServerStatus, ...]:
        """Return the state of every server.

        ``count`` and ``count_text`` give tokens, ``window`` is the model's.
        """
        later = self._on_demand(window, count)
        rows: list[McpServerStatus] = []
        for server in self._servers.values():
            section = _section(server, window, count_text)
            row = replace(
                self._status(server, count),
                instructions=section,
                instruction_tokens=count_text(section),
                on_demand=server.name in later,
            )
            rows.append(row)
        return tuple(rows)

    def offers(self) -> list[ServerOffer]:
        """Return the offers of the servers that are ready."""
        return [server.offer for server in self._servers.values() if server.is_ready]

    async def prompt(
        self, server: str, name: str, arguments: Mapping[str, str], put_blob: PutBlob
    ) -> tuple[UserPart, ...]:
        from tui_agent.agent.mcp.content import Reader

        content = await self._server(server).connection().prompt(name, arguments, Reader(put_blob))
        parts: list[UserPart] = []
        if content.text:
            parts.append(TextPart(text=content.text))
        return (*parts, *content.images)

    async def resource(self, mention: str, put_blob: PutBlob) -> tuple[UserPart, ...]:
        """Return a resource, named ``server:uri``, as parts of a message."""
        server, _separator, uri = mention.partition(":")
        from tui_agent.agent.mcp.content import Reader

        content = await self._server(server).connection().read(uri, Reader(put_blob))
        parts: list[UserPart] = []
        if content.text:
            parts.append(FilePart(path=mention, text=content.text))
        for image in content.images:
            parts.append(image.model_copy(update={"path": mention}))
        return tuple(parts)

    def _status(self, server: McpServer, count: Callable[[ToolSchema], int]) -> McpServerStatus:
        settings = server.spec.settings
        tokens = self._tokens(server)
        login = LoginState.NONE
        if server.state is ServerState.LOGIN:
            login = LoginState.WAITING
        elif tokens is not None and tokens.is_filled:
            login = LoginState.SIGNED_IN
        tools = [tool for tool in self._tools.values() if tool.server is server]
        return McpServerStatus(
            name=server.name,
            source=server.spec.source,
            transport=server.spec.transport,
            state=server.state,
            address=settings.url or shlex.join([settings.command or "", *settings.args]),
            detail=server.detail,
            advice=server.advice,
            remedy=server.remedy,
            tools=tuple(_tool_row(tool, count) for tool in tools),
            prompts=server.offer.prompts,
            resources=server.offer.resources,
            templates=server.offer.templates,
            messages=tuple(server.messages),
            log_level=settings.log_level,
            restarts=server.restarts,
            login=login,
            log=self._around.log_path(server.name) if self._around is not None else None,
        )

    def _tokens(self, server: McpServer) -> TokenFile | None:
        settings = server.spec.settings
        if self._around is None or settings.url is None or settings.is_authorized:
            return None
        from tui_agent.agent.mcp.oauth import TokenFile

        return TokenFile(server.name, settings.url, self._around.token_dir)

    def _server(self, name: str) -> McpServer:
        if name not in self._servers:
            known = ", ".join(self._servers) or "none"
            raise McpError(f"There is no MCP server “{name}”. Configured: {known}.")
        return self._servers[name]

    # -- from servers -----------------------------------------------------------------------------------------

    def _asker(self) -> Asker | None:
        """Return who asks the person of a session that works just now, otherwise of the one opened last."""
        fitting = [session for session in self.sessions if session.asker is not None]
        busy = [session for session in fitting if session.is_busy]
        chosen = busy or fitting
        return chosen[-1].asker if chosen else None

    def _server_changed(self, server: McpServer, state: ServerState | None = None) -> None:
        """Follow a change of a server; ``state`` is its new state, None if that stays."""
        named = f"The MCP server {server.name}"
        match state:
            case ServerState.READY:
                self._take_tools(server)
            case ServerState.FAILED:
                self._say(f"{named} is not available: {server.detail}.", "warning", "mcp")
            case ServerState.LOGIN:
                text = f"{named} wants you to log in with your browser: {server.detail}"
                self._say(text, "warning", "mcp")
            case ServerState.STARTING if server.detail:
                self._say(f"{named}: {server.detail}.", "warning")
            case _:
                pass
        for watcher in tuple(self.watchers):
            watcher()

    def _take_tools(self, server: McpServer) -> None:
        """Collect the tools again after a server became ready; tell of those that the model doesn't know."""
        self._collect()
        for problem in server.offer.problems:
            text = f"The MCP server {server.name}: {problem}"
            if self._said.is_new(text):
                self._say(text, "warning", "mcp")
        names: set[str] = set()
        for tool in server.offer.tools:
            if server.spec.settings.offers(tool.name):
                names.add(self._names[server.name, tool.name])
        if self._known_tools is None or names <= self._known_tools:
            return
        self._known_tools |= names
        self.arrivals += 1
        how = _JOINS if self.joins_always else f"{_JOINS} {_HOW_TO_TELL}"
        self._say(f"Tools of the MCP server {server.name} are now available. {how}")

    def _collect(self) -> None:
        """Put the tools together again. A tool keeps the name it got first."""
        tools: dict[str, McpTool] = {}
        for server in self._servers.values():
            for info in sorted(server.offer.tools, key=lambda info: info.name):
                key = (server.name, info.name)
                if key not in self._names:
                    self._names[key] = portable_name(*key, taken=set(self._names.values()))
                tools[self._names[key]] = McpTool(self._names[key], server, info)
        self._tools = tools

    def _say(
        self, text: str, severity: Severity = "information", action: str | None = None
    ) -> None:
        for listener in tuple(self.listeners):
            listener(Notice(text, severity, action))


async def _stop(servers: Iterable[McpServer]) -> None:
    await asyncio.gather(*[server.stop() for server in servers])


@asynccontextmanager
async def _no_longer_than(seconds: float | None) -> AsyncIterator[None]:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            yield


def _tool_row(tool: McpTool, count: Callable[[ToolSchema], int]) -> McpToolRow:
    return McpToolRow(
        tool.name,
        tool.info.name,
        tool.info.description,
        tokens=count(tool.schema()),
        on=tool.is_on,
        omitted=tool.info.omitted,
    )


def _section(server: McpServer, window: int, count: Callable[[str], int]) -> str:
    """Return a server's instructions as a section of a head, shortened to its share of the window; "" for none."""
    text = server.offer.instructions.replace(f"</{_SECTION}", f"<\\/{_SECTION}")
    if not text or not server.is_ready:
        return ""
    most = MAX_INSTRUCTION_TOKENS
    if window:
        most = min(MAX_INSTRUCTION_TOKENS, round(INSTRUCTION_SHARE * window))
    if (tokens := count(text)) > most:
        text = shortened(text, len(text) * most // tokens)
    return f'<{_SECTION} name="mcp {portable_name("", server.name).strip("_")}">\n{text}\n</{_SECTION}>'
