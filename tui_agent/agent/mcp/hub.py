"""Owns a project's MCP servers: starts and stops them, and decides which tools are offered.

The tools are offered in the request head (the part of each request before the conversation). A
project's sessions share the hub; ``cli.extensions`` creates and closes it. The hub also returns the
servers' prompts, resources and states. ``prompt_head`` decides when a request head is rendered, and
records which tools a session's model knows. ``server`` runs one server, ``tools`` defines the tools
for the model. The code that runs servers is imported only if there are any.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tui_agent.agent.events import Notice, Severity
from tui_agent.agent.mcp.records import (
    LoginState,
    McpError,
    McpServerStatus,
    McpToolRow,
    ServerOffer,
    ServerState,
    portable_name,
    shortened,
)
from tui_agent.agent.mcp.settings import (
    ConnectionContext,
    FoundServers,
    McpConfigError,
    McpServerSettings,
    ServerSpec,
    Timeouts,
)
from tui_agent.agent.mcp.tools import ListDetail, McpSearchTool, McpTool
from tui_agent.path_checks import real_path
from tui_agent.say_once import SayOnce
from tui_agent.session.entries import FilePart, TextPart, ToolSchema, UserPart
from tui_agent.tools.base import Tool
from tui_agent.tools.questions import Asker, QuestionHost

if TYPE_CHECKING:
    from pathlib import Path

    from tui_agent.agent.mcp.content import PutBlob
    from tui_agent.agent.mcp.oauth import TokenFile
    from tui_agent.agent.mcp.server import McpServer

SHARE_OF_WINDOW = 0.1
"""Maximum share of the context window for the tools of all servers with ``schemas`` "auto". Above
that, a single tool replaces them: it lists them, and loads their parameters when the model needs
them."""

LIST_SHARE = 0.03
"""Maximum share of the context window for the list of tools that the model can load. Details are
left out of the list until it fits."""

INSTRUCTION_SHARE = 0.02
"""Maximum share of the context window for the instructions of one server."""

MAX_INSTRUCTION_TOKENS = 4_000
"""Maximum size of the instructions of one server, in tokens, whatever the size of the window."""
_SECTION = "server_instructions"


class McpHub:
    """The MCP servers of a project, shared by the project's agents.

    ``find`` returns the servers' settings; it is called at the start and on a reload. Call all
    methods on the event loop's thread. Methods that take a server's name raise McpError if there is
    no such server or it fails.
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
        self._switched: dict[tuple[str, str], bool] = {}
        """Tools of the project's servers that the user turned on or off, by server and tool."""
        self._tools: dict[str, McpTool] = {}
        self._said = SayOnce()
        self._started = False
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        self.problems: tuple[str, ...] = ()
        """Messages about servers and files with servers that can't be used, as ``FILE: what is
        wrong``. They are set when the settings are read."""
        self.is_of_one_session = False
        """True if only one session uses this hub; the session's agent then closes the hub."""
        self.listeners: list[Callable[[Notice], None]] = []
        """Callbacks that receive notices for the user."""
        self.tool_listeners: list[Callable[[str, AbstractSet[str]], None]] = []
        """Callbacks that receive the name of a server that became ready, and the names of its
        tools."""
        self.watchers: list[Callable[[], None]] = []
        """Callbacks that are called whenever the result of ``status`` may have changed."""
        self.sessions: list[QuestionHost] = []
        """Sessions whose users can be asked by servers, oldest first."""

    @property
    def joins_always(self) -> bool:
        """Whether a new request head is rendered whenever a late server offers its tools.

        True if there is no user who could reload the head. If False, ``prompt_head`` renders a new
        head for such tools only while that is cheap.
        """
        return self._patience.settle is None

    # -- starting and stopping ------------------------------------------------------------------------------

    def start(self) -> None:
        """Read the settings and start all servers in the background. Later calls do nothing."""
        if not self._started:
            self._started = True
            self._take(self._find())

    async def settle(self) -> None:
        """Start the servers and wait until all are ready or have failed.

        Waits at most ``Timeouts.settle`` seconds. For a required server, or if ``settle`` is None,
        the limit is the server's setting ``start`` instead.
        """
        self.start()
        servers = list(self._servers.values())
        required = [server for server in servers if server.spec.settings.required]
        async with _at_most_seconds(self._patience.settle):
            await asyncio.gather(*(server.settled() for server in servers))
        await asyncio.gather(*(server.settled() for server in required))

    def check_required(self) -> None:
        """Raise McpError if a server that is required and enabled is not ready."""
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
        await self._complete(self._restart(name))

    async def _restart(self, name: str) -> None:
        server = self._servers.get(name)
        if server is not None:  # an earlier reload may have removed it
            await server.stop()
            server.restarts = 0
            server.start()

    async def let_read(self, name: str, paths: Iterable[Path]) -> None:
        """Restart a server in a sandbox that lets it read ``paths``.

        The permission lasts until the program ends or the server's settings change.
        """
        server = self._server(name)
        real = [real_path(path) for path in paths]
        server.spec = replace(server.spec, reads=server.spec.reads | {*paths, *real})
        await self.restart(name)

    async def reload(self, restarted: str = "") -> None:
        """Read the settings again, and wait for the servers as `settle` does.

        Starts new and failed servers, stops removed servers, and restarts servers whose new
        settings require it. Also restarts the server named ``restarted``, if it is still in the
        settings.
        """
        await self._complete(self._follow_settings(restarted))
        await self.settle()
        self._collect()

    async def _follow_settings(self, restarted: str) -> None:
        self._started = True
        found = self._find()
        found = replace(found, specs=tuple(map(self._with_switches, found.specs)))
        wanted = {spec.name: spec for spec in found.specs}
        gone: list[McpServer] = []
        for name, server in tuple(self._servers.items()):
            if name in wanted and server.spec.keeps_running_as(wanted[name]):
                server.spec = replace(wanted[name], reads=server.spec.reads)
            else:
                gone.append(self._servers.pop(name))
        await _stop(gone)
        await self._restart(restarted)
        self._take(found)
        self._servers = {name: self._servers[name] for name in wanted}
        for server in self._servers.values():
            server.start()

    async def _complete(self, change: Coroutine[Any, Any, None]) -> None:
        """Run a function that changes the servers, after earlier changes have ended.

        The change is completed even if the caller is cancelled. Otherwise a server could stay
        stopped if the screen that restarts it is closed meanwhile.
        """

        async def run() -> None:
            async with self._changing:
                await change

        task = asyncio.get_running_loop().create_task(run())
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        await asyncio.shield(task)

    async def sign_out(self, name: str) -> None:
        """Delete the login to a server, and restart the server so that the user can log in again."""
        tokens = self._tokens(self._server(name))
        if tokens is None:
            raise McpError(f"The MCP server {name} has no login to delete.")
        tokens.forget()
        await self.restart(name)

    def switch(self, name: str, tool: str, *, on: bool) -> McpServerSettings:
        """Turn a tool on or off, and return the server's changed settings.

        The change applies from the next request head on. For a project's server, the change lasts
        until the program ends. For one of the user's own servers, the caller saves the settings.
        """
        server = self._server(name)
        try:
            settings = server.spec.settings.switched(tool, on=on)
        except McpConfigError as error:
            raise McpError(str(error)) from None
        server.spec = replace(server.spec, settings=settings)
        if server.spec.source == "project":
            self._switched[name, tool] = on
        self._server_changed(server)
        return settings

    def _with_switches(self, spec: ServerSpec) -> ServerSpec:
        """Return a server's spec with the tools turned on or off as the user chose.

        The user's choices are recorded here only for the project's servers.
        """
        settings = spec.settings
        for (name, tool), on in self._switched.items():
            if name == spec.name and spec.source == "project":
                with suppress(McpConfigError):
                    settings = settings.switched(tool, on=on)
        return replace(spec, settings=settings)

    async def aclose(self) -> None:
        """Stop all servers."""
        await self._complete(self._stop_all())

    async def _stop_all(self) -> None:
        await _stop(self._servers.values())

    def _take(self, found: FoundServers) -> None:
        self.problems = found.problems
        for problem in found.problems:
            self._say(problem, "warning")
        for spec in found.specs:
            if spec.name not in self._servers:
                from tui_agent.agent.mcp.server import McpServer

                if self._around is None:
                    raise McpError("MCP servers can't be started by this frontend.")
                self._servers[spec.name] = McpServer(
                    spec, self._around, self._patience, self._asker, self._server_changed
                )
                self._servers[spec.name].start()

    # -- tools ----------------------------------------------------------------------------------------------

    def known(self) -> tuple[Tool[Any], ...]:
        """Return all tools that a call may name, including tools of unavailable servers."""
        if not self._tools:
            return ()
        return (*self._tools.values(), McpSearchTool((), lambda: self._tools, "numbers"))

    def offered(self, window: int, count: Callable[[ToolSchema], int]) -> tuple[Tool[Any], ...]:
        """Return the tools for a request head that is rendered now: the tools of all ready servers.

        The tools of servers with the setting ``schemas`` "on_demand" are replaced by a single tool
        that lists them and loads their parameters. The tools of servers with "auto" are replaced,
        too, if they are too large together. ``window`` is the context window in tokens, ``count``
        returns the tokens of a schema.
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
        """Return the tool that replaces ``listed``, with the most detailed list that fits ``room``.

        ``room`` is in tokens. If no list fits, the tool's description gives only the number of
        tools per server.
        """
        details: tuple[ListDetail, ...] = ("lines", "names")
        for detail in details:
            tool = McpSearchTool(listed, lambda: self._tools, detail)
            if count(tool.schema()) <= room:
                return tool
        return McpSearchTool(listed, lambda: self._tools, "numbers")

    def _on_demand(self, window: int, count: Callable[[ToolSchema], int]) -> set[str]:
        """Return the names of the servers whose tools the model must load before it calls them."""
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

    def ready_names(self) -> set[str]:
        """Return the names of all tools that are turned on, of servers that are ready."""
        return {tool.name for tool in self._tools_ready()}

    @property
    def is_settled(self) -> bool:
        """Whether the servers were started, and are neither starting nor waiting for a login."""
        opening = {ServerState.STARTING, ServerState.LOGIN}
        states = {server.state for server in self._servers.values()}
        return self._started and states.isdisjoint(opening)

    def sections(self, window: int, count: Callable[[str], int]) -> tuple[str, ...]:
        """Return the request head's sections with the instructions of servers that are ready.

        ``window`` is the context window in tokens, ``count`` returns the tokens of a text.
        """
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
        """Return the state of every server, for a screen, in the order of the settings.

        ``count`` returns the tokens of a schema, ``count_text`` those of a text; ``window`` is the
        context window in tokens.
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
        """Return what each ready server offers: its tools, prompts and resources."""
        return [server.offer for server in self._servers.values() if server.is_ready]

    async def prompt(
        self, server: str, name: str, arguments: Mapping[str, str], put_blob: PutBlob
    ) -> tuple[UserPart, ...]:
        """Request a prompt from a server, and return its text and images as parts of a message."""
        from tui_agent.agent.mcp.content import Reader

        content = await self._server(server).connection().prompt(name, arguments, Reader(put_blob))
        parts: list[UserPart] = []
        if content.text:
            parts.append(TextPart(text=content.text))
        return (*parts, *content.images)

    async def resource(self, mention: str, put_blob: PutBlob) -> tuple[UserPart, ...]:
        """Request a resource, and return its text and images as parts of a message.

        ``mention`` is ``SERVER:URI``.
        """
        server = self._server_of(mention)
        uri = mention.removeprefix(f"{server}:")
        from tui_agent.agent.mcp.content import Reader

        content = await self._server(server).connection().read(uri, Reader(put_blob))
        parts: list[UserPart] = []
        if content.text:
            parts.append(FilePart(path=mention, text=content.text))
        for image in content.images:
            parts.append(image.model_copy(update={"path": mention}))
        return tuple(parts)

    def _server_of(self, mention: str) -> str:
        """Return the name of the server that ``mention``, which is ``SERVER:URI``, begins with.

        Servers' names may contain colons, so several can fit: for example, ``fs`` and ``fs:file``
        fit ``fs:file:///a``. The server that lists this resource is chosen, otherwise the one with
        the longest name.
        """
        fitting = [name for name in self._servers if mention.startswith(f"{name}:")]
        for name in fitting:
            listed = self._servers[name].offer.resources
            if any(resource.mention == mention for resource in listed):
                return name
        return max(fitting, key=len, default=mention.partition(":")[0])

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
            place=server.spec.place,
            detail=server.detail,
            advice=server.advice,
            remedy=server.remedy,
            hidden=server.hidden,
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
        """Return the function that asks the user of a session; None if no session has a user.

        Sessions whose agent is working are preferred. Of several, the newest is chosen.
        """
        fitting = [session for session in self.sessions if session.asker is not None]
        busy = [session for session in fitting if session.is_busy]
        chosen = busy or fitting
        return chosen[-1].asker if chosen else None

    def _server_changed(self, server: McpServer, state: ServerState | None = None) -> None:
        """Handle a change of a server's state or tools: notify the user, and call the watchers.

        ``state`` is the new state, None if it is unchanged.
        """
        named = f"The MCP server {server.name}"
        match state:
            case ServerState.READY:
                self._take_tools(server)
            case ServerState.FAILED:
                self._say(f"{named} is not available: {server.detail}.", "warning", "mcp")
            case ServerState.LOGIN:
                text = (
                    f"{named} needs you to log in. Open this page in your browser: {server.detail}"
                )
                self._say(text, "warning", "mcp")
            case ServerState.STARTING if server.detail:
                self._say(f"{named}: {server.detail}.", "warning")
            case _:
                pass
        for watcher in tuple(self.watchers):
            watcher()

    def _take_tools(self, server: McpServer) -> None:
        """Collect the tools of a server that is ready, and report them to the sessions."""
        self._collect()
        for problem in server.offer.problems:
            text = f"The MCP server {server.name}: {problem}"
            if self._said.remember(text):
                self._say(text, "warning", "mcp")
        names: set[str] = set()
        for tool in server.offer.tools:
            if server.spec.settings.offers(tool.name):
                names.add(self._names[server.name, tool.name])
        for tools_came in tuple(self.tool_listeners):
            tools_came(server.name, names)

    def _collect(self) -> None:
        """Rebuild the table of all servers' tools, by name. Tools keep their earlier names."""
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
async def _at_most_seconds(seconds: float | None) -> AsyncIterator[None]:
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
    """Return the request head's section with a server's instructions, shortened if necessary.

    Returns "" if the server is not ready or has no instructions.
    """
    text = server.offer.instructions.replace(f"</{_SECTION}", f"<\\/{_SECTION}")
    if not text or not server.is_ready:
        return ""
    most = MAX_INSTRUCTION_TOKENS
    if window:
        most = min(MAX_INSTRUCTION_TOKENS, round(INSTRUCTION_SHARE * window))
    if (tokens := count(text)) > most:
        text = shortened(text, len(text) * most // tokens)
    return f'<{_SECTION} name="mcp {portable_name("", server.name).strip("_")}">\n{text}\n</{_SECTION}>'
