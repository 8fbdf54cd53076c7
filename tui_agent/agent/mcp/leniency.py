"""Repairs the answers of MCP servers that break the protocol, before the SDK validates them.

The SDK rejects a whole list of tools for one invalid row, a whole result for one invalid block, and
a line for one invalid character. This module converts each invalid part or leaves it out.
(``model.tool_schemas`` adapts schemas to providers.)
"""

import json
from typing import Any

from tui_agent.json_text import as_dict, as_text, loads
from tui_agent.safe_text import one_line, valid

_KEPT = (
    "name",
    "title",
    "description",
    "inputSchema",
    "annotations",
    "_meta",
    "execution",
)
"""Fields of a tool's definition that are kept; all others are removed."""
_FLAGS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""Annotations in a tool's definition that are kept if they are booleans."""
_SHOWN_CHARS = 60
"""Maximum characters of a tool's name in a message."""
_MAX_DEPTH = 40
"""Maximum nesting of a tool's schema. A deeper one is replaced with an empty schema."""
_MAX_BATCH = 1_000
"""Maximum number of messages read from one line. The others are dropped."""
_UNNAMED_ERROR = -32603
"""JSON-RPC's code for an internal error, used for errors without a code."""
_ABILITY_FLAGS = ("listChanged", "subscribe")
"""Fields of a server capability that are booleans. All other fields are objects."""

_REQUIRED: dict[str, tuple[str, ...]] = {
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}
"""Text fields that a content block must have, by its type. A block without them becomes a text block
that contains its JSON."""
_RESOURCE = ("uri", "mimeType", "text", "blob")
"""Fields of an embedded resource that are kept; all others are removed."""


def repair_line(written: object) -> list[dict[str, Any]]:
    """Return the repaired messages of a line that the SDK rejected; [] if it contains none.

    Repairs unpaired surrogates, several messages in one line (at most ``_MAX_BATCH``), a missing
    JSON-RPC version, and a result or error of the wrong type. ``written`` is the line or the JSON
    value in it.
    """
    if isinstance(written, str):
        try:
            text = json.dumps(loads(written, strict=False), ensure_ascii=False)
            written = loads(valid(text))
        except ValueError:
            return []
    if not isinstance(written, list):
        written = [written]
    messages = []
    for one in written[:_MAX_BATCH]:
        message = dict(as_dict(one))
        is_answer = "id" in message and not {"result", "error"}.isdisjoint(message)
        if "method" in message or is_answer:
            number = message.get("id")
            if isinstance(number, float) and number.is_integer():
                message["id"] = int(number)
            _repair_response(message)
            messages.append({**message, "jsonrpc": "2.0"})
    return messages


def _repair_response(message: dict[str, Any]) -> None:
    """Repair a response in place, so that it has an object as its result, or a valid error."""
    if "method" in message:
        return
    error = message.pop("error", None)
    if error or "result" not in message:
        message.pop("result", None)
        message["error"] = _error(error)
    elif not isinstance(message["result"], dict):
        message["result"] = {"content": message["result"]}


def _error(error: object) -> dict[str, Any]:
    given = as_dict(error)
    code = given.get("code")
    if not isinstance(code, int):
        code = _UNNAMED_ERROR
    words = given.get("message")
    if not isinstance(words, str):
        words = json.dumps(error, ensure_ascii=False)
    repaired = {"code": code, "message": words}
    if "data" in given:
        repaired["data"] = given["data"]
    return repaired


def repair_introduction(result: dict[str, Any]) -> None:
    """Repair a result of ``initialize`` in place: name, version, capabilities, instructions.

    Does nothing for other results.
    """
    if "protocolVersion" not in result:
        return
    able = result.get("capabilities")
    if isinstance(able, list):
        able = {name: True for name in able if isinstance(name, str)}
    result["capabilities"] = {
        name: _ability(value)
        for name, value in as_dict(able).items()
        if value or isinstance(value, dict)
    }
    about = as_dict(result.get("serverInfo"))
    if isinstance(about.get("name"), str) and isinstance(about.get("version"), str):
        result["serverInfo"] = {"name": about["name"], "version": about["version"]}
    else:
        result["serverInfo"] = {"name": "unnamed", "version": "unknown"}
    if not isinstance(result.get("instructions", ""), str):
        del result["instructions"]


def _ability(value: object) -> dict[str, Any]:
    """Return the fields of one capability that have the type required by the protocol."""
    parts = {}
    for name, part in as_dict(value).items():
        wanted = bool if name in _ABILITY_FLAGS else dict
        if isinstance(part, wanted):
            parts[name] = part
    return parts


def repair_page(result: dict[str, Any]) -> None:
    """Repair ``nextCursor`` of a result in place, if it isn't a string.

    A number becomes a string; any other value is removed.
    """
    cursor = result.get("nextCursor")
    if cursor is None or isinstance(cursor, str):
        return
    if isinstance(cursor, int | float) and not isinstance(cursor, bool):
        result["nextCursor"] = str(cursor)
    else:
        del result["nextCursor"]


