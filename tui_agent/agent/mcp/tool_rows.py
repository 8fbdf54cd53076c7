"""Reads a server's list of tools and its results leniently, before the SDK checks all of either at once.

The SDK refuses a whole list for one row that the protocol doesn't know. Here such a row gets a
schema that it takes; that of a provider's format is made where requests are
(``model.tool_schemas``). A row without a name is left out.
"""

from typing import Any

from tui_agent.json_text import as_dict, as_text
from tui_agent.safe_text import one_line

_KEPT = (
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "_meta",
    "execution",
)
_FLAGS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SHOWN_CHARS = 60


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
    """Give the result of a call, in place, the content that the protocol wants: some servers leave it out."""
    content = result.get("content")
    if isinstance(content, str):
        result["content"] = [{"type": "text", "text": content}]
    elif not isinstance(content, list) and "structuredContent" in result:
        result["content"] = []


def _mended(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the fields that the program uses, as the protocol has them."""
    tool = {key: row[key] for key in _KEPT if key in row}
    for key in ("title", "description"):
        if key in tool and not isinstance(tool[key], str):
            del tool[key]
    tool["inputSchema"] = _object(row.get("inputSchema"))
    if as_dict(tool.get("outputSchema")).get("type") != "object":
        # It would only check what the server answers.
        tool.pop("outputSchema", None)
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
    if not isinstance(given.get("properties", {}), dict):
        del given["properties"]
    properties = given.get("properties", {})
    if any(not isinstance(value, dict) for value in properties.values()):
        # "true" is a schema too, which not every version of the protocol has.
        given["properties"] = {
            name: value if isinstance(value, dict) else {}
            for name, value in properties.items()
            if isinstance(value, dict | bool)
        }
    needed = given.get("required", [])
    if not isinstance(needed, list) or not all(isinstance(name, str) for name in needed):
        del given["required"]
    return {**given, "type": "object"}
