"""A model that writes its calls as text works all the same; what can't be read is told once."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.model_client import host_client
from tests.support.model_script import Turn
from tests.support.model_server import ModelServer
from tests.support.scripted_client import Reply
from tui_agent.agent.events import PermissionAsked
from tui_agent.cli.output import ExitCode
from tui_agent.session.entries import AssistantEntry, ToolResultEntry, UserEntry
from tui_agent.ui.widgets.transcript.cards import CardBlock

MODEL = "openai/local"
STEPS = (
    ("read", {"path": "calc.py"}),
    ("edit", {"path": "calc.py", "edits": [{"old": "a - b", "new": "a + b"}]}),
)


def qwen_coder(tool: str, arguments: dict) -> str:
    texts = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in arguments.items()
    }
    inner = "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in texts.items())
    return f"Let me look at it.\n\n<tool_call>\n<function={tool}>\n{inner}</function>\n</tool_call>"


FORMS: dict[str, Callable[[str, dict], str]] = {
    "hermes": lambda tool, args: (
        f"<tool_call>\n{json.dumps({'name': tool, 'arguments': args})}\n</tool_call>"
    ),
    "qwen_coder": qwen_coder,
    "llama_bare": lambda tool, args: json.dumps({"name": tool, "parameters": args}),
}


@pytest.mark.parametrize("form", FORMS)
async def test_a_model_that_writes_its_calls_as_text_mends_a_file(
    tmp_path: Path, form: str
) -> None:
    with ModelServer() as server:
        server.play(
            *(Turn(text=FORMS[form](*step)) for step in STEPS), Turn(text="The sum is right now.")
        )
        client = host_client(server)
        harness = make_agent(tmp_path, client, model=MODEL)
        file = harness.agent.ports.cwd / "calc.py"
        file.write_text("def add(a, b):\n    return a - b\n")

        ended = await harness.say("mend calc.py")
        await client.aclose()
    path = harness.path()
    last = json.loads(server.calls[-1].body)["messages"]
    made = [
        call for entry in path if isinstance(entry, AssistantEntry) for call in entry.tool_calls
    ]

    assert (ended.reason, ended.steps) == ("done", 3)
    assert file.read_text() == "def add(a, b):\n    return a + b\n"
    assert [
        request.permission
        for event in harness.of(PermissionAsked)
        for request in event.request.needs
    ] == ["edit"]
    assert all(call.as_text for call in made)
    assert "written as text" in str(CardBlock(made[0]).lines(80))
    # The server's template gets them as native calls with their results, and not as text beside.
    assert [message["role"] for message in last[-4:]] == ["assistant", "tool", "assistant", "tool"]
    assert [
        call["function"]["name"] for message in last for call in message.get("tool_calls", ())
    ] == ["read", "edit"]
    assert "calc.py" not in json.dumps(
        [message["content"] for message in last if message["role"] == "assistant"]
    )


async def test_what_cannot_be_read_is_told_once_and_then_ends_a_headless_run(
    tmp_path: Path,
) -> None:
    broken = '<tool_call>\n{"name": "read", "arguments": {"path": }\n</tool_call>'
    harness = make_agent(tmp_path, [Reply(broken)])
    err = io.StringIO()
    assert await run_headless(harness, "read it", err=err) is ExitCode.STOPPED
    told = [
        entry
        for entry in harness.path()
        if isinstance(entry, UserEntry) and entry.synthetic == "unread_call"
    ]
    assert len(told) == 1
    assert "JSON" in told[0].text
    assert "can't be read" in err.getvalue()


async def test_a_call_after_that_is_run_and_lets_it_be_told_again(tmp_path: Path) -> None:
    broken, good = (
        '{"name": "read", "arguments": {"lines": 3}}',
        '{"name": "glob", "arguments": {"pattern": "*"}}',
    )
    harness = make_agent(
        tmp_path, [Reply(broken), Reply(good), Reply(broken), Reply("An empty directory.")]
    )
    assert (await harness.say("what is there?")).reason == "done"
    assert [entry.tool for entry in harness.path() if isinstance(entry, ToolResultEntry)] == [
        "glob"
    ]