def repair_tool_list(result: dict[str, Any]) -> list[str]:
    """Repair the list of tools in a result in place, and return a sentence for each tool left out.

    Does nothing for results without tools.
    """
    if "tools" not in result:
        return []
    rows = result["tools"]
    if isinstance(rows, dict):
        rows = [{"name": name, **as_dict(row)} for name, row in rows.items()]
    elif not isinstance(rows, list):
        rows = []
    kept: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for number, row in enumerate(rows, 1):
        name = as_text(as_dict(row).get("name"))
        if not name.strip():
            problems.append(f"Tool {number} has no name and is left out.")
        elif name in kept:
            problems.append(
                f"There are two tools “{one_line(name, _SHOWN_CHARS)}”; the second one is left out."
            )
        else:
            kept[name] = _repaired_tool(row)
    result["tools"] = list(kept.values())
    return problems


def repair_tool_result(result: dict[str, Any]) -> None:
    """Repair the content blocks, error flag and metadata of a tool call's result in place.

    Does nothing for other results.
    """
    structured = result.get("structuredContent")
    if "content" not in result and structured is None and "toolResult" not in result:
        return
    content = result.get("content", result.pop("toolResult", None))
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    elif content is None:
        content = []
    elif not isinstance(content, list):
        content = [content]
    if structured is not None and not isinstance(structured, dict):
        del result["structuredContent"]
        if not content:
            content = [_as_text(structured)]
    result["content"] = [_block(block) for block in content]
    result["isError"] = result.get("isError") not in (None, False, "", "false")
    if not isinstance(result.get("_meta", {}), dict):
        del result["_meta"]


def _block(block: object) -> dict[str, Any]:
    """Return a valid content block with only the known fields.

    A block of an unknown type, or without a required field, becomes a text block that contains its
    JSON.
    """
    given = as_dict(block)
    kind = as_text(given.get("type"))
    if kind == "text" and isinstance(given.get("text"), str | None):
        return {"type": kind, "text": as_text(given.get("text"))}
    embedded = as_dict(given.get("resource"))
    # Some servers write null for a field that they don't use.
    resource = {key: embedded[key] for key in _RESOURCE if embedded.get(key) is not None}
    if kind == "resource" and _is_resource(resource):
        return {"type": kind, "resource": resource}
    needed = _REQUIRED.get(kind)
    if needed is None or not all(isinstance(given.get(name), str) for name in needed):
        return _as_text(block)
    known = {name: given[name] for name in needed}
    if kind == "resource_link" and isinstance(given.get("description"), str):
        known["description"] = given["description"]
    return {"type": kind, **known}


def _is_resource(resource: dict[str, Any]) -> bool:
    has_content = isinstance(resource.get("text", resource.get("blob")), str)
    is_known = isinstance(resource.get("mimeType", ""), str)
    return isinstance(resource.get("uri"), str) and has_content and is_known


def _as_text(value: object) -> dict[str, Any]:
    return {"type": "text", "text": json.dumps(value, ensure_ascii=False)}


def _repaired_tool(row: dict[str, Any]) -> dict[str, Any]:
    """Return a tool with only the fields that are used, each of a valid type."""
    tool = {key: row[key] for key in _KEPT if key in row}
    for key in ("title", "description"):
        if key in tool and not isinstance(tool[key], str):
            del tool[key]
    tool["inputSchema"] = _object(row.get("inputSchema"))
    flags = as_dict(tool.pop("annotations", None))
    if known := {key: flags[key] for key in _FLAGS if isinstance(flags.get(key), bool)}:
        tool["annotations"] = known
    if not isinstance(tool.get("_meta", {}), dict):
        del tool["_meta"]
    if as_dict(tool.get("execution")).get("taskSupport") not in (
        "optional",
        "required",
        "forbidden",
    ):
        tool.pop("execution", None)
    return tool


def _object(schema: object) -> dict[str, Any]:
    """Return a valid schema for a tool's arguments, of type "object".

    Invalid parts are removed. A schema that is nested too deeply is replaced with an empty one.
    """
    given = dict(as_dict(schema))
    if _is_deeper(given, _MAX_DEPTH):
        given = {}
    if not isinstance(given.get("properties", {}), dict):
        del given["properties"]
    properties = given.get("properties", {})
    if any(not isinstance(value, dict) for value in properties.values()):
        # A boolean is a valid schema, but not every version of the protocol accepts it.
        given["properties"] = {
            name: as_dict(value)
            for name, value in properties.items()
            if isinstance(value, dict | bool)
        }
    needed = given.get("required", [])
    if not isinstance(needed, list) or not all(isinstance(name, str) for name in needed):
        del given["required"]
    return {**given, "type": "object"}


def _is_deeper(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list):
        inner = value
    else:
        return False
    return levels == 0 or any(_is_deeper(one, levels - 1) for one in inner)
