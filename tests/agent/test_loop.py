"""A run from a message to an idle agent: what is in the tree afterwards, and what the model was sent."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from unittest.mock import AsyncMock

import pytest

from tests.support.agents import MODEL, FixedDirectory, Harness, make_agent
from tests.support.knowledge import write
from tests.support.scripted_client import Call, Reply, ScriptedClient, call
from tests.support.stores import unable_to_store
from tests.support.texts import said
from tui_agent.agent.agent import MAX_ENTRIES_AT_ONCE, Agent
from tui_agent.agent.channel import EventChannel, Journal
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.events import (
    AgentEvent,
    CompactionStarted,
    CostKnown,
    Decision,
    EntryAppended,
    Notice,
    PermissionAnswer,
    PermissionAsked,
    QueueChanged,
    RetryScheduled,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.tool_runner import MAX_CALLS
from tui_agent.context.budget import ModelLimits
from tui_agent.context.request import ModelRequest, request_bytes
from tui_agent.model.protocol import ErrorKind, ModelError, ModelEvent, TextDelta
from tui_agent.model.waits import LOADING_DELAY, LOADING_PATIENCE
from tui_agent.permission import PermissionNeed
from tui_agent.session.entries import (
    AssistantEntry,
    ModelChangeEntry,
    TextPart,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.errors import StoreError
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult


async def test_what_the_model_gets_wrong_is_answered_to_the_model(tmp_path: Path) -> None:
    wrong = (Call("raed", "{}"), Call("read", '{"path": '), call("read", path="missing.txt"))
    harness = make_agent(tmp_path, [Reply(calls=wrong), Reply("Sorry.")])
    assert (await harness.say("go")).reason == "done"
    for result, word in zip(harness.results(), ("read", "JSON", "missing.txt"), strict=True):
        assert result.status is ToolStatus.ERROR
        assert word in result.output


async def test_more_calls_than_one_answer_may_make_are_refused_with_a_result_each(
    tmp_path: Path,
) -> None:
    rules = (Rule("doom_loop", "*", Action.ALLOW, "flag"),)
    harness = make_agent(
        tmp_path, [Reply(calls=(call("ls", path="."),) * 600), Reply("Enough.")], rules=rules
    )
    assert (await harness.say("look everywhere")).reason == "done"
    found = harness.results()
    assert len(found) == 600
    assert [entry.status for entry in found].count(ToolStatus.COMPLETED) == MAX_CALLS == 64
    assert all("one answer may contain 64 calls" in entry.output for entry in found[64:])


async def test_the_step_limit_forces_an_answer_without_tools(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply(calls=(call("ls", path="."),))], max_steps=3)
    assert await harness.say("go") == RunEnded("step_limit", steps=3)
    assert [request.tool_choice for request in harness.client.requests] == ["auto", "auto", "none"]
    assert [entry.synthetic for entry in harness.entries(UserEntry)] == [None, "step_limit"]
    assert harness.results()[-1].status is ToolStatus.DENIED


async def interrupted(harness) -> RunEnded:
    harness.agent.interrupt()
    async with asyncio.timeout(60):
        return await harness.ended()


async def test_interrupt_while_streaming_keeps_what_came(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("Half an answer", hang=True), Reply("Whole.")])
    harness.agent.submit("go")
    await asyncio.wait_for(harness.client.hanging.wait(), 60)
    assert (await interrupted(harness)).reason == "interrupted"
    (answer,) = harness.entries(AssistantEntry)
    assert (answer.text, answer.interrupted) == ("Half an answer", True)
    assert harness.client.closed == 1
    harness.agent.retry()
    assert (await harness.ended()).reason == "done"
    assert harness.client.requests[-1].messages[-1].role == "user", (
        "a request never ends in an answer"
    )


async def test_interrupt_while_a_command_runs_keeps_its_output_and_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.processes.watcher.TERM_GRACE_SECONDS", 1.5)
    command = "trap '' TERM; echo started; echo $$ > pid; sleep 60 & wait; sleep 60"
    harness = make_agent(
        tmp_path,
        [Reply(calls=(call("bash", command=command), call("ls", path="."))), Reply("Fine.")],
    )
    harness.agent.submit("go")
    await harness.until(lambda: any("started" in event.text for event in harness.of(ToolOutput)))
    assert (await interrupted(harness)).reason == "interrupted"
    pid = int((tmp_path / "project" / "pid").read_text())
    assert Path(f"/proc/{pid}").exists(), "the run doesn't wait until its command has ended"
    first, second = harness.results()
    assert {first.status, second.status} == {ToolStatus.INTERRUPTED}
    assert "started" in first.output
    await harness.agent.aclose()
    await harness.until(lambda: not Path(f"/proc/{pid}").exists())
    assert (await harness.say("go on")).reason == "done"


async def test_interrupt_during_the_countdown(tmp_path: Path) -> None:
    limit = ModelError(ErrorKind.RATE_LIMIT, "Slow down.", retry_after=50)
    harness = make_agent(tmp_path, [Reply(error=limit), Reply("Ok.")])
    harness.agent.submit("go")
    await harness.until(lambda: bool(harness.of(RetryScheduled)))
    assert (await interrupted(harness)).reason == "interrupted"
    (left,) = harness.entries(AssistantEntry)
    assert (left.interrupted, left.error, left.parts) == (True, "Slow down.", ())
    assert (await harness.say("again")).reason == "done"
    assert [entry.text for entry in harness.entries(UserEntry)] == ["go", "again"]


async def test_a_waiting_message_sent_now_ends_the_answer_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    script = [Reply("Half an answer", hang=True), Reply("Seen."), Reply("That too.")]
    harness = make_agent(tmp_path, script)
    harness.agent.submit("go")
    await asyncio.wait_for(harness.client.hanging.wait(), 60)
    assert not harness.agent.send_now(), "nothing waits"
    harness.agent.submit("and then this", follow_up=True)
    assert not harness.agent.send_now(), "it waits for the end of the run"
    harness.agent.submit("stop that")
    assert harness.agent.send_now()
    async with asyncio.timeout(60):
        assert (await harness.ended()).reason == "done"
    assert len(harness.of(RunStarted)) == len(harness.of(RunEnded)) == 1
    answers = [(entry.text, entry.interrupted) for entry in harness.entries(AssistantEntry)]
    assert answers == [("Half an answer", True), ("Seen.", False), ("That too.", False)]
    users = [(entry.text, entry.mid_run) for entry in harness.entries(UserEntry)]
    assert users == [("go", False), ("stop that", True), ("and then this", False)]
    assert not harness.agent.send_now(), "the run is over"


async def test_a_waiting_message_sent_now_ends_the_command_that_runs(tmp_path: Path) -> None:
    script = [Reply(calls=(call("bash", command="echo started; sleep 60"),)), Reply("Seen.")]
    harness = make_agent(tmp_path, script)
    harness.agent.submit("go")
    await harness.until(lambda: any("started" in event.text for event in harness.of(ToolOutput)))
    harness.agent.submit("not that")
    assert harness.agent.send_now()
    async with asyncio.timeout(60):
        assert (await harness.ended()).reason == "done"
    (result,) = harness.results()
    assert result.status is ToolStatus.INTERRUPTED
    assert "started" in result.output
    await harness.agent.aclose()


async def test_an_interrupt_after_sending_now_still_ends_the_run(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("Half an answer", hang=True), Reply("Seen.")])
    harness.agent.submit("go")
    await asyncio.wait_for(harness.client.hanging.wait(), 60)
    harness.agent.submit("stop that")
    assert harness.agent.send_now()
    assert harness.agent.send_now(), "a second time changes nothing"
    assert (await interrupted(harness)).reason == "interrupted"
    assert (await harness.say("again")).reason == "done"


async def test_interrupt_before_anything_happened(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("Ok.")])
    harness.agent.submit("go")
    assert (await interrupted(harness)).reason == "interrupted"
    harness.agent.retry()
    assert (await harness.ended()).reason == "done"
    assert [entry.text for entry in harness.entries(UserEntry)] == ["go"]


async def test_a_passing_failure_is_tried_again_and_nothing_is_said_twice(tmp_path: Path) -> None:
    broken = Reply("Half", error=ModelError(ErrorKind.NETWORK, "The connection broke."))
    harness = make_agent(tmp_path, [broken, Reply("Whole.")], sleep=AsyncMock())
    assert (await harness.say("go")).reason == "done"
    assert [entry.text for entry in harness.entries(AssistantEntry)] == ["Whole."]
    every = [header.kind for header in harness.session.skeleton()]
    assert every.count("assistant") == 2, "the failed attempt stays in the tree, beside the path"
    assert "Half" not in request_bytes(harness.client.requests[1]).decode()
    assert harness.session.entry(harness.of(RetryScheduled)[0].kept).text == "Half"


async def test_an_attempt_that_only_thought_is_charged(tmp_path: Path) -> None:
    broken = ModelError(ErrorKind.NETWORK, "The connection broke.")
    script = [Reply(reasoning="Hm.", error=broken, cost=0.5), Reply("Whole.", cost=0.25)]
    harness = make_agent(tmp_path, script, sleep=AsyncMock())
    assert (await harness.say("go")).reason == "done"
    assert harness.of(RetryScheduled)[0].kept is None
    assert harness.session.info.side_cost == pytest.approx(0.5)
    assert harness.agent.ports.meter.cost == pytest.approx(0.75)


async def test_a_server_that_loads_its_model_is_waited_for(tmp_path: Path) -> None:
    """Minutes, and not as attempts of its own few."""
    loading = Reply(
        error=ModelError(ErrorKind.LOADING, "127.0.0.1:8080 is loading the model.", status=503)
    )
    refused = Reply(error=ModelError(ErrorKind.NETWORK, "Nothing answers there."))
    client = ScriptedClient([*[refused] * 3, *[loading] * 100, Reply("Ready."), loading])
    harness = make_agent(tmp_path, client, sleep=AsyncMock())
    assert (await harness.say("go")).reason == "done"
    assert [event.loading for event in harness.of(RetryScheduled)][:5] == [
        None,
        None,
        None,
        0.0,
        2.0,
    ]
    assert (await harness.say("again")).error == "127.0.0.1:8080 is loading the model."
    assert harness.of(RetryScheduled)[-1].loading == LOADING_PATIENCE - LOADING_DELAY


class Cut(ScriptedClient):
    """Ends its streams after the first piece."""

    async def events(self, reply, number):
        async for event in super().events(reply, number):
            yield event
            return


async def test_an_answer_that_breaks_off_is_tried_again_a_few_times_only(tmp_path: Path) -> None:
    client = Cut([Reply("Some text that is cut")])
    ended = await make_agent(tmp_path, client, sleep=AsyncMock()).say("go")
    assert ended.reason == "error"
    assert "in the middle of the answer" in (ended.error or "")
    assert 1 < len(client.requests) < 10


async def work_while_asked(harness: Harness, act: Callable[[], object]) -> None:
    """Do something while a call of the first step waits for the user, who then allows it."""
    harness.agent.submit("first")
    await harness.until(lambda: harness.agent.questions.open is not None)
    act()
    harness.agent.answer_permission(
        harness.agent.questions.open.call_id, PermissionAnswer(Decision.ONCE)
    )
    await harness.ended()


ASKS = Reply(calls=(call("bash", command="rm -f gate"),))


async def test_a_message_during_a_run_steers_it_after_the_tool_batch(tmp_path: Path) -> None:
    harness = make_agent(
        tmp_path, client := ScriptedClient([ASKS, Reply("Seen both.")]), answer=None
    )
    await work_while_asked(harness, lambda: harness.agent.submit("second"))
    assert harness.of(QueueChanged)[-2:] == [QueueChanged(steer=("second",)), QueueChanged()]
    users = [(entry.text, entry.mid_run) for entry in harness.entries(UserEntry)]
    assert users == [("first", False), ("second", True)]
    assert harness.kinds() == ["system", "user", "assistant", "tool_result", "user", "assistant"]
    assert "<system-reminder>" in client.requests[1].messages[-1].text


async def test_a_message_that_the_run_can_not_take_yet_is_shown_as_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.agent.agent.SHOWN_SECONDS", 0.01)
    harness = make_agent(tmp_path, [Reply("Yes.")])
    head = harness.agent.context.head
    gather, ready = head.gather_tools, asyncio.Event()

    async def slow(model: str, mode: str) -> None:
        await ready.wait()
        await gather(model, mode)

    monkeypatch.setattr(head, "gather_tools", slow)
    harness.agent.submit("hello")
    await harness.until(lambda: harness.of(QueueChanged) == [QueueChanged(steer=("hello",))])
    ready.set()
    assert (await harness.ended()).reason == "done"
    assert harness.of(QueueChanged)[-1] == QueueChanged()


async def test_a_follow_up_waits_until_the_agent_is_idle(tmp_path: Path) -> None:
    harness = make_agent(
        tmp_path, ScriptedClient([ASKS, Reply("One."), Reply("Two.")]), answer=None
    )

    def send() -> None:
        harness.agent.submit("later", follow_up=True)
        harness.agent.submit("changed my mind", follow_up=True)
        assert harness.agent.take_back() == "changed my mind"

    await work_while_asked(harness, send)
    users = [(entry.text, entry.mid_run) for entry in harness.entries(UserEntry)]
    assert users == [("first", False), ("later", False)]
    assert len(harness.of(RunEnded)) == 1


async def test_changing_the_model_during_a_run_never_parts_a_call_from_its_result(
    tmp_path: Path,
) -> None:
    harness = make_agent(tmp_path, [ASKS, Reply("Done.")], answer=None)
    await work_while_asked(harness, lambda: harness.agent.change_model("test/other"))
    kinds = harness.kinds()
    assert kinds == [
        "system",
        "user",
        "assistant",
        "tool_result",
        "model_change",
        "system",
        "assistant",
    ]
    assert harness.client.requests[1].model == "test/other"


async def test_a_command_of_the_user_is_told_to_the_model_unless_excluded(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("I see.")])
    await harness.agent.run_shell("echo visible", excluded=False)
    await harness.agent.run_shell("echo hidden", excluded=True)
    await harness.say("what did I run?")
    sent = request_bytes(harness.client.requests[0]).decode()
    assert ("visible" in sent, "hidden" in sent) == (True, False)


async def test_a_command_of_the_user_is_seen_at_once_and_can_be_stopped(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("x")])
    waiting = asyncio.ensure_future(harness.agent.run_shell("echo begun; sleep 60"))
    await harness.until(lambda: any("begun" in event.text for event in harness.of(ToolOutput)))
    assert [event.title for event in harness.of(ToolStarted)] == ["echo begun; sleep 60"]
    harness.agent.interrupt()
    entry = await asyncio.wait_for(waiting, 60)
    assert entry.output == "begun\n(interrupted)", "what it printed is kept"
    assert harness.path()[-1].kind == "shell"
    assert harness.of(ToolFinished)[-1].status == "interrupted"


@pytest.mark.parametrize(
    ("kind", "text"), [*((kind, "") for kind in ErrorKind), (ErrorKind.AUTH, "Half")]
)
async def test_every_kind_of_error_leaves_a_session_that_goes_on(
    tmp_path: Path, kind: ErrorKind, text: str
) -> None:
    failed = Reply(text, error=ModelError(kind, "No."))
    client = ScriptedClient(
        lambda request: Reply("Fine.") if "again" in request.messages[-1].text else failed
    )
    harness = make_agent(tmp_path, client, sleep=AsyncMock())
    assert ((await harness.say("go")).error or "").startswith("No.")
    harness.agent.retry()
    assert (await harness.ended()).reason != "done"
    assert (await harness.say("again")).reason == "done"
    assert client.requests[-1].messages[-1].role == "user"
    assert ("continue" in [entry.synthetic for entry in harness.entries(UserEntry)]) is bool(text)


async def test_what_came_before_an_unexpected_error_is_kept(tmp_path: Path) -> None:
    class Broken(ScriptedClient):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            yield TextDelta("Half an answer")
            raise KeyError(request.model)

    harness = make_agent(tmp_path, Broken([]))
    assert (await harness.say("go")).reason == "error"
    assert harness.agent.live is None
    (answer,) = harness.entries(AssistantEntry)
    assert (answer.text, answer.finish) == ("Half an answer", "error")


@pytest.fixture
def repeat(tmp_path: Path) -> Callable[..., Harness]:
    """Return a function that makes an agent whose model makes the same call so many times."""
    write(tmp_path / "project" / "same.txt", "nothing new")
    same = Reply(calls=(call("read", path="same.txt"),))
    return lambda times, **more: make_agent(
        tmp_path, [*[same] * times, Reply("I give up.")], **more
    )


@pytest.mark.parametrize(
    ("decision", "times", "reason", "asked"),
    [
        (Decision.DENY, 3, "done", 1),
        (Decision.STOP, 5, "stopped", 1),
        (Decision.SESSION, 6, "done", 1),
    ],
)
async def test_the_third_identical_call_asks_before_it_runs(
    repeat: Callable[..., Harness], decision: Decision, times: int, reason: str, asked: int
) -> None:
    harness = repeat(times, answer=PermissionAnswer(decision, "look elsewhere"))
    ended = await harness.say("go")
    requests = [event.request for event in harness.of(PermissionAsked)]
    assert (ended.reason, len(requests)) == (reason, asked)
    assert "3 times in a row" in requests[0].reason
    assert "3 times in a row" in (ended.error or requests[0].reason)
    assert len(requests[0].loop) == 2
    results = harness.results()
    assert len(results) == min(times, 3 if decision is Decision.STOP else times)
    assert (results[2].status is ToolStatus.COMPLETED) is (decision is Decision.SESSION)
    assert ("look elsewhere" in results[2].output) is (decision is Decision.DENY)


async def test_without_anybody_to_ask_a_loop_is_refused_once_and_then_ends_the_run(
    repeat: Callable[..., Harness],
) -> None:
    harness = repeat(9, answer=None, rules=(Rule("doom_loop", "*", Action.DENY),))
    assert (await harness.say("go")).reason == "stopped"
    expected = [*[ToolStatus.COMPLETED] * 2, *[ToolStatus.DENIED] * 2]
    assert [result.status for result in harness.results()] == expected


def at_the_end(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something once, after a run has found nothing left to do and before it has ended."""
    after_run, done = ContextKeeper.after_run, []

    async def ended(keeper: ContextKeeper) -> None:
        await after_run(keeper)
        if not done:
            done.append(act())

    monkeypatch.setattr(ContextKeeper, "after_run", ended)


