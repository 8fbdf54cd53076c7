"""Converts tool schemas so that every provider accepts them, and maps calls' arguments back.

All formats accept this form: an object at the top without alternatives, no references, items for
each array, property names of plain characters, limited depth. A schema that already has this form
stays byte for byte the same. Sources: OpenAI, "Function calling" and "Structured outputs";
Anthropic, "Tool use" (pattern of property names); Google, "Function calling"
(``parametersJsonSchema``). Schemas that a server still refuses are simplified in ``forms``.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from tui_agent.context.request import Message, ModelRequest, RequestToolCall
from tui_agent.json_text import as_dict, as_list, loads
from tui_agent.lazy import LazyPattern, dataclass, frozen
from tui_agent.model.protocol import ModelEvent, ToolCallReady
from tui_agent.model.providers import WireName
from tui_agent.session.entries import ToolSchema
from tui_agent.whole_numbers import whole_number

MAX_DEPTH = 10
"""Maximum nesting of a schema that OpenAI accepts. Deeper parts keep only their description."""
MAX_PARTS = 2_000
"""Maximum number of schemas in a tool's schema after references are inlined. Further ones become
{}."""
MAX_NAME_CHARS = 64
"""Maximum length of a property's name, in characters."""

_NAME = LazyPattern(r"[a-zA-Z0-9_.-]{1,64}")
_ODD = LazyPattern(r"[^a-zA-Z0-9_.-]+")
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_NOT_OF_GEMINI = frozenset(
    {
        "const",
        "default",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "uniqueItems",
        "contentEncoding",
        "contentMediaType",
    }
)
"""Keywords that are left out for Google, because it doesn't document them for
``parametersJsonSchema``."""
_COUNTS = {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
"""Keywords of JSON Schema whose value is a count, such as the maximum length of a string."""
_OF_TYPE = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""The keywords of each type of schema. If a schema states no type, its keywords imply the type."""

Schema = dict[str, Any]


@dataclass
class Renamed:
    """The renamed properties of a schema and of the schemas in it."""

    names: dict[str, str] = field(default_factory=dict)
    """Original names of the renamed properties, by new name."""
    inner: dict[str, "Renamed"] = field(default_factory=dict)
    """Renamed properties of nested schemas, by the new name of the property that contains the
    schema; "*" stands for items."""

    def __bool__(self) -> bool:
        return bool(self.names) or any(self.inner.values())

    def back(self, value: Any) -> Any:
        """Return a JSON value in which the renamed properties have their original names again."""
        if isinstance(value, list) and "*" in self.inner:
            return [self.inner["*"].back(item) for item in value]
        if not isinstance(value, dict):
            return value
        made = {}
        for key, item in value.items():
            inner = self.inner.get(key)
            made[self.names.get(key, key)] = inner.back(item) if inner is not None else item
        return made

    def out(self, value: Any) -> Any:
        """Return a JSON value with the new property names, under which the model knows them."""
        if isinstance(value, list) and "*" in self.inner:
            return [self.inner["*"].out(item) for item in value]
        if not isinstance(value, dict):
            return value
        new_names = self.new_names
        made = {}
        for key, item in value.items():
            new = new_names.get(key, str(key))
            inner = self.inner.get(new)
            made[new] = inner.out(item) if inner is not None else item
        return made

    @property
    def new_names(self) -> dict[str, str]:
        """The new names of renamed properties, by original name."""
        return {original: new for new, original in self.names.items()}


@frozen
class MendedTool:
    """A tool with a converted schema, and the property names that were changed for it."""

    tool: ToolSchema
    renamed: Renamed

    def arguments_back(self, arguments: str) -> str:
        """Return a call's arguments (JSON text) with the tool's own property names.

        Text that isn't a JSON object stays unchanged.
        """
        if self.renamed:
            return _mapped(arguments, self.renamed.back)
        return arguments

    def arguments_out(self, arguments: str) -> str:
        if self.renamed:
            return _mapped(arguments, self.renamed.out)
        return arguments


@frozen
class MendedTools:
    """The tools of a request, converted for its format."""

    given: tuple[ToolSchema, ...]
    """The tools as they were given, before the conversion."""
    wire: WireName | None
    """The provider format that the tools are converted for; None for litellm."""
    tools: tuple[MendedTool, ...]

    @classmethod
    def of(cls, tools: tuple[ToolSchema, ...], wire: WireName | None) -> "MendedTools":
        return cls(tools, wire, tuple(mend(tool, wire) for tool in tools))

    def are(self, tools: tuple[ToolSchema, ...], wire: WireName | None) -> bool:
        return (tools is self.given or tools == self.given) and wire == self.wire

    def out(self, request: ModelRequest) -> ModelRequest:
        """Return the request with converted tools and with new property names in earlier calls."""
        tools = tuple(mended.tool for mended in self.tools)
        renamed = self._renamed()
        if not renamed:
            return request if tools == request.tools else replace(request, tools=tools)
        messages = tuple(_with_calls_out(message, renamed) for message in request.messages)
        return replace(request, tools=tools, messages=messages)

    def back(self, event: ModelEvent) -> ModelEvent:
        """Return the event; a complete call in it has the original property names again."""
        if not isinstance(event, ToolCallReady):
            return event
        mended = self._renamed().get(event.tool)
        if mended is None:
            return event
        return replace(event, arguments=mended.arguments_back(event.arguments))

    def _renamed(self) -> dict[str, MendedTool]:
        return {mended.tool.name: mended for mended in self.tools if mended.renamed}


def _with_calls_out(message: Message, renamed: Mapping[str, MendedTool]) -> Message:
    if not any(call.tool in renamed for call in message.tool_calls):
        return message
    calls: list[RequestToolCall] = []
    for call in message.tool_calls:
        mended = renamed.get(call.tool)
        if mended is None:
            calls.append(call)
        else:
            calls.append(replace(call, arguments=mended.arguments_out(call.arguments)))
    return replace(message, tool_calls=tuple(calls))


def mend(tool: ToolSchema, wire: WireName | None = None) -> MendedTool:
    """Convert a tool's schema to one that the format accepts. ``wire`` is None for litellm.

    ``tool.parameters`` may be any JSON value; one that isn't an object counts as {}.
    """
    mender = _Mender(tool.parameters, _NOT_OF_GEMINI if wire == "gemini" else frozenset())
    renamed = Renamed()
    parameters = mender.top(renamed)
    if parameters == tool.parameters:
        return MendedTool(tool, renamed)
    return MendedTool(tool.model_copy(update={"parameters": parameters}), renamed)


def _mapped(arguments: str, change: Any) -> str:
    try:
        values = loads(arguments)
    except ValueError:
        return arguments
    if isinstance(values, dict):
        return json.dumps(change(values), ensure_ascii=False)
    return arguments


@frozen
class _Place:
    """The position of a schema within the tool's whole schema, during the conversion."""

    depth: int
    """Nesting level of the schema; 1 for the tool's whole schema."""
    seen: tuple[str, ...]
    """References that have been followed so far, so that circular ones are noticed."""
    renamed: Renamed
    """The object that receives the renamed properties of the schema."""

    def inside(self, renamed: Renamed) -> "_Place":
        return replace(self, depth=self.depth + 1, renamed=renamed)


class _Mender:
    """Converts the schema of one tool. ``left_out`` are keywords that the format doesn't accept."""

    def __init__(self, whole: object, left_out: frozenset[str]) -> None:
        self._whole = as_dict(whole)
        self._left_out = left_out
        self._parts = 0

    def top(self, renamed: Renamed) -> Schema:
        """Return the converted top-level schema, which is always an object.

        The properties of alternatives (``anyOf``, ``oneOf``) are merged into it. Renamed properties
        are added to ``renamed``.
        """
        given = self._flat(self._whole, ())
        properties: Schema = {}
        for key in ("anyOf", "oneOf"):
            for part in as_list(given.pop(key, None)):
                properties |= as_dict(self._flat(part, ()).get("properties"))
        for key in ("enum", "const", "default"):
            given.pop(key, None)
        if properties:
            given["properties"] = {**properties, **as_dict(given.get("properties"))}
        if given.get("type") != "object":
            given.pop("type", None)
            given = {"type": "object", **given}
        given.setdefault("properties", {})
        return self._object(given, _Place(1, (), renamed))

    def _part(self, schema: object, place: "_Place") -> Schema:
        """Return the converted nested schema; {} if it isn't an object.

        The method also returns {} once ``MAX_PARTS`` schemas have been converted. A schema that is
        nested deeper than ``MAX_DEPTH`` keeps only its description.
        """
        self._parts += 1
        if not isinstance(schema, dict) or self._parts > MAX_PARTS:
            return {}
        flat = self._flat(schema, place.seen)
        if place.depth > MAX_DEPTH:
            about = flat.get("description")
            return {"description": about} if isinstance(about, str) else {}
        return self._object(flat, replace(place, seen=(*place.seen, *_references(schema))))

    def _object(self, schema: Schema, place: "_Place") -> Schema:
        types = _types(schema)
        made: Schema = {}
        if types:
            made["type"] = types[0] if len(types) == 1 else types
        for key, value in schema.items():
            if key not in self._left_out:
                self._take(made, key, value, schema, place)
        if "enum" in schema and (values := _values(schema["enum"], types)):
            made["enum"] = values
        if "array" in types and "items" not in made:
            made["items"] = {}
        required = _required(schema, made, place.renamed)
        if required or schema.get("required") == []:
            made["required"] = required
        ordered = sorted(made, key=lambda key: _place_of(key, schema))
        return {key: made[key] for key in ordered}

    def _take(self, made: Schema, key: str, value: object, schema: Schema, place: "_Place") -> None:
        """Add the keyword ``key`` of ``schema``, converted, to ``made``.

        Unknown keywords and invalid values are left out; ``type``, ``enum`` and ``required`` are
        added by ``_object``.
        """
        match key:
            case "properties":
                made["properties"] = self._properties(value, place)
            case "items" | "prefixItems":
                made.setdefault("items", self._items(schema, place))
            case "anyOf" | "oneOf":
                options = [self._part(part, place.inside(Renamed())) for part in as_list(value)]
                if options:
                    made.setdefault("anyOf", []).extend(options)
            case "additionalProperties":
                if isinstance(value, bool):
                    made[key] = value
                else:
                    made[key] = self._part(value, place.inside(Renamed()))
            case _ if _is_sound(key, value):
                made[key] = value

    def _properties(self, value: object, place: "_Place") -> Schema:
        given: dict[str, Any] = {}
        for name, schema in as_dict(value).items():
            if isinstance(schema, dict | bool):
                given[str(name)] = schema
        taken = {name for name in given if _NAME.fullmatch(name)}
        made: Schema = {}
        for name, schema in given.items():
            if name in taken:
                new = name
            else:
                new = _new_name(name, taken | made.keys())
            inner = Renamed()
            made[new] = self._part(schema, place.inside(inner))
            if new != name:
                place.renamed.names[new] = name
            if inner:
                place.renamed.inner[new] = inner
        return made

    def _items(self, schema: Schema, place: "_Place") -> Schema:
        """Return the converted schema of an array's items; a tuple's items become alternatives."""
        items = schema.get("items")
        if isinstance(items, list):
            several = items
        else:
            several = as_list(schema.get("prefixItems"))
        inner = Renamed()
        inside = place.inside(inner)
        if isinstance(items, dict) or not several:
            made = self._part(items, inside)
        elif len(several) == 1:
            made = self._part(several[0], inside)
        else:
            made = {"anyOf": [self._part(each, inside.inside(Renamed())) for each in several]}
        if inner:
            place.renamed.inner["*"] = inner
        return made

    def _flat(self, schema: object, seen: tuple[str, ...]) -> Schema:
        """Return a copy of the schema with its own ``$ref`` and ``allOf`` inlined.

        The keywords of nested schemas are kept. A circular reference becomes {}; ``nullable`` adds
        the type ``null``.
        """
        flat = dict(as_dict(schema))
        for _ in range(MAX_DEPTH):
            reference = flat.pop("$ref", None)
            if not isinstance(reference, str):
                break
            if reference in seen:
                found = {}
            else:
                found = as_dict(self._found(reference))
            seen = (*seen, reference)
            flat = {**found, **flat}
        flat.pop("$ref", None)
        for part in as_list(flat.pop("allOf", None)):
            other = {}
            if len(seen) < MAX_DEPTH:
                other = self._flat(part, (*seen, *_references(part)))
            properties = {**as_dict(other.get("properties")), **as_dict(flat.get("properties"))}
            required = [*as_list(flat.get("required")), *as_list(other.get("required"))]
            flat = {**other, **flat}
            if properties:
                flat["properties"] = properties
            if required:
                flat["required"] = required
        if flat.pop("nullable", None) is True and isinstance(flat.get("type"), str):
            flat["type"] = [flat["type"], "null"]
        return flat

    def _found(self, reference: str) -> object:
        """Return the target of a local reference (``#/$defs/Name``); None if there is none."""
        if not reference.startswith("#"):
            return None
        value: object = self._whole
        for step in reference.lstrip("#/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if not name:
                continue
            index = whole_number(name)
            if isinstance(value, list) and index is not None and index < len(value):
                value = value[index]
            else:
                value = as_dict(value).get(name)
        return value


def _references(schema: object) -> tuple[str, ...]:
    reference = as_dict(schema).get("$ref")
    if isinstance(reference, str):
        return (reference,)
    return ()


def _place_of(key: str, given: Mapping[str, Any]) -> int:
    """Return the sort key of a keyword, which keeps the keywords in the order of ``given``.

    A new ``type`` comes first, other new keywords come last.
    """
    if key in given:
        return list(given).index(key)
    if key == "type":
        return -1
    return len(given)


def _types(schema: Schema) -> list[str]:
    """Return the valid types that a schema names or, without any, the type its keywords imply.

    The result is empty if the schema doesn't determine a type.
    """
    given = schema.get("type")
    named = [kind for kind in (given if isinstance(given, list) else [given]) if kind in _TYPES]
    if named:
        return list(dict.fromkeys(named))
    if any(as_list(schema.get(key)) for key in ("anyOf", "oneOf")):
        return []
    values = [value for value in as_list(schema.get("enum")) if value is not None]
    if values:
        if all(isinstance(value, str) for value in values):
            return ["string"]
        return []
    for kind, keys in _OF_TYPE.items():
        if not schema.keys().isdisjoint(keys):
            return [kind]
    return []


def _values(value: object, types: Iterable[str]) -> list[Any]:
    """Return an enumeration's distinct values of the types ``types``; empty ``types`` means any."""
    kinds = set(types)
    fitting = [item for item in as_list(value) if not kinds or _type_of(item) & kinds]
    unique = {json.dumps(item, sort_keys=True, default=str): item for item in fitting}
    return list(unique.values())


def _type_of(value: object) -> set[str]:
    if isinstance(value, float) and not value.is_integer():
        return {"number"}
    kinds: dict[type, set[str]] = {
        type(None): {"null"},
        bool: {"boolean"},
        int: {"integer", "number"},
        float: {"integer", "number"},
        str: {"string"},
        list: {"array"},
    }
    return kinds.get(type(value), {"object"})


def _required(schema: Schema, made: Schema, renamed: Renamed) -> list[str]:
    """Return the new names of the required properties that ``made`` contains, each once."""
    new = renamed.new_names
    needed: dict[str, None] = {}
    for name in as_list(schema.get("required")):
        if isinstance(name, str) and new.get(name, name) in made.get("properties", {}):
            needed[new.get(name, name)] = None
    return list(needed)


def _is_sound(key: str, value: object) -> bool:
    """Return whether a keyword is known and its value is valid, so that it can be kept unchanged.

    The rules are those of JSON Schema 2020-12. The result is always False for ``type``, ``enum``
    and keywords that contain schemas, which are converted elsewhere.
    """
    if isinstance(value, bool):
        return key in {"uniqueItems", "default", "const"}
    match key, value:
        case "multipleOf", int(number) | float(number):
            return number > 0
        case "pattern", str(pattern):
            return _compiles(pattern)
        case _, int(count) if key in _COUNTS:
            return count >= 0
        case (
            ("default" | "const", _)
            | ("description" | "format" | "contentEncoding" | "contentMediaType", str())
            | ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", int() | float())
        ):
            return True
        case _:
            return False


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _new_name(name: str, taken: Iterable[str]) -> str:
    """Return ``name`` in plain characters, changed if necessary so that it isn't in ``taken``."""
    plain = _ODD.sub("_", name)[:MAX_NAME_CHARS].strip("_.-") or "value"
    known = set(taken)
    new = plain
    number = 1
    while new in known:
        number += 1
        new = f"{plain[: MAX_NAME_CHARS - len(str(number)) - 1]}_{number}"
    return new
