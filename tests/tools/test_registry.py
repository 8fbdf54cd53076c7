"""Tools by name, arguments as models write them, and what the schemas cost."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from tui_agent.context.request import wire_tool
from tui_agent.tools.errors import ToolError
from tui_agent.tools.registry import builtin_tools, find_tool, parse_arguments

MAX_SCHEMA_TOKENS = 1_250
TOOLS = {tool.name: tool for tool in builtin_tools()}


def parsed(tool: str, text: str) -> dict[str, Any]:
    return parse_arguments(TOOLS[tool], text).model_dump()


def test_order_is_fixed() -> None:
    assert [tool.name for tool in builtin_tools()] == [
        "read", "edit", "write", "bash", "grep", "glob", "ls", "recall", "webfetch", "todo", "job",
    ]  # fmt: skip


def test_schemas_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec("litellm")
    assert found is not None
    assert found.origin is not None
    encodings = Path(found.origin).parent / "litellm_core_utils" / "tokenizers"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(encodings))
    import tiktoken

    encoding = tiktoken.get_encoding("o200k_base")
    wire = [json.dumps(wire_tool(tool.schema()), ensure_ascii=False) for tool in builtin_tools()]
    assert sum(len(encoding.encode(text)) for text in wire) <= MAX_SCHEMA_TOKENS


def test_schemas_hold_only_what_every_provider_takes() -> None:
    text = json.dumps([wire_tool(tool.schema()) for tool in builtin_tools()])
    for word in ("$ref", "$defs", "anyOf", "title", "exclusiveMinimum", "Arguments of"):
        assert word not in text
    edits = TOOLS["edit"].schema().parameters["properties"]["edits"]
    assert edits["items"]["required"] == ["old", "new"]


@pytest.mark.parametrize("name", ["read", "Read", " read ", "functions.read", "default_api:read"])
def test_find_tool(name: str) -> None:
    assert find_tool(name, builtin_tools()).name == "read"


def test_an_unknown_tool_is_guessed() -> None:
    with pytest.raises(ToolError, match=r"no tool 'grpe'\. Did you mean grep.* Tools: read, edit"):
        find_tool("grpe", builtin_tools())


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a", "offset": 10}',
        '"{\\"path\\": \\"a\\", \\"offset\\": 10}"',
        '{"path": "a", "offset": "10", "limit": null}',
        '{"file_path": "a", "offset": 10.0}',
        '{"path": "a", "offset": 10, "description": "look at it"}',
    ],
)
def test_what_models_get_wrong_without_meaning_anything_else(text: str) -> None:
    assert parsed("read", text) == {"path": "a", "offset": 10, "limit": None}


def test_nothing_at_all_is_an_empty_object() -> None:
    assert parsed("ls", "") == {"path": "."}


def test_raw_line_breaks_in_strings() -> None:
    assert parsed("bash", '{"command": "echo a\necho b"}')["command"] == "echo a\necho b"


@pytest.mark.parametrize(
    ("tool", "text", "message"),
    [
        ("read", "{}", r"read: path is missing\. Fields: path \(string, required\), offset \(integer\)"),
        ("read", '{"path": 5}', "path: input should be a valid string"),
        ("read", '{"path": "a", "offset": "ten"}', "offset: input should be a valid integer"),
        ("read", '{"path": "a", "color": 1}', "color is not a field"),
        ("read", '{"path": null}', "path: input should be a valid string"),
        ("edit", '{"path": "a", "edits": [{"old": "x"}]}', r"edits\.0\.new is missing"),
        ("edit", '{"path": "a", "edits": []}', "edits: tuple should have at least 1 item"),
        ("bash", '{"command": "ls', "not valid JSON: Unterminated string"),
        ("bash", "[1]", "must be one JSON object"),
        ("bash", '{"command": "echo \\ud83d"}', "half of a surrogate pair"),
        ("bash", "null", "must be one JSON object"),
        ("bash", '{"command": "x", "timeout": 0}', "timeout: input should be greater than 0"),
        ("bash", "[" * 100_000, "must be one JSON object|not valid JSON"),
    ],
)
def test_errors_name_the_field_and_what_it_takes(tool: str, text: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        parse_arguments(TOOLS[tool], text)


def test_titles_are_a_few_words() -> None:
    arguments = parse_arguments(TOOLS["bash"], '{"command": "cd x &&\\n  make"}')
    assert TOOLS["bash"].title(arguments) == "cd x && make"
    assert TOOLS["grep"].title(parse_arguments(TOOLS["grep"], '{"pattern": "x"}')) == "x"
