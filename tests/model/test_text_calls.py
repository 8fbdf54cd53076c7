"""Calls that a model writes into its answer as text, in the forms of the chat templates, and texts about calls."""

import json

import pytest

from tui_agent.errors import ToolError
from tui_agent.model.text_calls import TextCall, read_text_calls
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.registry import builtin_tools, find_tool

TOOLS = {tool.name: tool.schema() for tool in builtin_tools()}
READ = TextCall("read", '{"path": "calc.py"}')


def check(tool: str, arguments: str) -> str:
    try:
        parse_arguments(find_tool(tool, builtin_tools()), arguments)
    except ToolError as error:
        return str(error)
    return ""


def found(text: str):
    return read_text_calls(text, TOOLS, check)


JSON_CALL = '{"name": "read", "arguments": {"path": "calc.py"}}'
QWEN_CODER = "<function=read>\n<parameter=path>\ncalc.py\n</parameter>\n</function>"

INVOKE = '<invoke name="read">\n<parameter name="path">calc.py</parameter>\n</invoke>'


@pytest.mark.parametrize(
    "text",
    [
        JSON_CALL,
        f"```json\n{JSON_CALL}\n```",
        f"```xml\n<tool_call>\n{JSON_CALL}\n</tool_call>\n```",
        '{"type": "function", "function": {"name": "read", "arguments": "{\\"path\\": \\"calc.py\\"}"}}',
        '{"tool_calls": [{"type": "function", "function": {"name": "read", "arguments": {"path": "calc.py"}}}]}',
        "{'name': 'read', 'arguments': {'path': 'calc.py'}}",
        f"<tool_call>\n{JSON_CALL}\n</tool_call>",
        f"<tool_call>{JSON_CALL}</tool_call><|im_end|>",
        f"<tool_call>\n{JSON_CALL}\n</tool_call>\n<tool_response>\nprint(1)\n</tool_response>\nIt prints 1.",
        f"<tool_call>\n{QWEN_CODER}\n</tool_call>",
        f"{QWEN_CODER}\n</tool_call>",
        '<function=read>{"path": "calc.py"}</function>',
        f"<function_calls>\n{INVOKE}\n</function_calls>",
        f"<minimax:tool_call>\n{INVOKE}\n</minimax:tool_call>",
        f"[TOOL_CALLS][{JSON_CALL}]",
        '[TOOL_CALLS]read{"path": "calc.py"}',
        '[TOOL_CALLS]read[CALL_ID]aB3dE6gH9[ARGS]{"path": "calc.py"}</s>',
        '<|python_tag|>{"name": "read", "parameters": {"path": "calc.py"}}<|eom_id|>',
        '{"name": "read", "parameters": {"path": "calc.py"}}',
        '```tool_code\nread(path="calc.py")\n```',
        "```tool_code\nprint(default_api.read('calc.py'))\n```\n<end_of_turn>",
    ],
)
def test_every_form_of_a_call_is_read(text):
    calls = found(text)
    assert calls is not None
    assert (calls.text, calls.calls, calls.problem) == ("", (READ,), "")


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("I'll look at the file first.", f"<tool_call>\n{JSON_CALL}\n</tool_call>"),
        ("The bug is in line 2.\n\nLet me read the file:", f"```json\n{JSON_CALL}\n```"),
        ("Fehler gefunden.", QWEN_CODER),
        ("Let me see what it looks like, and how it uses the model.", f"<tool_call>{JSON_CALL}"),
        ("The bug is in line 2.", '```tool_code\nread("calc.py")\n```'),
        ("让我先读取文件：", f"<tool_call>\n{JSON_CALL}\n</tool_call>"),
    ],
)
def test_a_call_may_follow_what_announces_it(said, call):
    calls = found(f"{said}\n\n{call}")
    assert calls is not None
    assert (calls.text, calls.calls) == (said, (READ,))


def test_several_calls_come_in_their_order():
    grep = '{"name": "grep", "arguments": {"pattern": "def"}}'
    for text in (
        f"<tool_call>\n{JSON_CALL}\n</tool_call>\n<tool_call>\n{grep}\n</tool_call>",
        f"{JSON_CALL}\n{grep}",
        f"<|python_tag|>{JSON_CALL}; {grep}",
        f"```json\n{JSON_CALL}\n```\n```json\n{grep}\n```",
        '```tool_code\nread(path="calc.py")\ngrep(pattern="def")\n```',
    ):
        calls = found(text)
        assert calls is not None
        assert calls.calls == (READ, TextCall("grep", '{"pattern": "def"}'))