async def test_a_message_sent_in_the_instant_a_run_ends_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = make_agent(tmp_path, [Reply("First."), Reply("Second.")])
    at_the_end(monkeypatch, lambda: harness.agent.submit("one more thing"))
    assert (await harness.say("hi")).reason == "done"
    said = [entry.text for entry in harness.path() if isinstance(entry, UserEntry | AssistantEntry)]
    assert said == ["hi", "First.", "one more thing", "Second."]
    assert len(harness.of(RunEnded)) == 1
    assert not any(entry.mid_run for entry in harness.entries(UserEntry))


async def test_an_edit_made_in_the_instant_a_run_ends_is_not_kept_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = make_agent(tmp_path, [Reply("First.")])
    at_the_end(monkeypatch, lambda: harness.agent.edit_context(2, "pin"))
    assert (await harness.say("hi")).reason == "done"
    assert harness.kinds() == ["system", "user", "assistant", "context_edit"]


@pytest.mark.parametrize("numbers", [{}, {"window": 10_000, "sent": 12_000}])
async def test_an_overflow_teaches_a_smaller_window_and_what_the_server_counted(
    tmp_path: Path, numbers: dict[str, int]
) -> None:
    refused = ModelError(ErrorKind.CONTEXT_OVERFLOW, "The prompt is too long.", **numbers)
    harness = make_agent(tmp_path, [Reply(error=refused), Reply("Fine.")], sleep=AsyncMock())
    assert (await harness.say("word " * 9_000)).reason == "done"
    assert 8_000 < harness.directory.windows[MODEL] < 12_000
    assert any("without naming a limit" in event.message for event in harness.of(Notice)) is (
        not numbers
    )
    if numbers:
        model, counted, reported = harness.directory.learnt[0]
        assert (model, reported) == (MODEL, 12_000)
        assert counted > 9_000


