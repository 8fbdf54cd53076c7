"""Defines the lines that ``--json`` prints, one event each, and makes their JSON schema.

headless.py prints the lines; ``tui-agent schema`` prints the schema.
"""

import dataclasses
import json
import re
from argparse import Namespace
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter

from tui_agent.agent.events import AgentEvent
from tui_agent.lazy import frozen

VERSION = 1
"""Version of the format of the lines that ``--json`` prints.

The version is increased by changes that break readers, but not by additions.
"""

SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"


@frozen
class Session:
    """The first line: the session, its directory and model, and the version of these events."""

    id: str
    cwd: str
    model: str
    version: int = VERSION


@frozen
class Page:
    """A report that a command showed."""

    title: str
    text: str


@frozen
class ServerInventory:
    """An MCP server.

    ``detail`` says why it is not ready; in the state "login", it is the address to open. Its
    ``tools`` may be offered through the tool ``mcp``.
    """

    name: str
    state: str
    detail: str
    tools: tuple[str, ...]


@frozen
class Inventory:
    """What is available to a run.

    Printed before the run's first request, once the MCP servers have had time to start.
    ``tools`` are offered to the model, ``sandbox`` is the kind of sandbox or “none”, ``problems``
    say what could not be loaded.
    """

    servers: tuple[ServerInventory, ...]
    tools: tuple[str, ...]
    agents: tuple[str, ...]
    skills: tuple[str, ...]
    instructions: tuple[str, ...]
    sandbox: str
    problems: tuple[str, ...]


Line = AgentEvent | Session | Inventory | Page


def event_json(event: Line) -> dict[str, Any]:
    """Return an event as a JSON object: ``type``, its class name in snake case, and its fields."""
    return {"type": event_name(type(event)), **_fields(event)}


def event_name(kind: type) -> str:
    """Return the ``type`` of an event in JSON: its class name in snake case."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=False)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def events_schema() -> dict[str, Any]:
    """Return the JSON schema of a line that ``--json`` prints."""
    shared: dict[str, Any] = {}
    kinds = {}
    for kind in sorted(get_args(Line), key=event_name):
        kinds[event_name(kind)] = _kind_schema(kind, shared)
    return {
        "$schema": SCHEMA_ID,
        "title": "A line of tui-agent --json",
        "description": f"Version {VERSION}. Fields and kinds of lines may be added; existing ones stay.",
        "version": VERSION,
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in kinds],
        "$defs": {**kinds, **dict(sorted(shared.items()))},
    }


def _kind_schema(kind: type, shared: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of one kind of output line; add its definitions to ``shared``."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    schema = _open(adapter.json_schema(mode="serialization", ref_template="#/$defs/{model}"))
    shared |= schema.pop("$defs", {})
    name = event_name(kind)
    fields = schema.get("properties", {})
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": {"type": {"const": name}, **fields},
        "required": ["type", *fields],
    }


def _open(schema: Any) -> Any:
    """Return a copy of a JSON schema that allows additional fields and has no generated titles."""
    if isinstance(schema, list):
        return [_open(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for key, part in schema.items():
        if key != "additionalProperties" or part is not False:
            kept[key] = part
    if isinstance(kept.get("title"), str):
        del kept["title"]
    return {key: _open(part) for key, part in kept.items()}


def run_schema(_arguments: Namespace) -> int:
    """Print the JSON schema of the lines, as in ``docs/events.schema.json``; return exit code 0."""
    print(json.dumps(events_schema(), ensure_ascii=False, indent=2))
    return 0
