"""A server of the Model Context Protocol with one tool, described by the program's argument."""

import json
import sys
from typing import Any


def answer(message: dict[str, Any]) -> dict[str, Any]:
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "marked", "version": "1"},
            }
        case "tools/list":
            schema = {"type": "object", "properties": {}}
            tool = {"name": "look", "description": sys.argv[1], "inputSchema": schema}
            return {"tools": [tool]}
        case _:
            return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        told = {"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}
        print(json.dumps(told), flush=True)
