"""A small MCP server made with the SDK, for tests: over standard input and output, or as a web application."""

import argparse
import asyncio
import os
from pathlib import Path

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import EmbeddedResource, TextResourceContents

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301"
    "0100c9fe92ef0000000049454e44ae426082"
)


def make_server(directory: Path) -> MCPServer:
    server = MCPServer("tracker", log_level="ERROR")
    _add_answers(server)
    _add_work(server, directory)
    return server


def _add_answers(server: MCPServer) -> None:
    @server.tool(description="Add two numbers.")
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool(description="Fail with a message.")
    def fail(message: str) -> str:
        raise ToolError(message)

    @server.tool(description="Show a picture.")
    def picture() -> Image:
        return Image(data=PIXEL, format="png")

    @server.tool(description="Hand over a document.")
    def document() -> EmbeddedResource:
        return EmbeddedResource(
            resource=TextResourceContents(
                uri="memo://plan", mime_type="text/plain", text="The plan is to rest."
            )
        )

    @server.tool(description="Say which variables the server was given.")
    def variables(names: list[str]) -> str:
        return " ".join(f"{name}={os.environ.get(name)}" for name in names)

    @server.tool(name="odd name/with.signs", description="A name no provider takes.")
    def odd() -> str:
        return "odd"

    @server.prompt(description="Review something.")
    def review(subject: str) -> str:
        return f"Please review {subject}."

    @server.resource(
        "memo://today", name="today", description="What is on today.", mime_type="text/plain"
    )
    def today() -> str:
        return "Tests."


def _add_work(server: MCPServer, directory: Path) -> None:
    @server.tool(description="Work until it is cancelled.")
    async def wait(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "working")
        (directory / "waiting").touch()
        try:
            await asyncio.Event().wait()
        finally:
            (directory / "cancelled").touch()
        return "never"

    @server.tool(description="End the server at once.")
    def crash() -> str:
        os._exit(3)

    @server.tool(description="Offer one more tool.")
    async def grow(ctx: Context) -> str:
        server.add_tool(lambda: "new", name="grown", description="A tool that came later.")
        await ctx.notify_tools_changed()
        return "grown"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    (arguments.directory / f"started-{os.getpid()}").touch()
    make_server(arguments.directory).run("stdio")


if __name__ == "__main__":
    main()