def test_parameters_have_the_types_of_the_schema_and_their_lines():
    text = (
        "<tool_call>\n<function=write>\n<parameter=path>\n12\n</parameter>\n<parameter=content>\n"
        'def f():\n    return "</parameter>"\n\n</parameter>\n</function>\n</tool_call>\n'
        "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n<parameter=offset>\n5\n</parameter>\n"
        "</function>\n</tool_call>"
    )
    calls = found(text)
    assert calls is not None
    assert [json.loads(call.arguments) for call in calls.calls] == [
        {"path": "12", "content": 'def f():\n    return "</parameter>"\n'},
        {"path": "a", "offset": 5},
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<tool_call>\n{"name": "read", "arguments": {"path": calc.py}}\n</tool_call>', "JSON"),
        ('{"name": "read", "arguments": {"path": calc.py}}', "JSON"),
        (
            '<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>',
            "no tool read_file",
        ),
        ('{"name": "read", "arguments": {"lines": 3}}', "path"),
        (
            '```json\n{"name": "add", "arguments": {"path": "a.py", "content": "x"}}\n```',
            "no tool add. These are arguments of the tool write",
        ),
        ("[TOOL_CALLS]read{path: 1}", "JSON"),
        ('<|python_tag|>{"code": "print(1)"}', "name"),
        ("```tool_code\nread(path=name)\n```", "plain values"),
        ("```tool_code\nimport os\nprint(os.listdir())\n```", "something other than call tools"),
        ("```tool_code\nread(1, 2, 3, 4)\n```", "by name"),
        ("<function=write>\n<parameter=path>\na.py\n</function>", "closed"),
        (
            "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
            "JSON",
        ),
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
            "JSON",
        ),
        (
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_calls_section_end|>",
            "JSON",
        ),
    ],
)
def test_a_call_that_cannot_be_read_says_why(text, problem):
    calls = found(text)
    assert calls is not None
    assert not calls.calls
    assert problem in calls.problem


ABOUT = [
    "The read tool takes a path. I called it before the edit.",
    f"A call looks like this:\n\n```json\n{JSON_CALL}\n```",
    f"```json\n{JSON_CALL}\n```\nThis is how read is called.",
    f"Qwen writes its calls between tags:\n<tool_call>\n{JSON_CALL}\n</tool_call>",
    f"<tool_call>\n{JSON_CALL}\n</tool_call>\n\nThis is the Hermes format; the server turns it into a native call.",
    f"The log says `{JSON_CALL}`.",
    f"Nothing is to be done.\n\n{JSON_CALL}",
    f"In the log there is\n\n> <tool_call>\n> {JSON_CALL}\n> </tool_call>",
    "[TOOL_CALLS] is a token of Mistral's tokenizer, it begins a list of calls.",
    "<|python_tag|> begins a call of Llama 3.1.",
    f"Then the model answers:\n\n[TOOL_CALLS][{JSON_CALL}]",
    f"```python\ncall = {JSON_CALL}\nrun(call)\n```",
    '{"name": "Anna", "arguments": {"path": "calc.py"}}',
    '```json\n{"name": "read", "version": 2}\n```',
    '{"name": "get_weather", "arguments": {"city": "Paris"}}',
    '[{"path": "a.py"}]',
    "{name} is replaced by the tool's name.",
    f"I will explain how it calls tools. It writes\n\n<tool_call>\n{JSON_CALL}\n</tool_call>",
    "The parser handles <function=read> and <parameter=path>, so I added a test for both.",
    f"I fixed the parser. Given the input\n\n```\n<tool_call>\n{JSON_CALL}\n</tool_call>\n```\n\nit returns one call.",
    f'Here is the body of the request:\n```json\n{{"messages": [], "tool_calls": [{JSON_CALL}]}}\n```',
    "```bash\nread calc.py\n```",
    'Gemma writes its calls so:\n```tool_code\nread(path="calc.py")\n```',
    '```tool_code\nread(path="calc.py")\n```\nis what Gemma writes.',
    f"Let me know if I should run it:\n```json\n{JSON_CALL}\n```",
    f"Let's say the model answers\n\n{JSON_CALL}",
    'Use `bash` with `{"command": "ls"}`.',
    f"1. Read the file:\n   {JSON_CALL}\n2. Then edit it.",
]  # fmt: skip


@pytest.mark.parametrize("text", ABOUT)
def test_a_text_about_calls_calls_nothing(text):
    assert found(text) is None
