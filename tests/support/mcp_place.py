"""A hub of MCP servers with what it said, and the SDK's server on a port of this machine, for tests."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

from tui_agent.agent.events import Notice
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.mcp.records import ServerState
from tui_agent.agent.mcp.settings import (
    ConnectionContext,
    FoundServers,
    McpServerSettings,
    ServerSpec,
    Timeouts,
)
from tui_agent.context.truncation import OutputLimits
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.base import ToolContext, ToolResult
from tui_agent.tools.reads import FileReads
from tui_agent.tools.registry import find_tool

ROOT = Path(__file__).parents[2]
PLAIN_SERVER = Path(__file__).with_name("plain_mcp_server.py")
QUICK = Timeouts(settle=20, pauses=(0, 0))


class Place:
    """A hub with servers of its own, and everything it said."""

    def __init__(self, directory: Path, patience: Timeouts = QUICK) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.specs: list[ServerSpec] = []
        self.blobs: dict[str, bytes] = {}
        self.notices: list[Notice] = []
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        around = ConnectionContext(
            {"SECRET": "s3cret"}, environment, directory / "log", directory / "tokens"
        )
        self.hub = McpHub(lambda: FoundServers(tuple(self.specs)), around, patience)
        self.hub.listeners.append(self.notices.append)

    def add(self, name: str, **settings: Any) -> None:
        self.specs.append(ServerSpec(name, McpServerSettings(**settings), "user", self.directory))

    def add_stdio(self, name: str = "tracker", *more: str, **settings: Any) -> None:
        arguments = (str(PLAIN_SERVER), str(self.directory), *more)
        self.add(name, command=sys.executable, args=arguments, **settings)

    def add_sdk_stdio(self) -> None:
        """Add a server made with the SDK, which takes a second of processor time to start."""
        self.add(
            "tracker",
            command=sys.executable,
            args=("-m", "tests.support.mcp_server", str(self.directory)),
        )

    def put_blob(self, data: bytes) -> str:
        self.blobs[str(len(self.blobs))] = data
        return str(len(self.blobs) - 1)

    def state(self, name: str = "tracker") -> ServerState:
        return next(row.state for row in self.hub.status() if row.name == name)

    async def call(
        self, name: str, report: Callable[[str], None] = lambda _text: None, /, **arguments: Any
    ) -> ToolResult:
        tool = find_tool(name, self.hub.known())
        tool, parsed = tool.resolve(parse_arguments(tool, json.dumps(arguments)))
        context = ToolContext(
            self.directory,
            self.directory,
            OutputLimits(),
            FileReads(),
            put_blob=self.put_blob,
            report=report,
        )
        return await tool.run(parsed, context)

    def pids(self) -> list[int]:
        return [
            int(path.name.removeprefix("started-")) for path in self.directory.glob("started-*")
        ]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def served(
    mcp: MCPServer, port: int, *, sse: bool = False, **options: Any
) -> AsyncIterator[None]:
    app = mcp.sse_app() if sse else mcp.streamable_http_app(**options)
    # Streams that clients keep open are cut off, as when a server is killed: nobody waits for them to end.
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=port,
        log_level="critical",
        lifespan="on",
        timeout_graceful_shutdown=0,
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait([task])
