"""The demo model, driven through requests the way the loop drives it."""

from itertools import pairwise
from pathlib import Path

import pytest

from tui_agent.agent.goals import read_judgement
from tui_agent.context.request import ContentText, Message, ModelRequest, RequestToolCall
from tui_agent.model.demo import DemoClient, create_demo_workspace
from tui_agent.model.demo_script import load_script
from tui_agent.model.protocol import ErrorKind, ModelError, TextDelta, ToolCallReady, UsageReport
from tui_agent.resources import prompt
from tui_agent.session.entries import INTERRUPTED_OUTPUT, ToolSchema, Usage
from tui_agent.tools.registry import builtin_tools

TOOLS = tuple(
    ToolSchema(name=name, description=name, parameters={"type": "object"})
    for name in ("read", "edit", "bash", "grep", "ls")
)


class Conversation:
    """A conversation with the demo model whose tool results the test decides."""

    def __init__(self, **options: int) -> None:
        self.client = DemoClient(pace=0, **options)
        self.messages: list[Message] = [message("system", "You are an agent.")]
        self.tools = TOOLS

    async def answer(self) -> tuple[str, tuple[RequestToolCall, ...]]:
        request = ModelRequest("demo", tuple(self.messages), self.tools)
        self.events = [event async for event in self.client.stream(request)]
        text = "".join(event.text for event in self.events if isinstance(event, TextDelta))
        ready = [event for event in self.events if isinstance(event, ToolCallReady)]
        calls = tuple(RequestToolCall(call.call_id, call.tool, call.arguments) for call in ready)
        self.messages.append(Message("assistant", (ContentText(text),), tool_calls=calls))
        return text, calls

    @property
    def usage(self) -> Usage:
        """What the last answer reported."""
        return next(event.usage for event in self.events if isinstance(event, UsageReport))

    async def step(self, text: str, output: str = "") -> tuple[str, tuple[RequestToolCall, ...]]:
        """Say something, and give the only call of the answer an output."""
        self.messages.append(message("user", text))
        said, calls = await self.answer()
        if output:
            self.messages.append(Message("tool", (ContentText(output),), call_id=calls[0].call_id))
        return said, calls


def message(role, text: str) -> Message:
    return Message(role, (ContentText(text),))


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


async def test_the_first_answer_says_that_it_is_a_script(talk: Conversation) -> None:
    text, calls = await talk.step("hello")
    assert "I am a script, not a model" in text
    assert "fix the bug" in text
    assert calls == ()
    again, _ = await talk.step("hello")
    assert "I am a script" not in again


async def test_what_it_does_not_know_gets_the_list_of_what_it_does(talk: Conversation) -> None:
    text, _ = await talk.step("Write me a poem about rivers.")
    assert "only the scripted demo" in text
    for known in ("fix the bug", "run the tests", "explain", "show markdown"):
        assert known in text


async def test_continue_repeats_the_step_that_was_interrupted(talk: Conversation) -> None:
    await talk.step("run the tests", f"{INTERRUPTED_OUTPUT}\nsome output")
    _, again = await talk.step("Continue, please", "OK")
    assert [call.tool for call in again] == ["bash"]
    assert "All tests pass" in (await talk.answer())[0]


async def test_without_the_tool_it_needs_it_says_so(talk: Conversation) -> None:
    talk.tools = TOOLS[:1]
    text, calls = await talk.step("run the tests")
    assert ("needs a tool that I am not given" in text, calls) == (True, ())


async def test_at_the_step_limit_it_wraps_up_without_calls(talk: Conversation) -> None:
    last = ModelRequest("demo", (message("user", "fix the bug"),), TOOLS, tool_choice="none")
    events = [event async for event in talk.client.stream(last)]
    assert not any(isinstance(event, ToolCallReady) for event in events)
    assert "no more steps" in "".join(
        event.text for event in events if isinstance(event, TextDelta)
    )


async def test_it_summarises_and_names_sessions_when_the_program_asks(talk: Conversation) -> None:
    for name in ("compaction", "compaction_update"):
        assert "## Goal" in (await talk.step(prompt(name)))[0]
    talk.tools = ()
    assert "## Goal" in (await talk.step("Summarise the conversation so far."))[0]
    talk.messages = [message("user", prompt("race_compare"))]
    assert "script can't compare" in (await talk.answer())[0]
    talk.messages = [message("system", "Give this session a title of a few words.")]
    assert "subtotal" in (await talk.answer())[0]


async def test_usage_grows_and_what_was_sent_before_comes_from_the_cache(
    talk: Conversation,
) -> None:
    usages = []
    for _ in range(3):
        await talk.step("hello " * 50)
        usages.append(talk.usage)
    assert usages[0].cache_read == 0
    assert [usage.prompt for usage in usages] == sorted({usage.prompt for usage in usages})
    for before, now in pairwise(usages):
        assert before.prompt - 2 <= now.cache_read <= before.prompt
        assert now.input < before.total


async def test_another_request_between_does_not_displace_the_conversation_from_the_cache(
    talk: Conversation,
) -> None:
    await talk.step("hello " * 50)
    first = talk.usage
    messages = list(talk.messages)
    talk.messages = [message("system", "Give this session a title of a few words.")]
    await talk.answer()
    talk.messages = messages
    await talk.step("and again")
    assert talk.usage.cache_read >= first.prompt - 2


async def test_a_request_over_the_window_is_an_overflow() -> None:
    with pytest.raises(ModelError, match="500") as caught:
        await Conversation(window=500).step("long " * 1_000)
    assert (caught.value.kind, caught.value.window) == (ErrorKind.CONTEXT_OVERFLOW, 500)


def test_every_call_of_the_script_is_one_that_the_real_tools_take() -> None:
    inputs = {tool.name: tool.Input for tool in builtin_tools()}
    calls = [
        call
        for scenario in load_script().scenarios
        for step in scenario.steps
        for call in step.calls
    ]
    assert calls
    for call in calls:
        inputs[call.tool].model_validate(call.arguments)


def test_a_workspace_that_was_worked_in_is_left_alone(tmp_path: Path) -> None:
    create_demo_workspace(tmp_path)
    changed = tmp_path / "shop" / "cart.py"
    changed.write_text("mine", encoding="utf-8")
    (tmp_path / "README.md").unlink()
    create_demo_workspace(tmp_path)
    assert changed.read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "README.md").exists()


async def test_the_judge_of_a_goal_says_that_a_script_cannot_judge():
    client = DemoClient(pace=0)
    messages = (
        message("system", prompt("goal_judge")),
        message("user", "<goal>\nthe tests pass\n</goal>"),
    )
    events = client.stream(ModelRequest("demo", messages))
    text = "".join([event.text async for event in events if isinstance(event, TextDelta)])
    judged = read_judgement(text)
    assert not judged.is_reached
    assert judged.reason == "A script can't judge; a model would say here what is missing."
