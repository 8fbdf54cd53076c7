"""Tools by name, arguments as models write them, and what the schemas cost."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.wire_rounds import route_to
from tui_agent.context.request import ContentText, Message, ModelRequest, wire_tool
from tui_agent.context.tokens import count_text
from tui_agent.errors import ToolError
from tui_agent.model.wires import chat, gemini, messages, ollama, responses
from tui_agent.model.wires.http import encode
from tui_agent.model.wires.wire import Wire
from tui_agent.resources import prompt
from tui_agent.session.entries import ToolSchema
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.base import DynamicTool, FreeTool, RawInput, ToolContext, ToolResult
from tui_agent.tools.code import CodeTool
from tui_agent.tools.language_servers.settings import CodeSettings
from tui_agent.tools.registry import builtin_tools, find_tool
from tui_agent.tools.skill import SkillTool
from tui_agent.tools.task import TaskTool

MAX_HEAD_TOKENS = 1_600
"""The program's prompt and every tool, as any provider is sent them."""
TOOLS = {tool.name: tool for tool in builtin_tools()}


def parsed(tool: str, text: str) -> dict[str, Any]:
    return parse_arguments(TOOLS[tool], text).model_dump()


def every_tool(project: Path) -> tuple[ToolSchema, ...]:
    """Return the tools of a session that has all: a search service, a language server, skills."""
    tools = (*builtin_tools(), CodeTool(project, CodeSettings()), SkillTool(dict), TaskTool())
    return tuple(tool.schema() for tool in tools if tool.name != "ls")


@pytest.mark.parametrize(
    ("wire", "model"),
    [
        (chat, "openrouter/some/model"),
        (responses, "openai/gpt-5"),
        (messages, "anthropic/claude-opus-4-8"),
        (gemini, "gemini/gemini-3-pro-preview"),
        (ollama, "ollama/qwen3"),
    ],
)
def test_the_head_is_small_on_every_wire(tmp_path: Path, wire: Wire, model: str) -> None:
    head = Message("system", (ContentText(prompt("system")),))
    request = ModelRequest(model, (head,), every_tool(tmp_path))
    body = wire.call(request, route_to(model)).body
    names = ("tools", "system", "systemInstruction", "messages", "instructions", "input")
    sent = {name: body[name] for name in names if name in body}
    tokens = count_text(encode(sent).decode())
    assert 1_000 < tokens <= MAX_HEAD_TOKENS


def test_schemas_hold_only_what_every_provider_takes(tmp_path: Path) -> None:
    text = json.dumps([wire_tool(tool) for tool in every_tool(tmp_path)])
    for word in ("$ref", "$defs", "anyOf", "title", "exclusiveMinimum", "Arguments of"):
        assert word not in text
    edits = TOOLS["edit"].schema().parameters["properties"]["edits"]
    assert edits["items"]["required"] == ["old", "new"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (" Read ", "read"),
        ("functions.read", "read"),
        ("read_file", "read"),
        ("execute_bash", "bash"),
        ("list_dir", "ls"),
        ("web_fetch", "webfetch"),
        ("WebSearch", "websearch"),
    ],
)
def test_names_from_other_programs(name: str, meant: str) -> None:
    assert find_tool(name, builtin_tools()).name == meant


def test_a_line_may_break_inside_a_string_of_the_arguments() -> None:
    assert parsed("bash", '{"command": "cd x\nmake"}')["command"] == "cd x\nmake"


@pytest.mark.parametrize(
    "edits", ['[{"old": "a", "new": "b\nc"}]', ['{"old": "a", "new": "b\nc"}']]
)
def test_so_may_one_in_json_within_the_arguments(edits: object) -> None:
    (edit,) = parsed("edit", json.dumps({"path": "a.py", "edits": edits}))["edits"]
    assert (edit["old"], edit["new"]) == ("a", "b\nc")


@given(commas=st.integers(0, 20))
def test_a_broken_line_is_read_whatever_the_number_of_commas_too_many(commas: int) -> None:
    edits = '{"old": "a", "new": "b\nc",},' * commas + '{"old": "a", "new": "b\nc"}'
    found = parsed("edit", f'{{"path": "a.py", "edits": [{edits}]}}')["edits"]
    assert [edit["new"] for edit in found] == ["b\nc"] * (commas + 1)


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
        '{"target_file": "a", "offset": 10}',
        '{"path": "a", "offset": 10, "limit": null,}',
        '```json\n{"path": "a", "offset": 10}\n```',
        '{"path": "a", "offset": 10}}',
        '{"name": "read", "arguments": {"path": "a", "offset": 10}}',
        '{"path": "a", "start_line": 10}',
        '{"path": "a", "view_range": [10, -1]}',
    ],
)
def test_what_models_get_wrong_without_meaning_anything_else(text: str) -> None:
    assert parsed("read", text) == {"path": "a", "offset": 10, "limit": None}


