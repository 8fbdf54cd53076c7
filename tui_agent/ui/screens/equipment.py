"""The page of agents, skills, tools and MCP servers, with each server's state, tools and tokens.

The agent's hub manages the connections to the MCP servers. Through the hub, this page starts,
restarts and reloads servers, signs out of them, lets them read hidden paths, and switches tools on
and off. It saves in the settings which tools are off. To add a server or to switch the agent, it
runs a command.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from textual import getters, on, work
from textual.app import ComposeResult
from textual.content import Content

from tui_agent.agent.channel import register
from tui_agent.agent.mcp.records import (
    LoginState,
    McpError,
    McpServerStatus,
    McpToolRow,
    Remedy,
    ServerState,
)
from tui_agent.agent.mcp.sandbox_limits import directories_of
from tui_agent.agent.mcp.settings import OWN_PLACE
from tui_agent.agent.programs.found import quoted_key
from tui_agent.app.format import listed, one_line, plural, short_path, tokens, visible
from tui_agent.app.frontend import Choice, EquipmentLine, Heading, Output
from tui_agent.app.knowledge_commands import reload_servers
from tui_agent.config import ConfigError
from tui_agent.path_checks import is_file
from tui_agent.ui.bindings import hidden
from tui_agent.ui.later import Later
from tui_agent.ui.screens.page import FramedPage
from tui_agent.ui.widgets.line_list import LineList, spread
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.transcript.lines import StyledSpan

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller
    from tui_agent.app.frontend import EquipmentPage

_STATE_SIGNS: Final = {
    ServerState.READY: ("●", "good", "ready"),
    ServerState.STARTING: ("◐", "accent", "starting"),
    ServerState.LOGIN: ("◐", "warning", "needs a login"),
    ServerState.FAILED: ("✗", "error", "failed"),
    ServerState.STOPPED: ("○", "faint", "stopped"),
    ServerState.DISABLED: ("○", "faint", "disabled"),
}

_Row: TypeAlias = "tuple[EquipmentLine | None, McpServerStatus | None, McpToolRow | None]"
_NAME_CELLS: Final = 20
_MIN_WIDTH_FOR_FACTS: Final = 70
"""Minimum width, in cells, at which the numbers of a server's prompts and resources are shown."""

NO_SERVERS = "  No servers. Press a to add one, or use `tui-agent mcp add`."
APPLIES_LATER = (
    "This applies to new sessions and after a model switch. Press ctrl+r to apply it now;"
    " the next request is then not read from the prompt cache."
)

LOG_BYTES = 200_000
"""Maximum number of bytes that are shown from the end of a server's log."""

MESSAGES_SHOWN = 3
"""Number of a server's newest log messages that are shown. The server's log contains all of
them."""

MAX_PROBLEM = 400
"""Maximum number of characters shown of a message about settings that can't be used."""

MAX_NAMED = 6
"""Maximum number of prompts, resources or templates of a server that are listed by name."""

_REMEDIES: dict[Remedy, str] = {
    "restart": "r restarts it.",
    "reload": "Ctrl+R reloads the settings.",
    "login": "Press i to start the login again.",
    "allow": "Or press p to let only this server read it.",
}
"""Sentences that tell the user how to fix a failed server with the keys of this page."""