class NoLongest(FixedDirectory):
    """Nothing is known of a longest answer, as of most servers of one's own."""

    def limits(self, model: str) -> ModelLimits:
        return replace(super().limits(model), max_output=None)


@pytest.mark.parametrize(("reasoning", "share"), [("", 0.2), ("I think.", 0.5)])
async def test_an_answer_may_take_what_is_kept_free_for_it(
    tmp_path: Path, reasoning: str, share: float
) -> None:
    """Of a model that thinks half of what is free: its thinking is part of the answer."""
    cut = Reply("Half of", reasoning=reasoning, finish="length")
    harness = make_agent(
        tmp_path, [Reply("One.", reasoning=reasoning), cut], directory=NoLongest(20_000)
    )
    await harness.say("hello")
    assert (await harness.say("go on")).reason == "length"
    first, second = (request.max_output_tokens or 0 for request in harness.client.requests)
    assert 3_500 < first < 4_000
    assert 3_500 * share / 0.2 * 0.8 < second <= 20_000 * share


async def test_a_paused_answer_is_gone_on_with_and_nothing_is_said_in_between(
    tmp_path: Path,
) -> None:
    def reply(_request: ModelRequest) -> Reply:
        if len(client.requests) == 1:
            harness.agent.submit("And Osaka?")
        if len(client.requests) == 2:
            return Reply("Tokyo has 37 million.")
        return Reply("[web_search] more", finish="pause")

    client = ScriptedClient(reply)
    harness = make_agent(tmp_path, client, max_steps=5)
    assert await harness.say("How many live in Tokyo?") == RunEnded("step_limit", steps=5)
    assert [message.role for message in client.requests[1].messages[-2:]] == ["user", "assistant"]
    assert client.requests[1].messages[-1].text == "[web_search] more"
    assert client.requests[2].messages[-1].text.count("And Osaka?") == 1
    said = [entry.text for entry in harness.path() if isinstance(entry, AssistantEntry | UserEntry)]
    assert said[:4] == [
        "How many live in Tokyo?",
        "[web_search] more",
        "Tokyo has 37 million.",
        "And Osaka?",
    ]


