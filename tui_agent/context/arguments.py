"""Parses the arguments of tool calls, which the model wrote and which may be invalid JSON."""

import json
from collections.abc import Iterator
from typing import Any

from tui_agent.session.entries import AssistantEntry

LONG_ARGUMENT_CHARS = 200
"""If an answer is cleared, at most this many characters of each string in its tool arguments are
kept."""


def parse_object(arguments: str) -> dict[str, Any] | None:
    """Parse a JSON object; return None if the text is anything else or is nested too deeply."""
    try:
        values = _STRICT.decode(arguments)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def text_argument(arguments: str, name: str) -> str:
    """Return an argument of a call as text; "" if it is missing or the call can't be parsed."""
    values = parse_object(arguments) or {}
    return str(values.get(name, ""))


def strings_in(value: object) -> Iterator[str]:
    """Yield all strings in a JSON value. Nested strings are included, but keys are not."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)


def argument_texts(answer: AssistantEntry) -> list[str]:
    """Return all strings in the arguments of an answer's calls. Invalid JSON is skipped."""
    found: list[str] = []
    for call in answer.tool_calls:
        found += strings_in(parse_object(call.arguments))
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_STRICT = json.JSONDecoder(parse_constant=_refuse_constant)