class EquipmentList(LineList):
    """The equipment page's list: lines about agents, skills and tools, then the MCP servers.

    A server can be unfolded to show its tools. The servers are followed by what is wrong with
    settings of servers that can't be used.
    """

    BINDINGS = [
        hidden("left", "fold(True)", "fold"),
        hidden("right", "fold(False)", "unfold"),
        hidden("space", "choose", "on/off"),
    ]

    def __init__(self, lines: Sequence[EquipmentLine]) -> None:
        super().__init__(id="servers")
        self._lines = tuple(lines)
        self._servers: tuple[McpServerStatus, ...] = ()
        self._problems: tuple[str, ...] = ()
        self._name_cells = 0
        self._open: set[str] = set()
        self._rows: list[_Row] = []

    @property
    def highlighted(self) -> _Row:
        """The row under the cursor, as a tuple of line, server and tool.

        Parts that the row doesn't have are None. In the row of a tool, the server is the one that
        offers the tool. All parts are None if the list is empty.
        """
        if self._rows:
            return self._rows[self.cursor]
        return (None, None, None)

    @property
    def has_servers(self) -> bool:
        return bool(self._servers)

    @property
    def server(self) -> McpServerStatus | None:
        return self.highlighted[1]

    def go_to(self, heading: str) -> None:
        """Scroll a heading to the top, and move the cursor to the row below it.

        If there is no such heading, scrolls to the start of the list.
        """
        at = 0
        for place, (line, _, _) in enumerate(self._rows):
            if line is not None and line.text == heading:
                at = place
                break
        self.cursor = at + 1
        self.scroll_to(y=at, animate=False, force=True)

    def show(self, servers: Sequence[McpServerStatus], problems: Sequence[str]) -> None:
        """Show the servers and problems in the list, and keep the cursor on its row if possible.

        If the list was empty and there is now a single server, unfolds it.
        """
        if not self._servers and len(servers) == 1:
            self._open.add(servers[0].name)
        self._servers = tuple(servers)
        self._problems = tuple(problems)
        self._name_cells = min(
            _NAME_CELLS, max((len(server.name) for server in servers), default=0)
        )
        self._arrange()

    def action_fold(self, folded: bool | None = None) -> None:  # noqa: FBT001 - passed by the binding
        """Fold or unfold the server under the cursor, as ``folded`` says.

        None toggles the state.
        """
        if self.server is None:
            return
        name = self.server.name
        if folded is None:
            folded = name in self._open
        if folded:
            self._open.discard(name)
            self._arrange(at=(name, None))
        else:
            self._open.add(name)
            self._arrange()

    def _arrange(self, at: tuple[str, str | None] | None = None) -> None:
        at = at or _address(self.highlighted)
        self._rows = [(line, None, None) for line in self._lines]
        if not self._servers and not self._problems:
            self._rows.append((EquipmentLine(NO_SERVERS), None, None))
        for server in self._servers:
            self._rows.append((None, server, None))
            if server.name in self._open:
                self._rows.extend((None, server, tool) for tool in server.tools)
        for problem in self._problems:
            line = EquipmentLine(f"  ✗ {one_line(problem, MAX_PROBLEM)}")
            self._rows.append((line, None, None))
        places = [_address(row) for row in self._rows]
        cursor = None
        if at is not None and at in places:
            cursor = places.index(at)
        self.set_count(len(self._rows), cursor=cursor)

    # -- rows

    def row(self, index: int, width: int) -> Sequence[StyledSpan]:
        line, server, tool = self._rows[index]
        if server is None:
            text = ""
            if line is not None:
                text = line.text
            return [(visible(text), "strong" if isinstance(text, Heading) else "text")]
        if tool is None:
            return self._server_row(server, width)
        return _tool_row(server, tool, width)

    def _server_row(self, server: McpServerStatus, width: int) -> Sequence[StyledSpan]:
        icon, style, word = _STATE_SIGNS[server.state]
        if not server.tools:
            mark = " "
        elif server.name in self._open:
            mark = "▾"
        else:
            mark = "▸"
        left: list[StyledSpan] = [
            (f"{mark} ", "faint"),
            (f"{icon} ", style),
            (f"{one_line(server.name, _NAME_CELLS):<{self._name_cells}}  ", "strong"),
            (word, style),
        ]
        if server.login is LoginState.SIGNED_IN:
            left.append((" · signed in", "faint"))
        if server.restarts and server.state is not ServerState.FAILED:
            left.append((f" · {plural(server.restarts, 'restart')}", "warning"))
        if server.state in {ServerState.FAILED, ServerState.STARTING} and server.detail:
            left.append((f" · {one_line(server.detail, 200)}", "text"))
        return spread(left, _facts(server, width), width)


def _address(row: _Row) -> tuple[str, str | None] | None:
    """Return the names of the server and the tool in a row, to find the row again later.

    Returns None if the row belongs to no server. The tool's name is None in the row of a server.
    """
    _line, server, tool = row
    if server is None:
        return None
    return (server.name, tool.own if tool is not None else None)


