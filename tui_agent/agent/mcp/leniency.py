"""Reads what a server answers leniently, before the SDK checks all of it at once.

The SDK refuses a whole list for one row that the protocol doesn't know, a whole result for one
block, and a line for one character. Here each gets a form that it takes; the schema of a provider's
format is made where requests are (``model.tool_schemas``). A row without a name is left out.
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
_FLAGS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SHOWN_CHARS = 60
_MAX_DEPTH = 40
"""Levels of a schema; what nests deeper is left out."""

_REQUIRED: dict[str, tuple[str, ...]] = {
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}
"""Texts without which a block of a result means nothing."""


_RESOURCE = ("uri", "mimeType", "text", "blob")
"""Fields of a resource that are used."""


def read_line(written: object) -> dict[str, Any] | None:
    """Return the message in a line that the SDK can't read, None where there is none.

    It may have halves of surrogate pairs, nest too deeply for the SDK, stand in a list of its own,
    or leave the version of JSON-RPC out.
    """
    if isinstance(written, str):
        try:
            text = json.dumps(loads(written, strict=False), ensure_ascii=False)
            written = loads(valid(text))
        except ValueError:
            return None
    if isinstance(written, list) and len(written) == 1:
        written = written[0]
    message = as_dict(written)
    if "method" not in message and not ("id" in message and {"result", "error"} & message.keys()):
        return None
    return {**message, "jsonrpc": "2.0"}


def read_introduction(result: dict[str, Any]) -> None:
    """Mend in place what a server says of itself: its name, and what it can do."""
    if "protocolVersion" not in result:
        return
    able = as_dict(result.get("capabilities"))
    result["capabilities"] = {
        name: as_dict(value) for name, value in able.items() if value or isinstance(value, dict)
    }
    about = as_dict(result.get("serverInfo"))
    if not isinstance(about.get("name"), str) or not isinstance(about.get("version"), str):
        result["serverInfo"] = {"name": "unnamed", "version": "unknown"}
    if not isinstance(result.get("instructions", ""), str):
        del result["instructions"]


def read_rows(result: dict[str, Any]) -> list[str]:
    """Mend the tools of a result in place; return a sentence for each that is left out."""
    rows = result.get("tools")
    if not isinstance(rows, list):
        return []
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
            kept[name] = _mended(row)
    result["tools"] = list(kept.values())
    return problems


def read_answer(result: dict[str, Any]) -> None:
    """Give the result of a call, in place, the content that the protocol wants."""
    structured = result.get("structuredContent")
    if "content" not in result and structured is None and "toolResult" not in result:
        return
    content = result.get("content", result.pop("toolResult", None))
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    elif isinstance(content, dict):
        content = [content]
    elif not isinstance(content, list):
        content = []
    if structured is not None and not isinstance(structured, dict):
        del result["structuredContent"]
        if not content:
            content = [_as_text(structured)]
    result["content"] = [_block(block) for block in content]
    result["isError"] = bool(result.get("isError"))
    if not isinstance(result.get("_meta", {}), dict):
        del result["_meta"]


def _block(block: object) -> dict[str, Any]:
    """Return a block of a result as the protocol has it, its JSON as text where it has no such kind."""
    given = as_dict(block)
    kind = as_text(given.get("type"))
    if kind == "text" and isinstance(given.get("text"), str | None):
        return {"type": kind, "text": as_text(given.get("text"))}
    if kind == "resource" and _is_resource(as_dict(given.get("resource"))):
        resource = {key: value for key, value in given["resource"].items() if key in _RESOURCE}
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


def _mended(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the fields that the program uses, as the protocol has them."""
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
    """Return a schema of arguments that the protocol takes: an object, with properties and names that are needed."""
    given = dict(as_dict(schema))
    if _is_deeper(given, _MAX_DEPTH):
        given = {}
    if not isinstance(given.get("properties", {}), dict):
        del given["properties"]
    properties = given.get("properties", {})
    if any(not isinstance(value, dict) for value in properties.values()):
        # "true" is a schema too, which not every version of the protocol has.
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
