"""Any schema becomes one that every provider takes, and the arguments of a call map back."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.thoroughness import examples
from tui_agent.model.tool_schemas import MAX_DEPTH, mend
from tui_agent.session.entries import ToolSchema
from tui_agent.tools.registry import builtin_tools

WIRES: tuple[Any, ...] = ("chat", "responses", "messages", "gemini", "ollama", None)
NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
GEMINI = {
    "type", "format", "description", "enum", "items", "minItems", "maxItems", "minimum", "maximum", "anyOf",
    "properties", "additionalProperties", "required", "pattern", "minLength", "maxLength", "minProperties",
    "maxProperties",
}  # fmt: skip


def tool(parameters: Any) -> ToolSchema:
    return ToolSchema.model_construct(name="t", description="d", parameters=parameters)


def check(schema: Any, wire: Any, depth: int = 1, *, top: bool = True) -> None:
    """Check a schema against what the documentation of each format asks for."""
    Draft202012Validator.check_schema(schema)
    json.dumps(schema)
    if top:
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "enum", "not", "const"} & schema.keys()
    assert depth <= MAX_DEPTH + 2
    assert not {"$ref", "$defs", "oneOf", "allOf", "not"} & schema.keys()
    if wire == "gemini":
        assert schema.keys() <= GEMINI
    types = schema.get("type", [])
    if "array" in ([types] if isinstance(types, str) else types):
        assert "items" in schema
    for name in schema.get("required", ()):
        assert name in schema["properties"]
    for name, value in schema.get("properties", {}).items():
        assert NAME.fullmatch(name)
        check(value, wire, depth + 1, top=False)
    for value in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        check(value, wire, depth + 1, top=False)


KEYWORDS = st.sampled_from([
    "type", "properties", "items", "anyOf", "oneOf", "allOf", "required", "enum", "$ref", "$defs", "description",
    "additionalProperties", "prefixItems", "not", "const", "default", "pattern", "minimum", "nullable", "title",
    "$.xgafv", "a b", "", "x" * 80, "q", "exclusiveMinimum", "uniqueItems", "format", "minLength",
])  # fmt: skip
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["string", "array", "object", "null", "odd", "#/$defs/q", "#", "#/properties/q", "(", "é"]),
)  # fmt: skip
JSON = st.recursive(
    VALUES, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYWORDS, inner, max_size=4)),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=examples(600), deadline=None)
@given(JSON, st.sampled_from(WIRES))
@example({"additionalProperties": {"properties": None, "anyOf": None}}, "chat")
def test_any_value_becomes_a_schema_that_the_format_takes(value: Any, wire: Any) -> None:
    mended = mend(tool(value), wire)

    check(mended.tool.parameters, wire)
    assert mend(mended.tool, wire).tool.parameters == mended.tool.parameters


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.text(max_size=70), unique=True, max_size=6), st.sampled_from(WIRES))
def test_arguments_map_back_whatever_the_properties_are_called(names: list[str], wire: Any) -> None:
    inner = {name: {"type": "string"} for name in names}
    rows = {"type": "array", "items": {"type": "object", "properties": inner}}
    mended = mend(
        tool({"type": "object", "properties": {**inner, "rows of it": rows}, "required": names}),
        wire,
    )
    arguments = {**dict.fromkeys(names, "x"), "rows of it": [dict.fromkeys(names, "y"), {}]}
    written = json.dumps(arguments)

    out = mended.arguments_out(written)
    assert json.loads(mended.arguments_back(out)) == arguments
    check(mended.tool.parameters, wire)
    Draft202012Validator(mended.tool.parameters).validate(json.loads(out))
    assert len(mended.tool.parameters.get("required", ())) == len(names)


@pytest.mark.parametrize("wire", WIRES[:3])
def test_the_programs_own_tools_stay_as_they_are(wire: Any) -> None:
    for each in builtin_tools():
        schema = each.schema()
        assert mend(schema, wire).tool is schema


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("given", "mended"),
    [
        ({"anyOf": [OBJECT, {"type": "object", "properties": {"b": {"type": "number"}}}]},
         {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}}),
        ({"type": "object", "properties": {"k": {"type": "array"}}},
         {"type": "object", "properties": {"k": {"type": "array", "items": {}}}}),
        ({"type": "object", "properties": {"$.xgafv": {"type": "string"}}, "required": ["$.xgafv"]},
         {"type": "object", "properties": {"xgafv": {"type": "string"}},
          "required": ["xgafv"]}),
        ({"type": "string", "description": "title"}, {"type": "object", "description": "title", "properties": {}}),
        ({"type": "object", "properties": {"coin": {"type": "string"}, "required": ["coin"]}},
         {"type": "object", "properties": {"coin": {"type": "string"}}}),
        ({"type": "object", "properties": {"k": {"anyOf": [{"type": "string", "enum": ["A"]},
                                                           {"type": "null", "enum": ["A"]}]}}},
         {"type": "object", "properties": {"k": {"anyOf": [{"type": "string", "enum": ["A"]}, {"type": "null"}]}}}),
        ({"type": "object", "properties": {"n": {"$ref": "#/$defs/Node"}},
          "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}},
         {"type": "object", "properties": {"n": {"type": "object", "properties": {"next": {}}}}}),
        ({"allOf": [OBJECT, {"properties": {"b": {"enum": ["x", "y", "x"]}}, "required": ["b"]}]},
         {"type": "object", "properties": {"b": {"type": "string", "enum": ["x", "y"]}, "a": {"type": "string"}},
          "required": ["a", "b"]}),
        ({"type": "object", "properties": {"p": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}}},
         {"type": "object", "properties": {"p": {"type": "array",
                                                 "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}}),
        ({"type": ["object", "null"], "anyOf": [OBJECT, OBJECT], "allOf": [OBJECT]}, OBJECT),
        (True, {"type": "object", "properties": {}}),
    ],
)  # fmt: skip
def test_what_is_odd_is_mended(given: Any, mended: Any) -> None:
    assert mend(tool(given), "chat").tool.parameters == mended