async def test_a_refusal_says_why_and_ends_the_run(tmp_path: Path) -> None:
    harness = make_agent(
        tmp_path, [Reply(finish="content_filter", note="This was blocked under the usage policy.")]
    )
    told = "The provider refused to answer: This was blocked under the usage policy."
    assert await harness.say("do harm") == RunEnded("error", told, 1)
    (answer,) = harness.entries(AssistantEntry)
    assert (answer.finish, answer.error) == ("content_filter", told)
    assert len(harness.client.requests) == 1


LONG = "word " * 40_000
"""More than the rest of a page."""


def leave_room(harness: Harness, pages: int) -> None:
    with harness.store.reader() as connection:
        taken = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {taken + pages}").fetchone()


async def test_a_message_that_can_not_be_stored_waits_for_its_turn(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("Hello."), Reply("Here you are.")])
    await harness.say("hi")
    leave_room(harness, 0)
    ended = await harness.say(LONG)
    assert ended.reason == "error"
    assert "There is no space on the disk" in (ended.error or "")
    assert harness.of(QueueChanged)[-1].steer == (LONG,)
    leave_room(harness, 1_000_000)
    assert (await harness.say("and this")).reason == "done"
    assert [entry.text for entry in harness.entries(UserEntry)] == ["hi", LONG, "and this"]


