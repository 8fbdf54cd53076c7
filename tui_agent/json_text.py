"""Reads JSON from outside: from a model, a provider, a server, a hook."""

import json
import re
from typing import Any

_NUMBER = re.compile(r"-?\d{4301,}")
"""An integer with more digits than Python converts (``sys.set_int_max_str_digits``), as the time grows
with their square."""


def loads(text: str | bytes, *, strict: bool = True) -> Any:
    """Return the value of a JSON text; with ``strict`` False strings may hold control characters.

    Raises:
        json.JSONDecodeError: the text is not JSON or not UTF-8, is nested too deeply, or has an
            integer of thousands of digits. No other error is raised.
    """
    try:
        # Any argument makes json build a decoder of its own, which takes longer than a small text.
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
    """Return the value of a Python literal if JSON has the same: single quotes, True, None.

    Raises:
        ValueError: the text is not a literal, or JSON can't hold its value.
    """
    import ast

    try:
        value = ast.literal_eval(text)
        json.dumps(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return value


def as_dict(value: object) -> dict[str, Any]:
    """Return a JSON value if it is an object, and otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in a JSON list; an empty list for any other value."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def first_object(value: object) -> dict[str, Any]:
    """Return the first item of a JSON list, or an empty object if it is not an object."""
    rows = as_list(value)
    return as_dict(rows[0]) if rows else {}


def table_in(value: object, *keys: str) -> dict[str, Any]:
    """Return the object that nested keys lead to, or an empty one if there is none."""
    for key in keys:
        value = as_dict(value).get(key)
    return as_dict(value)


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    return text.decode("utf-8", "replace")
