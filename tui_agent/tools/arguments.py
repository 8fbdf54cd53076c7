"""Converts the JSON text that a model wrote for a tool call to the tool's arguments.

Accepts field names of other programs and small JSON errors as long as the meaning is clear. Refuses
input that is cut off or ambiguous, with a message that says what to send.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tui_agent.errors import ToolError
from tui_agent.json_text import loads, read_literal
from tui_agent.lazy import LazyPattern
from tui_agent.tools.base import DynamicTool, RawInput, Tool, ToolInput, plain_name

_ALIASES = {
    "path": (
        "filepath",
        "filename",
        "file",
        "absolutepath",
        "relativepath",
        "targetfile",
        "directory",
        "dir",
        "directorypath",
        "folder",
        "paths",
        "files",
    ),
    "content": ("contents", "text", "filetext", "filecontent"),
    "command": ("cmd", "script"),
    "background": ("runinbackground", "isbackground"),
    "pattern": ("query", "regex", "globpattern"),
    "glob": ("include", "includepattern", "fileglob", "filepattern"),
    "todos": ("items", "list", "tasks"),
    "task": ("prompt",),
    "agent": ("subagenttype", "agenttype"),
    "what": ("query", "entry", "id"),
    "url": ("uri", "link"),
    "query": ("q", "searchquery", "searchterm", "keywords"),
    "domains": ("alloweddomains", "includedomains", "domain", "sites", "site"),
    "after": ("startdate", "since", "dateafter"),
    "id": ("jobid", "job"),
}
"""Other names for fields, which models know from the tools of other programs. They are in lower
case, without hyphens and underscores."""

_COMMENTS = frozenset({"description", "explanation", "reason", "thought", "toolcallid"})
"""Names of fields in which models explain a call. They are dropped if the tool has no such field.
"""

_ONE_OF = frozenset({"path", "command", "pattern", "url"})
"""Text fields that are lists in the tools of other programs. If a call gives a list with a single
text for such a field, that text is used."""

_WRAPPERS = ("arguments", "parameters", "input", "args", "params")
"""Keys under which a model may have put the arguments instead of giving them directly."""
_ABOUT_THE_CALL = frozenset({"name", "tool", "type", "id", "function"})
"""Keys that may stand beside one of ``_WRAPPERS`` when a model writes the whole call as arguments.
"""

_NESTED_JSON = 2
"""How many times the arguments may be nested as JSON text inside a JSON string."""
_MAX_COMMAS = 20
"""Maximum number of JSON errors that are corrected in one text."""
_LITERAL_CHARS = 1_000_000
"""Maximum number of characters of a text that is parsed as a Python literal."""
_FENCE = LazyPattern(r"\A```\w*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_CLOSERS = "}])`;, \t\r\n"


def parse_arguments(tool: Tool[Any], text: str) -> ToolInput:
    """Return a call's validated arguments from the JSON text that the model wrote.

    For a ``DynamicTool``, a ``RawInput`` is returned, which is not validated. Raises ToolError if
    the meaning is unclear or a value is invalid; the message says what is wrong and what to send.
    """
    values = _object(tool, text)
    if isinstance(tool, DynamicTool):
        return RawInput(values=values)
    fields = tool.Input.model_fields
    for name in _WRAPPERS:
        inner = values.get(name)
        if (
            name not in fields
            and isinstance(inner, dict)
            and values.keys() - {name} <= _ABOUT_THE_CALL - fields.keys()
        ):
            values = inner
            break
    values = _normalized(fields, values)
    accepted: type[ToolInput] = tool.Input
    try:
        return accepted.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(_problems(tool, error.errors()))
        raise ToolError(f"{tool.name}: {problems}. {_fields(tool)}") from None


# -- text to object --------------------------------------------------------------------------------


def _object(tool: Tool[Any], text: str) -> dict[str, Any]:
    value: Any = text.strip() or "{}"
    for _ in range(1 + _NESTED_JSON):
        if isinstance(value, dict):
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError:
                half = "a string holds half of a surrogate pair (\\ud800-\\udfff); send the character itself."
                raise ToolError(f"{tool.name}: {half}") from None
            return value
        if not isinstance(value, str):
            break
        if (
            value is not text.strip()
            and (field := _only_text(tool))
            and value.lstrip()[:1] not in {"{", "[", '"'}
        ):
            value = {field: value}
            continue
        try:
            value = _decoded(value)
        except json.JSONDecodeError as error:
            raise ToolError(f"{tool.name}: {_json_problem(error)} {_fields(tool)}") from None
    raise ToolError(f"{tool.name}: the arguments must be one JSON object. {_fields(tool)}")


def _decoded(text: str) -> Any:
    """Return the value that a JSON text represents.

    Tolerates a code fence around it, trailing commas, brackets after the end, and a Python dict
    instead of JSON.

    Raises:
        json.JSONDecodeError: the text is not JSON, is cut off, or has more than one value.
    """
    fenced = _FENCE.match(text)
    if fenced:
        text = fenced[1]
    for _ in range(_MAX_COMMAS):
        try:
            return loads(text, strict=False)
        except json.JSONDecodeError as error:
            shorter = _without_slip(text, error)
            if shorter is None:
                if (literal := _literal(text)) is not None:
                    return literal
                raise
            text = shorter
    return loads(text, strict=False)


def _without_slip(text: str, error: json.JSONDecodeError) -> str | None:
    """Return the text without the trailing comma or extra brackets that caused a JSON error.

    Returns None if the error has another cause.
    """
    at = error.pos
    if error.msg.startswith("Extra data"):
        if text[at:].strip(_CLOSERS):
            return None
        return text[:at]
    if text[at : at + 1] == ",":
        comma = at
    else:
        comma = len(text[:at].rstrip()) - 1
    if comma >= 0 and text[comma] == "," and text[comma + 1 :].lstrip()[:1] in {"}", "]"}:
        return text[:comma] + text[comma + 1 :]
    return None


def _literal(text: str) -> dict[str, Any] | None:
    """Parse a text as the literal of a Python dict, which may contain single quotes, True or None.

    Returns None if the text isn't the literal of a dict whose keys are strings, or is too long.
    """
    if not text.startswith("{") or len(text) > _LITERAL_CHARS:
        return None
    try:
        value = read_literal(text)
    except ValueError:
        return None
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return value
    return None


def _json_problem(error: json.JSONDecodeError) -> str:
    if error.msg.startswith("Extra data"):
        return "there is more than one JSON object in the arguments; send a call for each."
    if error.msg.startswith("Unterminated string") or not error.doc[error.pos :].strip():
        return (
            f"the arguments are not valid JSON: they break off after {len(error.doc):,} "
            f"characters. Send less at once."
        )
    near = error.doc[max(error.pos - 20, 0) : error.pos + 20]
    return f"the arguments are not valid JSON: {error.msg} at character {error.pos}, near {near!r}."


# -- object to arguments ---------------------------------------------------------------------------


def _only_text(tool: Tool[Any]) -> str | None:
    """Return the name of the tool's only required field if that is a text field, else None.

    If the arguments are only a text, the text is taken as this field's value.
    """
    if isinstance(tool, DynamicTool):
        return None
    fields: Mapping[str, FieldInfo] = tool.Input.model_fields
    required = [name for name, field in fields.items() if field.is_required()]
    if len(required) == 1 and fields[required[0]].annotation is str:
        return required[0]
    return None


def _normalized(fields: Mapping[str, FieldInfo], values: dict[str, Any]) -> dict[str, Any]:
    tidy: dict[str, Any] = {}
    for name, value in values.items():
        known = _field_name(name, fields)
        if known not in fields and plain_name(name) in _COMMENTS:
            continue
        if known != name and (known in values or known in tidy):
            known = name
        field = fields.get(known)
        if field is None:
            tidy[known] = value
        elif value is not None or field.is_required():
            tidy[known] = _converted(known, field, value)
    return tidy


def _field_name(name: str, fields: Iterable[str]) -> str:
    """Return the tool's field with this name, spelling or alias, or else the name unchanged."""
    plain = plain_name(name)
    if name in fields:
        return name
    for field in fields:
        if plain == plain_name(field) or plain in _ALIASES.get(field, ()):
            return field
    return name