@pytest.mark.parametrize(
    ("goes", "answers"), [(False, ["Hello.", LONG]), (True, ["Anew."])], ids=["stays", "goes"]
)
async def test_an_answer_that_can_not_be_stored_is_stored_later_unless_the_user_goes_elsewhere(
    tmp_path: Path, goes: bool, answers: list[str]
) -> None:
    harness = make_agent(tmp_path, [Reply("Hello."), Reply(LONG), Reply("Anew.")])
    await harness.say("hi")
    leave_room(harness, 20)
    assert (await harness.say("a long one, please")).reason == "error"
    leave_room(harness, 1_000_000)
    if goes:
        await harness.agent.navigator.go(None)
        await harness.say("hi again")
    else:
        harness.agent.retry()
        assert (await harness.ended()).reason == "done"
    assert len(harness.client.requests) == 2 + goes
    assert [entry.text for entry in harness.entries(AssistantEntry)] == answers


CALLS = {
    "read": {}, "ls": {}, "write": {"content": "x"}, "edit": {"edits": [{"old": "a", "new": "b"}]},
    "grep": {"pattern": "a"}, "glob": {"pattern": "*"},
}  # fmt: skip


@pytest.mark.parametrize(
    "path",
    ["x" * 300, f"/{'x' * 300}/x", "closed", "closed/x", "circle/x", "~nobody-of-that-name/x"],
)
async def test_no_tool_ends_the_run(tmp_path: Path, path: str) -> None:
    calls = [Call(tool, json.dumps({"path": path, **more})) for tool, more in CALLS.items()]
    calls.append(call("bash", command=f"cat {path}; cd {path} && ls; echo x > {path}"))
    harness = make_agent(tmp_path, [Reply(calls=tuple(calls)), Reply("Done.")])
    project = harness.agent.ports.project
    (project / "closed").mkdir(mode=0)
    (project / "circle").symlink_to("circle")
    assert (await harness.say(f"look at @{path}")).reason == "done"
    results = harness.results()
    assert len(results) == len(calls)
    (project / "closed").chmod(0o700)


