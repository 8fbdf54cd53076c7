"""Names of servers' tools as every provider takes them: letters, digits, ``_`` and ``-``, at most 64 of them."""

import hashlib
import re
from collections.abc import Collection

MAX_LENGTH = 64
_REST = re.compile(r"[^A-Za-z0-9_-]+")
_DIGEST = 6


def portable_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """Return ``server_tool`` made portable; a digest tells it from names that are taken or were cut alike."""
    name = _REST.sub("_", f"{server}_{tool}")
    if not name[0].isalpha() and name[0] != "_":
        name = f"_{name}"
    if len(name) <= MAX_LENGTH and name not in taken:
        return name
    number = 0
    while True:
        digest = hashlib.sha256(f"{server}\0{tool}\0{number}".encode()).hexdigest()[:_DIGEST]
        unlike = f"{name[: MAX_LENGTH - _DIGEST - 1]}_{digest}"
        if unlike not in taken:
            return unlike
        number += 1


def tidy_schema(schema: object) -> object:
    """Return a JSON schema without what costs tokens and says nothing: titles, the name of its dialect."""
    if isinstance(schema, list):
        return [tidy_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: tidy_schema(field) for name, field in value.items()}
        if key in {"properties", "$defs", "definitions"} and isinstance(value, dict)
        else tidy_schema(value)
        for key, value in schema.items()
        if key not in {"title", "$schema", "$id"}
    }
