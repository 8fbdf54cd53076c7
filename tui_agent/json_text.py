"""Reads JSON from outside: a model, a provider, a server, a hook."""

import json
import re
from typing import Any

_NUMBER = re.compile(r"-?\d{4301,}")
"""More digits than Python makes an integer of (``sys.set_int_max_str_digits``): reading takes the
square of them."""


def loads(text: str | bytes, *, strict: bool = True) -> Any:
    """Return the value of a JSON text. ``strict`` False takes control characters within strings.

    Raises:
        json.JSONDecodeError: it means nothing, or more than can be held: an integer of thousands of
        digits, nesting
            that is too deep. No other error comes out of it.
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
    """Return the JSON value that Python's notation stands for: single quotes, True, None.

    Raises:
        ValueError: it stands for none.
    """
    import ast

    try:
        value = ast.literal_eval(text)
        json.dumps(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return value


def as_dict(value: object) -> dict[str, Any]:
    """Return a JSON value that is an object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a JSON list, none for anything else."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def first_object(value: object) -> dict[str, Any]:
    """Return the first item of a JSON list, an empty object where it is none."""
    rows = as_list(value)
    return as_dict(rows[0]) if rows else {}


def table_in(value: object, *keys: str) -> dict[str, Any]:
    """Return the object that nested keys lead to; an empty one where there is none."""
    for key in keys:
        value = as_dict(value).get(key)
    return as_dict(value)


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    return text.decode("utf-8", "replace")