def test_what_rests_on_an_entry_changes_when_it_is_stored_and_before_anybody_is_told(
    tmp_path: Path,
) -> None:
    with Store(tmp_path / "sessions.db", clock=lambda: 1_000) as store:
        session = Session(store, store.create_session("/project").id, estimate=lambda _entry: 1)
        channel, order = EventChannel(), list[str]()
        channel.subscribe(
            lambda event: order.append("told" if isinstance(event, EntryAppended) else "else")
        )
        Journal(session, channel).append(
            said("one"), lambda: order.append(f"changed at {session.leaf}")
        )
        assert order == ["changed at 1", "told"]
        read_only = Session(store, session.id, estimate=lambda _entry: 1, read_only=True)
        with pytest.raises(StoreError):
            Journal(read_only, channel).append(said("lost"), lambda: order.append("changed"))
        assert order == ["changed at 1", "told"]


@pytest.mark.parametrize(("entries", "is_long"), [(3, False), (MAX_ENTRIES_AT_ONCE + 2, True)])
async def test_the_cost_of_a_long_session_is_added_up_when_there_is_time(
    tmp_path: Path, entries: int, is_long: bool
) -> None:
    harness, events = make_agent(tmp_path, []), list[AgentEvent]()
    answer = AssistantEntry(parts=(TextPart(text="so"),), model="test/model", cost=0.5)
    harness.session.append_many([answer] * entries)
    agent = Agent(harness.session, harness.agent.ports, model="test/model")
    agent.channel.subscribe(events.append)
    assert agent.session_cost() == (None if is_long else 1.5)
    await agent.warm()
    assert agent.session_cost() == entries / 2
    assert (CostKnown() in events) is is_long