@pytest.mark.parametrize(
    ("text", "offset", "limit"),
    [
        ('{"path": "a", "start_line": 5, "end_line": 9}', 5, 5),
        ('{"path": "a", "view_range": [5, 9]}', 5, 5),
        ('{"path": "a", "line_start": "5", "line_end": "5"}', 5, 1),
        ('{"path": "a", "limit": 0}', 1, None),
    ],
)
def test_other_ways_to_name_lines(text: str, offset: int, limit: int | None) -> None:
    assert parsed("read", text) == {"path": "a", "offset": offset, "limit": limit}


def test_a_bare_text_is_the_one_field_there_has_to_be() -> None:
    assert parsed("bash", '"ls -l"')["command"] == "ls -l"
    assert parsed("glob", '"*.py"')["pattern"] == "*.py"


def test_commas_and_brackets_in_strings_stay() -> None:
    assert parsed("bash", '{"command": "echo \',}\', [1,]",}')["command"] == "echo ',}', [1,]"


@pytest.mark.parametrize(
    ("tool", "text", "message"),
    [
        (
            "read",
            "{}",
            r"read: path is missing\. Fields: path \(string, required\), offset \(integer\)",
        ),
        ("read", '{"path": "a", "offset": "ten"}', "offset: input should be a valid integer"),
        ("read", '{"path": "a", "color": 1}', "color is not a field"),
        (
            "edit",
            '{"path": "a", "edits": [{"old": "x"}]}',
            r"^edit: edits\.0\.new is missing\. Fields",
        ),
        (
            "edit",
            '{"path": "a", "content": "x"}',
            "content is not a field, to replace a whole file use write",
        ),
        (
            "bash",
            '{"command": "ls", "cwd": "src"}',
            "cwd is not a field, begin the command with cd DIR &&",
        ),
        (
            "read",
            '{"path": "a"} {"path": "b"}',
            "more than one JSON object in the arguments; send a call for each",
        ),
        ("read", "{'path': 'a", "not valid JSON"),
        (
            "edit",
            '{"path": "a", "edits": []}',
            r"edits is empty\. .*edits \(list of {old, new, all}, required\)",
        ),
        (
            "bash",
            '{"command": "ls',
            "not valid JSON: they break off after 15 characters. Send less at once",
        ),
        ("bash", '{"command": "echo \\ud83d"}', "half of a surrogate pair"),
        ("bash", '{"command": "x", "timeout": 0}', "timeout: input should be greater than 0"),
        pytest.param("bash", "[" * 100_000, "not valid JSON", id="nesting"),
        pytest.param(
            "bash",
            f'{{"command": "x", "timeout": 1{"0" * 5_000}}}',
            "too many digits at character 28",
            id="0",
        ),
    ],
)
def test_errors_name_the_field_and_what_it_takes(tool: str, text: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        parse_arguments(TOOLS[tool], text)


def test_titles_are_a_few_words() -> None:
    arguments = parse_arguments(TOOLS["bash"], '{"command": "cd x &&\\n  make"}')
    assert TOOLS["bash"].title(arguments) == "cd x && make"
    assert TOOLS["grep"].title(parse_arguments(TOOLS["grep"], '{"pattern": "x"}')) == "x"


SCHEMA = ToolSchema(
    name="tracker_search",
    description="Search issues.",
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "description": {"type": "string"},
            "limit": {"type": "integer"},
        },
        "required": ["query"],
    },
)


class Tracker(DynamicTool, FreeTool[RawInput]):
    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        return ToolResult("")


TOOL = Tracker(SCHEMA)


def test_arguments_are_passed_on_as_they_came() -> None:
    arguments = parse_arguments(TOOL, '{"query": "a", "description": "b", "limit": null}')
    assert isinstance(arguments, RawInput)
    assert arguments.values == {"query": "a", "description": "b", "limit": None}
    assert TOOL.title(arguments) == "a"
    assert TOOL.title(RawInput(values={"n": 1, "deep": {"x": 2}})) == 'n: 1, deep: {"x": 2}'


def test_arguments_that_are_no_object_are_answered_with_the_fields() -> None:
    with pytest.raises(
        ToolError, match=r"one JSON object.*query \(string, required\).*limit \(integer\)"
    ):
        parse_arguments(TOOL, "[1]")


def test_a_servers_tool_goes_before_what_another_program_calls_a_tool_so() -> None:
    with pytest.raises(ToolError, match="no tool 'search'"):
        find_tool("search", (*builtin_tools(), TOOL))
    with pytest.raises(ToolError, match="no tool 'shell'"):
        find_tool("shell", [tool for tool in builtin_tools() if tool.name != "bash"])


FORBIDDEN = ("litellm", "textual", "tiktoken", "httpx", "pathspec")


def test_tools_load_without_heavy_modules() -> None:
    code = (
        "import sys; from tui_agent.tools.registry import builtin_tools; builtin_tools(); "
        f"print([name for name in {FORBIDDEN!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
