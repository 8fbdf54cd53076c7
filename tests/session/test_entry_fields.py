"""What entries can hold belongs to the schema: an older program calls an entry with an unknown field damaged."""

import json
from pathlib import Path
from typing import Any

from tui_agent.session.entries import EntryAdapter
from tui_agent.session.schema import SCHEMA_VERSION

RECORD = Path(__file__).parent / "data/entry_fields.txt"


def told(schema: dict[str, Any]) -> str:
    """Return a field's type in one line."""
    return json.dumps(
        {key: value for key, value in schema.items() if key not in {"description", "title"}}
    )


def fields() -> list[str]:
    kinds = EntryAdapter.json_schema()["$defs"]
    return [
        f"{name}.{field} {told(schema)}"
        for name, kind in sorted(kinds.items())
        for field, schema in sorted(kind.get("properties", {"": kind}).items())
    ]


def record() -> str:
    return "\n".join([f"schema {SCHEMA_VERSION}", *fields(), ""])


def test_new_fields_raise_the_version_of_the_schema() -> None:
    """Where this fails: raise SCHEMA_VERSION, add a migration that changes nothing, and write the record anew.

    Until a version is released, writing the record anew is enough.
    """
    assert RECORD.read_text() == record()


if __name__ == "__main__":
    RECORD.write_text(record())