class Meet(Tool[ToolInput]):
    """Ends once as many calls run at the same time as were expected; tells the most that ever did."""

    name: ClassVar[str] = "meet"
    description: ClassVar[str] = "Wait for the others."
    Input = ToolInput
    read_only: ClassVar[bool] = True

    def __init__(self, expected: int) -> None:
        self._full = asyncio.Event()
        self._expected = expected
        self.running = self.most = 0

    def needs(self, arguments: ToolInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        return ()

    async def run(self, arguments: ToolInput, context: ToolContext) -> ToolResult:
        self.running += 1
        self.most = max(self.most, self.running)
        if self.running == self._expected:
            self._full.set()
        await asyncio.wait_for(self._full.wait(), 60)
        self.running -= 1
        return ToolResult("met")


@pytest.mark.parametrize("allowed", [1, 2, 4])
async def test_no_more_calls_run_side_by_side_than_allowed(tmp_path: Path, allowed: int) -> None:
    meet = Meet(expected=allowed)
    client = ScriptedClient(
        [Reply(calls=tuple(Call("meet", "{}") for _ in range(4))), Reply("Done.")]
    )
    harness = make_agent(tmp_path, client, tools=(meet,), parallel_calls=allowed)
    await harness.say("meet")
    assert meet.most == allowed
    assert harness.kinds().count("tool_result") == 4


async def in_the_middle(tmp_path: Path) -> Harness:
    """Return an agent in the middle of its first answer; the second will be complete."""
    harness = make_agent(tmp_path, [Reply("Half", hang=True), Reply("Ok.")])
    harness.agent.submit("go")
    await asyncio.wait_for(harness.client.hanging.wait(), 60)
    return harness


async def test_a_change_during_a_run_that_can_not_be_stored_then_is_stored_later(
    tmp_path: Path,
) -> None:
    harness = await in_the_middle(tmp_path)
    harness.agent.change_model("test/other")
    with unable_to_store(harness.session, ModelChangeEntry):
        assert (await interrupted(harness)).error == "The disk is full."
    assert (await harness.say("again")).reason == "done"
    assert [entry.model for entry in harness.entries(ModelChangeEntry)] == ["test/other"]


async def test_an_interrupt_cancels_a_compaction_that_waits_for_the_next_step(
    tmp_path: Path,
) -> None:
    harness = await in_the_middle(tmp_path)
    await harness.agent.compact()
    await interrupted(harness)
    await harness.say("again")
    assert harness.of(CompactionStarted) == []