def _facts(server: McpServerStatus, width: int) -> list[StyledSpan]:
    if not (server.tools or server.prompts or server.resources):
        return []
    on = sum(tool.on for tool in server.tools)
    if on == len(server.tools):
        count = plural(on, "tool")
    else:
        count = f"{on} of {len(server.tools)} tools"
    parts = [count]
    if width >= _MIN_WIDTH_FOR_FACTS:
        more = [(server.prompts, "prompt"), (server.resources, "resource")]
        parts += [plural(len(found), noun) for found, noun in more if found]
    return [(f"{' · '.join(parts)}  ", "faint"), (f"{tokens(server.tokens):>6}", "text")]


def _tool_row(server: McpServerStatus, tool: McpToolRow, width: int) -> Sequence[StyledSpan]:
    is_usable = tool.on and server.state is ServerState.READY
    style = "text" if is_usable else "faint"
    left: list[StyledSpan] = [
        ("     ", "text"),
        ("✓ " if tool.on else "✗ ", "good" if is_usable else "faint"),
        (f"{one_line(tool.own, 32):<22} ", style),
        (one_line(tool.description, 300), "faint"),
    ]
    return spread(left, [(f"{tokens(tool.tokens) if tool.on else 'off':>6}", style)], width)


class EquipmentScreen(FramedPage[None]):
    """The page of an agent's skills, tools and MCP servers.

    The page is updated when a server's state changes.
    """

    HEADING = "Agents and tools"
    KEYS = "esc back"
    NO_SERVER_KEYS = "a add a server  ctrl+r reload settings  esc back"
    AGENT_KEYS = "enter switch to it  esc back"
    SERVER_KEYS = (
        "space on/off  a add  r restart  ctrl+r reload  o log  i login  enter unfold  esc back"
    )
    HIDDEN_KEYS = "p allow reading  r restart  ctrl+r reload  o log  enter unfold  esc back"
    """The line of keys for a server that failed because the sandbox hides paths that it needs."""
    AUTO_FOCUS = "EquipmentList"
    BINDINGS = [
        hidden("a", "add", "add a server", id="mcp.add"),
        hidden("r", "restart", "restart", id="mcp.restart"),
        hidden("ctrl+r", "reload", "reload settings", id="mcp.reload"),
        hidden("o", "log", "log", id="mcp.log"),
        hidden("i", "login", "login", id="mcp.login"),
        hidden("p", "let_read", "let it read what the sandbox hid", id="mcp.let_read"),
    ]

    servers = getters.query_one(EquipmentList)
    about = getters.query_one("#about", PlainText)

    def __init__(self, controller: Controller, agent: Agent, page: EquipmentPage) -> None:
        super().__init__()
        self._controller = controller
        self._agent = agent
        self._page = page
        self._hub = agent.ports.mcp
        self._redrawing = Later(self, self._draw)

    def body(self) -> ComposeResult:
        yield EquipmentList(self._page.lines)
        yield PlainText(id="about")

    def on_mount(self) -> None:
        self.when_left(register(self._hub.watchers, self._redrawing.after_refresh))
        self._hub.start()
        self._draw()
        if self._page.at:
            self.call_after_refresh(self.servers.go_to, self._page.at)

    # -- display

    def _draw(self) -> None:
        if not self.is_attached:
            return
        found = self._agent.mcp.status()
        self.show_facts(facts_text(found, self._agent.context_size().window))
        self.servers.show(found, self._hub.problems)
        self._show_details()

    @on(LineList.Highlighted)
    def _show_details(self) -> None:
        line, server, tool = self.servers.highlighted
        if server is not None:
            self.keys.show(self.HIDDEN_KEYS if server.hidden else self.SERVER_KEYS)
            if tool is None:
                self.about.update(server_text(server))
            else:
                self.about.update(tool_text(server, tool))
            return
        if line is None:
            line = EquipmentLine("")
        self.about.update(visible(line.text.strip()))
        if line.agent:
            self.keys.show(self.AGENT_KEYS)
        elif not self.servers.has_servers:
            self.keys.show(self.NO_SERVER_KEYS)
        else:
            self.keys.show(self.KEYS)

    def _say(self, text: str) -> None:
        self.notice.say(visible(text))

    # -- keys

    @on(LineList.Chosen)
    def _chosen(self) -> None:
        line, server, tool = self.servers.highlighted
        if line is not None and line.agent:
            self._controller.begin("agent", line.agent)
            self.dismiss(None)
        elif server is not None:
            if tool is None:
                self.servers.action_fold()
            else:
                self._switch(server, tool)

    def _switch(self, server: McpServerStatus, tool: McpToolRow) -> None:
        """Switch a tool on or off.

        If its server is from the user's settings, save the change there.
        """
        try:
            settings = self._hub.switch(server.name, tool.own, on=not tool.on)
        except McpError as error:
            self._say(str(error))
            return
        kept = "until the program ends"
        if server.source == "user":
            table = f"mcp.{quoted_key(server.name)}"
            try:
                save = self._controller.services.save_setting
                save(f"{table}.allow", None if settings.allow is None else list(settings.allow))
                save(f"{table}.deny", list(settings.deny) or None)
                kept = "saved in config.toml"
            except ConfigError:
                kept = "until the program ends; config.toml does not have this server"
            except OSError as error:
                kept = f"until the program ends; config.toml can't be written ({error.strerror})"
        self._say(f"{tool.own} is {'off' if tool.on else 'on'}, {kept}. {APPLIES_LATER}")

    def action_add(self) -> None:
        self._controller.begin("mcp", "add")

    def action_restart(self) -> None:
        if (server := self.servers.server) is not None:
            self._do(self._hub.restart(server.name), f"Restarted {server.name}.")

    @work(group="servers")
    async def action_reload(self) -> None:
        """Read the settings again, and restart the server under the cursor with them."""
        self._say("Reading the settings …")
        chosen = self.servers.server
        name = chosen.name if chosen is not None else ""
        if not await self._attempt(reload_servers(self._controller, self._agent, name)):
            return
        done = "The settings were read again."
        enabled = [
            server.name for server in self._hub.status() if server.state is not ServerState.DISABLED
        ]
        if name in enabled:
            done = f"The settings were read again, and {name} was restarted."
        self._say(f"{done} The model receives the current tools with the next request.")

    def action_login(self) -> None:
        """Open the login page of the server under the cursor, if the server is waiting for a login.

        Otherwise, sign out of the server and restart it, so that it asks for a new login.
        """
        server = self.servers.server
        if server is None:
            return
        if server.login is LoginState.WAITING:
            self.app.open_url(server.detail)
            self._say("Opened the login page in your browser.")
        else:
            self._do(
                self._hub.sign_out(server.name),
                f"Signed out of {server.name} and restarted it for a new login.",
            )

    @work(group="let_read", exclusive=True)
    async def action_let_read(self) -> None:
        """Ask whether the server may read the paths that the sandbox hid. If it may, restart it."""
        server = self.servers.server
        if server is None:
            return
        if server.state is not ServerState.FAILED or not server.hidden:
            self._say("The sandbox has hidden nothing from this server.")
            return
        paths = server.hidden
        folders = directories_of(paths, Path.home())
        answers = []
        has_more = set(folders) != set(paths)
        # If the user allows only a link, a program that resolves it still can't read its other
        # files there.
        if not has_more or not any(map(Path.is_symlink, paths)):
            answers.append(("y", f"yes, {_listed(paths)}"))
        if has_more:
            answers.append(("d", f"yes, all of {_listed(folders)}"))
        question = Choice(
            f"Let {one_line(server.name, 40)} read this, until the program ends?",
            [*answers, ("n", "no")],
            visible(server.address),
            at="n",
            why="The sandbox hides it. To let all commands read it, add it to [sandbox] read.",
            numbered=True,
        )
        match await self._controller.ask(question):
            case "y":
                allowed = paths
            case "d":
                allowed = folders
            case _:
                return
        self._do(
            self._hub.let_read(server.name, allowed),
            f"{server.name} is restarting and can now read {_listed(allowed)}.",
        )

    @work(group="log", exclusive=True)
    async def action_log(self) -> None:
        if (server := self.servers.server) is None:
            return
        log = server.log
        read = b""
        if log is not None and is_file(log):
            read = await asyncio.to_thread(log.read_bytes)
        text = read[-LOG_BYTES:].decode("utf-8", "replace")
        self._controller.show(Output(f"{server.name}: log", text or "(empty)"))

    @work(group="servers")
    async def _do(self, action: Awaitable[None], done: str) -> None:
        if await self._attempt(action):
            self._say(done)

    async def _attempt(self, action: Awaitable[None]) -> bool:
        """Await ``action`` and return True; if it fails, show why and return False."""
        try:
            await action
        except (McpError, ConfigError) as error:
            self._say(str(error))
            return False
        finally:
            self._redrawing.after_refresh()
        return True


