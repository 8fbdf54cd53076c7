"""The schema of ``--json``: the file in the documents is what the code says, and real runs keep to it."""

import dataclasses
import json
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from tests.support.entry_strategies import paths
from tests.support.thoroughness import NIGHTLY, examples
from tui_agent.agent.events import EntryAppended
from tui_agent.cli.events import VERSION, Line, event_json, event_name, events_schema
from tui_agent.cli.main import run
from tui_agent.session.entries import Entry

ROOT = Path(__file__).parents[2]
KINDS = {event_name(kind) for kind in get_args(Line)}


def closed(schema: Any) -> Any:
    """Return the schema with nothing allowed that it does not name: what it should say of what is printed."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(part) for key, part in schema.items()}
    is_object = isinstance(schema.get("properties"), dict) and "type" in schema
    return inner | {"additionalProperties": False} if is_object else inner


def problems(line: dict[str, Any]) -> list[str]:
    """Return what of a line is not as the schema of its kind says."""
    assert line["type"] in KINDS
    errors = validator_of(line["type"]).iter_errors(line)
    return [f"{line['type']}: {error.json_path}: {error.message}" for error in errors]


@cache
def validator_of(kind: str) -> Draft202012Validator:
    return Draft202012Validator(
        {"$ref": f"#/$defs/{kind}", "$defs": closed(events_schema())["$defs"]}
    )


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_documents_have_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """`tui-agent schema > docs/events.schema.json` writes it."""
    assert run(["schema"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs/events.schema.json").read_text(encoding="utf-8")
    Draft202012Validator.check_schema(events_schema())
    assert events_schema()["version"] == VERSION


@given(path=paths())
@settings(max_examples=examples(60), deadline=None)
def test_every_entry_keeps_to_it(path: list[Entry]) -> None:
    lines = [json.loads(json.dumps(event_json(EntryAppended(entry)))) for entry in path]
    assert not [problem for line in lines for problem in problems(line)]


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Return any values of a type."""
    if dataclasses.is_dataclass(hint) or (isinstance(hint, type) and issubclass(hint, BaseModel)):
        fields = {name: values(kind) for name, kind in get_type_hints(hint).items()}
        return st.fixed_dictionaries(fields).map(lambda given: hint(**given))
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0]), max_size=2).map(tuple)
    if get_origin(hint) in {Union, UnionType}:
        return st.one_of(*map(values, get_args(hint)))
    return st.from_type(hint)


@pytest.mark.parametrize(
    "kind", [kind for kind in get_args(Line) if kind is not EntryAppended], ids=event_name
)
@given(data=st.data())
@settings(
    max_examples=8 if NIGHTLY else 3, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
def test_every_kind_of_line_keeps_to_it(kind: type, data: st.DataObject) -> None:
    line = json.loads(json.dumps(event_json(data.draw(values(kind)))))
    assert not problems(line)
