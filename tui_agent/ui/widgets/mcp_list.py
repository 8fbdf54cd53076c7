"""The list of MCP servers and, under each that is unfolded, its tools; drawn by the line."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.binding import Binding, BindingType

from tui_agent.agent.mcp.records import LoginState, McpServerStatus, McpToolRow, ServerState
from tui_agent.app.format import one_line, plural, tokens
from tui_agent.ui.widgets.line_list import LineList, StyledSpan, spread

_LOOKS: Final = {
    ServerState.READY: ("●", "good", "ready"),
    ServerState.STARTING: ("◐", "accent", "starting"),
    ServerState.LOGIN: ("◐", "warning", "wants a login"),
    ServerState.FAILED: ("✗", "error", "failed"),
    ServerState.STOPPED: ("○", "faint", "stopped"),
    ServerState.DISABLED: ("○", "faint", "disabled"),
}

_NAME_CELLS: Final = 20
_MIN_WIDTH_FOR_FACTS: Final = 70
"""Cells from which prompts and resources are counted too."""


class McpList(LineList):
    """Servers as headings, tools as rows below them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "fold(True)", "fold", show=False),
        Binding("right", "fold(False)", "unfold", show=False),
        Binding("space", "choose", "on/off", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="servers")
        self._servers: tuple[McpServerStatus, ...] = ()
        self._name_cells = 0
        self._open: set[str] = set()
        self._rows: list[tuple[McpServerStatus, McpToolRow | None]] = []

    @property
    def server(self) -> McpServerStatus | None:
        """The server the cursor is at or in."""
        return self._rows[self.cursor][0] if self._rows else None

    @property
    def tool(self) -> McpToolRow | None:
        """The tool under the cursor."""
        return self._rows[self.cursor][1] if self._rows else None

    def show(self, servers: Sequence[McpServerStatus]) -> None:
        """List servers; the cursor stays at its row if that is still there. A server that is alone is unfolded."""
        if not self._servers and len(servers) == 1:
            self._open.add(servers[0].name)
        self._servers = tuple(servers)
        self._name_cells = min(_NAME_CELLS, max((len(server.name) for server in servers), default=0))
        self._arrange()

    def action_fold(self, folded: bool) -> None:  # noqa: FBT001 - as the binding says it
        """Fold or unfold the server the cursor is in."""
        if self.server is None:
            return
        name = self.server.name
        (self._open.discard if folded else self._open.add)(name)
        self._arrange(at=(name, None) if folded else None)

    def toggle_fold(self) -> None:
        """Fold what is unfolded, and the other way round."""
        if self.server is not None:
            self.action_fold(self.server.name in self._open)

    def _arrange(self, at: tuple[str, str | None] | None = None) -> None:
        at = at or self._address(self.cursor)
        self._rows = []
        for server in self._servers:
            self._rows.append((server, None))
            if server.name in self._open:
                self._rows.extend((server, tool) for tool in server.tools)
        places = [self._address(place) for place in range(len(self._rows))]
        self.set_count(len(self._rows), cursor=places.index(at) if at in places else None)

    def _address(self, place: int) -> tuple[str, str | None] | None:
        if not 0 <= place < len(self._rows):
            return None
        server, tool = self._rows[place]
        return server.name, None if tool is None else tool.own

    # -- rows

    def row(self, index: int, width: int) -> Sequence[StyledSpan]:
        """Return a server's or a tool's row."""
        server, tool = self._rows[index]
        return self._server_row(server, width) if tool is None else _tool_row(server, tool, width)

    def _server_row(self, server: McpServerStatus, width: int) -> Sequence[StyledSpan]:
        icon, style, word = _LOOKS[server.state]
        mark = " " if not server.tools else "▾" if server.name in self._open else "▸"
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


def _facts(server: McpServerStatus, width: int) -> list[StyledSpan]:
    if not (server.tools or server.prompts or server.resources):
        return []
    on = sum(tool.on for tool in server.tools)
    count = plural(on, "tool") if on == len(server.tools) else f"{on} of {len(server.tools)} tools"
    more = [(server.prompts, "prompt"), (server.resources, "resource")]
    rest = [plural(len(found), noun) for found, noun in more if found]
    parts = [count, *(rest if width >= _MIN_WIDTH_FOR_FACTS else [])]
    return [(f"{' · '.join(parts)}  ", "faint"), (f"{tokens(server.tokens):>6}", "text")]


def _tool_row(server: McpServerStatus, tool: McpToolRow, width: int) -> Sequence[StyledSpan]:
    gone = server.state is not ServerState.READY
    style = "text" if tool.on and not gone else "faint"
    left: list[StyledSpan] = [
        ("     ", "text"),
        ("✓ " if tool.on else "✗ ", "good" if tool.on and not gone else "faint"),
        (f"{one_line(tool.own, 32):<22} ", style),
        (one_line(tool.description, 300), "faint"),
    ]
    return spread(left, [(f"{tokens(tool.tokens) if tool.on else 'off':>6}", style)], width)
