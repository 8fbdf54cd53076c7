"""An MCP server over standard input and output without the SDK, which takes a second to import.

What it offers is what ``mcp_server.py`` offers; tests of what a server says, rather than of what becomes of its
process and its tools, use the SDK's.
"""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

INTEGERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
MESSAGE = {"message": {"type": "string"}}
NAMES = {"names": {"type": "array", "items": {"type": "string"}}}
TOOLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("add", "Add two numbers.", INTEGERS),
    ("fail", "Fail with a message.", MESSAGE),
    ("picture", "Show a picture.", {}),
    ("document", "Hand over a document.", {}),
    ("variables", "Say which variables the server was given.", NAMES),
    ("odd name/with.signs", "A name no provider takes.", {}),
    ("wait", "Work until it is cancelled.", {}),
    ("crash", "End the server at once.", {}),
    ("grow", "Offer one more tool.", {}),
)
PROMPT = {
    "name": "review",
    "description": "Review something.",
    "arguments": [{"name": "subject", "required": True}],
}
RESOURCE = {
    "uri": "memo://today",
    "name": "today",
    "description": "What is on today.",
    "mimeType": "text/plain",
}


class NoAnswerError(Exception):
    """What was asked is never answered."""


def tools(many: int) -> Iterator[dict[str, Any]]:
    report = {"title": {"type": "string"}, "pages": {"type": "integer", "default": 1}}
    for name, description, properties in TOOLS:
        yield tool(name, description, properties, list(properties))
    for number in range(many):
        yield tool(
            f"report_{number}",
            f"Make report number {number} about topic{number}.",
            report,
            ["title"],
        )


def tool(
    name: str, description: str, properties: dict[str, Any], required: list[str]
) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "inputSchema": schema}


def call(name: str, arguments: dict[str, Any]) -> str:
    """Do what a tool does; the answer to ``wait`` never comes."""
    match name:
        case "add":
            return str(arguments["a"] + arguments["b"])
        case "fail":
            raise ValueError(arguments["message"])
        case "variables":
            return " ".join(f"{name}={os.environ.get(name)}" for name in arguments["names"])
        case "wait":
            raise NoAnswerError
        case "crash":
            os._exit(3)
    if name.startswith("report_"):
        return f"report {name.removeprefix('report_')}: {arguments['title']}, {arguments.get('pages', 1)} pages"
    raise ValueError(f"only the SDK's server has {name}")


def answer(method: str, params: dict[str, Any], many: int) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
                "serverInfo": {"name": "tracker", "version": "1"},
            }
        case "tools/list":
            return {"tools": list(tools(many))}
        case "prompts/list":
            return {"prompts": [PROMPT]}
        case "resources/list":
            return {"resources": [RESOURCE]}
        case "resources/read" if params["uri"] == RESOURCE["uri"]:
            return {
                "contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": "Tests."}]
            }
        case "prompts/get":
            text = f"Please review {params['arguments']['subject']}."
            return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
        case "tools/call":
            return {
                "content": [
                    {"type": "text", "text": call(params["name"], params.get("arguments") or {})}
                ]
            }
    raise LookupError(method)


def serve(directory: Path, many: int) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["method"] == "notifications/cancelled":
            (directory / "cancelled").touch()
        if "id" not in asked:
            continue
        said: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        with contextlib.suppress(NoAnswerError):
            try:
                said["result"] = answer(asked["method"], asked.get("params") or {}, many)
            except LookupError as error:
                said["error"] = {"code": -32601, "message": f"no such thing: {error}"}
            except ValueError as error:
                said["result"] = {
                    "content": [{"type": "text", "text": str(error)}],
                    "isError": True,
                }
            print(json.dumps(said), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--wait-for", type=Path, help="come up when this file is there")
    arguments = parser.parse_args()
    while arguments.wait_for and not arguments.wait_for.exists():
        time.sleep(0.01)
    (arguments.directory / f"started-{os.getpid()}").touch()
    serve(arguments.directory, arguments.many)


if __name__ == "__main__":
    main()
