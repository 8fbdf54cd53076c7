"""The built-in tools in their fixed order, and how a call's name and JSON text become a tool and its arguments."""

import difflib
import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from tui_agent.tools.base import Tool, ToolInput
from tui_agent.tools.dynamic import DynamicTool, RawInput
from tui_agent.tools.errors import ToolError
from tui_agent.tools.settings import FetchSettings

_ALIASES = {
    "path": ("file_path", "filePath", "filename", "file", "filepath", "directory", "dir"),
    "content": ("contents", "text", "file_text"),
    "command": ("cmd", "script"),
    "pattern": ("query", "regex"),
    "glob": ("include",),
    "todos": ("items", "list", "tasks"),
}
"""Names that models bring along from other programs' tools."""

_COMMENTS = frozenset({"description", "explanation", "reason", "thought"})
"""Fields that only explain a call; dropped where a tool has none of that name."""

_NESTED_JSON = 2


def builtin_tools(fetch: FetchSettings | None = None) -> tuple[Tool[Any], ...]:
    """Return one of each tool; the order is part of every request's cached prefix."""
    from tui_agent.tools.bash import BashTool
    from tui_agent.tools.edit import EditTool
    from tui_agent.tools.fetching import Web
    from tui_agent.tools.glob import GlobTool
    from tui_agent.tools.grep import GrepTool
    from tui_agent.tools.job import JobTool
    from tui_agent.tools.ls import LsTool
    from tui_agent.tools.read import ReadTool
    from tui_agent.tools.recall import RecallTool
    from tui_agent.tools.todo import TodoTool
    from tui_agent.tools.webfetch import WebFetchTool
    from tui_agent.tools.write import WriteTool

    return (
        ReadTool(),
        EditTool(),
        WriteTool(),
        BashTool(),
        GrepTool(),
        GlobTool(),
        LsTool(),
        RecallTool(),
        WebFetchTool(Web(fetch or FetchSettings())),
        TodoTool(),
        JobTool(),
    )


def find_tool(name: str, tools: Iterable[Tool[Any]]) -> Tool[Any]:
    """Return the tool that a call names.

    Raises:
        ToolError: there is none; the message names those there are.
    """
    by_name = {tool.name: tool for tool in tools}
    plain = name.strip().rsplit(".", 1)[-1].rsplit(":", 1)[-1].lower()
    if name in by_name or plain in by_name:
        return by_name.get(name) or by_name[plain]
    near = difflib.get_close_matches(plain, by_name, n=2, cutoff=0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    raise ToolError(f"There is no tool {name!r}.{meant} Tools: {', '.join(by_name)}.")


def parse_arguments(tool: Tool[Any], text: str) -> ToolInput:
    """Return a call's arguments from the JSON text the model wrote.

    Looks past what models get wrong without meaning anything else: an object encoded twice, null for a field that
    may be left out, numbers and lists as strings, raw line breaks in strings, field names of other programs.

    Raises:
        ToolError: there is no telling what was meant; the message names the fields and what they take.
    """
    values = _object(tool, text)
    if isinstance(tool, DynamicTool):
        return RawInput(values=values)
    values = _tidied(tool, values)
    accepted: type[ToolInput] = tool.Input
    try:
        return accepted.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(_problem(row["loc"], row["type"], row["msg"]) for row in error.errors())
        raise ToolError(f"{tool.name}: {problems}. {_fields(tool)}") from None


def _object(tool: Tool[Any], text: str) -> dict[str, Any]:
    value: Any = text.strip() or "{}"
    for _ in range(1 + _NESTED_JSON):
        if isinstance(value, dict):
            _refuse_halves(tool, value)
            return value
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value, strict=False)
        except json.JSONDecodeError as error:
            near = error.doc[max(error.pos - 20, 0) : error.pos + 20]
            raise ToolError(
                f"{tool.name}: the arguments are not valid JSON: {error.msg} at character {error.pos}, "
                f"near {near!r}. {_fields(tool)}"
            ) from None
        except RecursionError:
            break
    raise ToolError(f"{tool.name}: the arguments must be one JSON object. {_fields(tool)}")


def _refuse_halves(tool: Tool[Any], values: dict[str, Any]) -> None:
    """Stop arguments that no file, process or store could take."""
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ToolError(
            f"{tool.name}: a string holds half of a surrogate pair (\\ud800-\\udfff); send the character itself."
        ) from None


def _tidied(tool: Tool[Any], values: dict[str, Any]) -> dict[str, Any]:
    fields = tool.Input.model_fields
    tidy = dict(values)
    for name, aliases in _ALIASES.items():
        for alias in aliases:
            if name in fields and name not in tidy and alias in tidy and alias not in fields:
                tidy[name] = tidy.pop(alias)
    for name in list(tidy):
        field = fields.get(name)
        if field is None:
            if name in _COMMENTS:
                del tidy[name]
        elif tidy[name] is None and not field.is_required():
            del tidy[name]
        elif isinstance(tidy[name], str) and _takes_list(field):
            tidy[name] = _list_in(tidy[name])
    return tidy


def _takes_list(field: FieldInfo) -> bool:
    return getattr(field.annotation, "__origin__", None) in {tuple, list}


def _list_in(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (json.JSONDecodeError, RecursionError):
        return text


def _problem(location: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(map(str, location)) or "arguments"
    if kind == "missing":
        return f"{name} is missing"
    if kind == "extra_forbidden":
        return f"{name} is not a field"
    return f"{name}: {message[:1].lower()}{message[1:]}"


def _fields(tool: Tool[Any]) -> str:
    parameters = tool.schema().parameters
    required = set(parameters.get("required", ()))
    names = [
        f"{name} ({schema.get('type', 'value')}{', required' if name in required else ''})"
        for name, schema in parameters.get("properties", {}).items()
    ]
    return f"Fields: {', '.join(names)}."
