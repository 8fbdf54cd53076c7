"""Every call gets exactly one result, whatever is raised on its way."""

import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.agents import make_agent
from tests.support.request_validator import validate
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.support.thoroughness import thorough
from tui_agent.agent.calls import stages
from tui_agent.agent.calls.repetition import RepetitionWatch
from tui_agent.agent.events import ToolOutput
from tui_agent.agent.permissions import Action, Rule
from tui_agent.errors import ToolError, UserFacingError
from tui_agent.session.entries import AssistantEntry, ToolStatus
from tui_agent.session.errors import StoreFull
from tui_agent.tools.bash import BashTool
from tui_agent.tools.read import ReadTool
from tui_agent.tools.write import WriteTool


class OddError(BaseException):
    """An error that is no Exception."""


ERRORS: tuple[BaseException, ...] = (
    ToolError("not like this"),
    UserFacingError("not now"),
    StoreFull("x"),
    ValueError("embedded null byte"),
    OSError(28, "No space left on device"),
    StopIteration(),
    StopAsyncIteration(),
    KeyError("x"),
    RecursionError(),
    MemoryError(),
    TimeoutError(),
    asyncio.CancelledError(),
    asyncio.InvalidStateError(),
    SystemExit(3),
    OddError("odd"),
    BaseExceptionGroup("group", [ValueError("a"), OddError("b")]),
    UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates"),
)
PLACES: tuple[tuple[Any, str], ...] = (
    (RepetitionWatch, "around"),
    (stages.Understood, "around"),
    (stages.Hooked, "around"),
    (stages.Allowed, "around"),
    (stages.Opened, "around"),
    (stages.Announced, "around"),
    (stages.Detached, "around"),
    (stages.Diagnosed, "around"),
    (stages.Recorded, "around"),
    (stages.Run, "around"),
    (ReadTool, "run"),
    (WriteTool, "run"),
    (BashTool, "run"),
    (WriteTool, "needs"),
    (WriteTool, "touches"),
    (ReadTool, "title"),
    (WriteTool, "title"),
    (ReadTool, "resolve"),
)
CALLS = (
    Call("read", json.dumps({"path": "a.txt"})),
    Call("read", json.dumps({"path": "b.txt"})),
    Call("write", json.dumps({"path": "c.txt", "content": "new"})),
    Call("bash", json.dumps({"command": "echo hello"})),
    Call("nothing", "{}"),
    Call("write", "{"),
)
ALLOW = (Rule("*", "*", Action.ALLOW, "flag"),)


@thorough
@given(
    place=st.sampled_from(PLACES),
    error=st.sampled_from(ERRORS),
    after=st.booleans(),
    calls=st.lists(st.sampled_from(CALLS), min_size=1, max_size=5),
)
async def test_whatever_is_raised_each_call_has_one_result(
    tmp_path_factory: pytest.TempPathFactory,
    place: tuple[Any, str],
    error: BaseException,
    after: bool,
    calls: list[Call],
) -> None:
    owner, name = place
    original = getattr(owner, name)

    def broken(*given: Any, **named: Any) -> Any:
        if after and not inspect.iscoroutinefunction(original):
            original(*given, **named)
        raise error

    async def broken_later(*given: Any, **named: Any) -> Any:
        if after:
            await original(*given, **named)
        raise error

    client = ScriptedClient([Reply("Working.", calls=tuple(calls)), Reply("Done.")])
    harness = make_agent(tmp_path_factory.mktemp("calls"), client, rules=ALLOW, keeps_files=True)
    is_async = inspect.iscoroutinefunction(original)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, broken_later if is_async else broken)
        ended = await harness.say("do it")
    assert ended.reason == "done", ended
    asked = [call.call_id for entry in harness.entries(AssistantEntry) for call in entry.tool_calls]
    assert sorted(result.call_id for result in harness.results()) == sorted(asked)
    validate(client.requests[-1])
    await harness.agent.aclose()
    harness.store.close()


async def test_an_error_that_no_tool_should_raise_is_told_to_the_model(tmp_path: Path) -> None:
    """grep hands its pattern to a program, and no argument of one may hold a NUL."""
    calls = (
        Call("grep", json.dumps({"pattern": "a\0b"})),
        Call("read", json.dumps({"path": "none.txt"})),
    )
    harness = make_agent(tmp_path, [Reply("", calls=calls), Reply("Done.")], rules=ALLOW)
    assert (await harness.say("look")).reason == "done"
    results = {result.tool: result for result in harness.results()}
    assert results["grep"].status is ToolStatus.ERROR
    assert results["read"].status is ToolStatus.ERROR


async def test_an_interrupt_leaves_one_result_for_each_call(tmp_path: Path) -> None:
    calls = (Call("bash", json.dumps({"command": "echo begun; sleep 60"})), *CALLS)
    harness = make_agent(tmp_path, [Reply("", calls=calls)], rules=ALLOW)
    harness.agent.submit("wait")
    await harness.until(lambda: bool(harness.of(ToolOutput)))
    harness.agent.interrupt()
    assert (await harness.ended()).reason == "interrupted"
    assert [result.status for result in harness.results()] == [ToolStatus.INTERRUPTED] * len(calls)
    assert "begun" in harness.results()[0].output
