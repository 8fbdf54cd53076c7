"""Parses JSON from outside the program (a model, a provider, a server, a hook), and checks value types.

The ``as_…`` functions return an empty value if a JSON value does not have the expected type.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

_NUMBER = re.compile(r"-?\d{4301,}")
"""Matches an integer that Python refuses to convert because it has more than 4,300 digits
(``sys.set_int_max_str_digits``)."""


def loads(text: str | bytes, *, strict: bool = True) -> Any:
    """Parse a JSON text. If ``strict`` is False, strings in it may contain control characters.

    Raises:
        json.JSONDecodeError: the text is not JSON or not UTF-8, is nested too deeply, or has an
            integer of thousands of digits. No other error is raised.
    """
    try:
        # If any option is given, json builds a new decoder, which takes longer than parsing a small
        # text.
        if strict:
            return json.loads(text)
        return json.loads(text, strict=False)
    except json.JSONDecodeError:
        raise
    except UnicodeDecodeError as error:
        raise json.JSONDecodeError("It is not UTF-8", "", error.start) from None
    except RecursionError:
        raise json.JSONDecodeError("It is nested too deeply", _text(text), 0) from None
    except ValueError:
        whole = _text(text)
        found = _NUMBER.search(whole)
        at = found.start() if found else 0
        raise json.JSONDecodeError("A number has too many digits", whole, at) from None


def read_literal(text: str) -> Any:
    """Parse a value that was written in Python's syntax instead of JSON's: single quotes, True, None.

    Raises:
        ValueError: the text is not a Python literal, or its value can't be written as JSON.
    """
    import ast

    try:
        value = ast.literal_eval(text)
        json.dumps(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return value


def plain_value(value: object) -> str:
    """Format a JSON value for a person to read. A string is unchanged, any other value is JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def as_lines(values: Mapping[str, Any]) -> str:
    """Format a JSON object for a person to read, as ``name: value`` lines.

    A value of several lines is indented below its name.
    """
    lines: list[str] = []
    for name, value in values.items():
        text = plain_value(value)
        if "\n" in text.strip():
            lines += [f"{name}:", *(f"  {line}" for line in text.strip("\n").split("\n"))]
        else:
            lines.append(f"{name}: {text}")
    return "\n".join(lines)


def as_dict(value: object) -> dict[str, Any]:
    """Return a JSON value if it is an object, otherwise an empty dict."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def objects(value: object) -> list[dict[str, Any]]:
    """Return the items of a JSON list that are objects; an empty list for any other value."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def first_object(value: object) -> dict[str, Any]:
    """Return the first item of a JSON list if the item is an object; otherwise, an empty dict."""
    rows = as_list(value)
    return as_dict(rows[0]) if rows else {}


def table_in(value: object, *keys: str) -> dict[str, Any]:
    """Return the JSON object at the nested ``keys``; if there is none, an empty dict."""
    for key in keys:
        value = as_dict(value).get(key)
    return as_dict(value)


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    return text.decode("utf-8", "replace")