def _listed(paths: Iterable[Path]) -> str:
    return " and ".join(short_path(path) for path in paths)


def facts_text(servers: Sequence[McpServerStatus], window: int) -> str:
    """Return a line of facts: the numbers of servers and tools, and the tools' share of the window.

    Counts the tools that are switched on, of the servers that are ready. ``window`` is the size of
    the context window in tokens. The share is omitted if the tools' size or the window is 0 or
    unknown. Returns "" if there are no servers.
    """
    if not servers:
        return ""
    ready = [server for server in servers if server.state is ServerState.READY]
    on = 0
    later = 0
    size = 0
    for server in ready:
        here = sum(tool.on for tool in server.tools)
        on += here
        if server.on_demand:
            later += here
        size += server.tokens
    facts = f"{len(ready)} of {plural(len(servers), 'server')} ready · {plural(on, 'tool')}"
    if not size:
        return facts
    how = f"{facts} · {tokens(size)} tokens of schemas"
    if window:
        how += f", {size / window:.1%} of the window"
    if later:
        return f"{how} · {later} loaded on demand"
    return how


def _said(server: McpServerStatus) -> str:
    if server.state is ServerState.DISABLED:
        return ""
    return server.detail


def server_text(server: McpServerStatus) -> Content:
    failed = server.state is ServerState.FAILED
    heads = {
        ServerState.FAILED: f"Failed: {server.detail}.",
        ServerState.LOGIN: "The server requires a login; press i to open this page in your browser:",
        ServerState.DISABLED: "Disabled in the settings (enabled = false).",
    }
    where = server.place
    if where == OWN_PLACE:
        where = f"your {where}"
    elif server.source == "project":
        where = f"the project's {where}"
    loud = f"Last messages ({server.log_level} and above, as set by the server's log_level):"
    instructions = (
        f"Its instructions take {tokens(server.instruction_tokens)} tokens of every request."
    )
    lines = [
        f"{server.advice} {_REMEDIES[server.remedy]}".strip() if failed else _said(server),
        f"{server.address}  ({where})" if where else server.address,
        "Signed in; press i to sign out and log in again."
        if server.login is LoginState.SIGNED_IN
        else "",
        _named("Prompts: ", [f"/{row.command} {row.usage}".strip() for row in server.prompts]),
        _named("Resources: ", [f"@{row.mention}" for row in server.resources]),
        _named("Resource templates: ", [f"@{row.mention}" for row in server.templates]),
        instructions if server.instructions else "",
        loud if server.messages else "",
        *(one_line(f"  {row.level}: {row.text}", 200) for row in server.messages[-MESSAGES_SHOWN:]),
        f"Log: {short_path(server.log)}" if server.log is not None else "",
    ]
    head = Content(visible(heads.get(server.state, ""))).stylize("bold")
    parts = [head, *(Content(visible(line)) for line in lines)]
    return Content("\n").join([part for part in parts if part.plain])


def tool_text(server: McpServerStatus, tool: McpToolRow) -> Content:
    state = "" if tool.on else " · off: the model can't call it"
    head = Content(visible(f"{tool.name}{state}")).stylize("bold")
    about = Content(one_line(tool.description or "It has no description.", 1_000))
    rule = Content(
        visible(f'To always allow it, in config.toml: [permissions.mcp] "{tool.name}" = "allow"')
    )
    if tool.omitted:
        about += Content(
            f" (The last {tool.omitted:,} characters of its description are not sent to the model.)"
        )
    unavailable = []
    if server.state is not ServerState.READY:
        _sign, _style, word = _STATE_SIGNS[server.state]
        unavailable = [Content(f"The server {server.name} is not ready ({word}).")]
    return Content("\n").join([head, about, *unavailable, rule])


def _named(what: str, names: Sequence[str]) -> str:
    if names:
        return f"{what}{listed(names, MAX_NAMED)}"
    return ""