def _converted(name: str, field: FieldInfo, value: Any) -> Any:
    if getattr(field.annotation, "__origin__", None) in {tuple, list}:
        value = _from_json_text(value)
        if isinstance(value, list) and not _holds_texts(field):
            return [_from_json_text(item) for item in value]
        return value
    if (
        name in _ONE_OF
        and isinstance(value, list)
        and len(value) == 1
        and isinstance(value[0], str)
    ):
        return value[0]
    return value


def _from_json_text(value: Any) -> Any:
    """Return the decoded value if ``value`` is a JSON text; otherwise return it unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value, strict=False)
    except json.JSONDecodeError:
        return value


def _holds_texts(field: FieldInfo) -> bool:
    """Return False if a list field's items are objects (``ToolInput``), True otherwise."""
    kinds = getattr(field.annotation, "__args__", ())
    return not kinds or not isinstance(kinds[0], type) or not issubclass(kinds[0], ToolInput)


# -- problems --------------------------------------------------------------------------------------


def _problems(tool: Tool[Any], found: Sequence[ErrorDetails]) -> Iterator[str]:
    inner = {row["loc"][0] for row in found if len(row["loc"]) > 1}
    for row in found:
        location = row["loc"]
        kind = row["type"]
        message = row["msg"]
        name = ".".join(map(str, location)) or "arguments"
        if kind == "missing":
            yield f"{name} is missing"
        elif kind == "extra_forbidden":
            instead = tool.instead.get(str(location[-1]))
            yield f"{name} is not a field" + (f", {instead}" if instead else "")
        elif kind == "too_short":
            # A list may be too short only because its invalid items are missing, whose errors are
            # already reported.
            if location and location[0] not in inner:
                yield f"{name} is empty"
        else:
            yield f"{name}: {message[:1].lower()}{message[1:]}"


def _fields(tool: Tool[Any]) -> str:
    parameters = tool.schema().parameters
    required = set(parameters.get("required", ()))
    names = []
    for name, schema in parameters.get("properties", {}).items():
        needed = ", required" if name in required else ""
        names.append(f"{name} ({_kind(schema)}{needed})")
    return f"Fields: {', '.join(names)}."


def _kind(schema: dict[str, Any]) -> str:
    inner = schema.get("items", {}).get("properties")
    if inner:
        return f"list of {{{', '.join(inner)}}}"
    return str(schema.get("type", "value"))
