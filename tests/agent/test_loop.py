"""A run from a message to an idle agent: what is in the tree afterwards, and what the model was sent."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.agents import MODEL, FixedDirectory, make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient, call
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.events import (
    Decision,
    Notice,
    PermissionAnswer,
    PermissionAsked,
    QueueChanged,
    RequestStarted,
    RetryScheduled,
    RunEnded,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.tool_runner import MAX_CALLS
from tui_agent.context.budget import ModelLimits
from tui_agent.context.request import ModelRequest, request_bytes
from tui_agent.model.errors import LOADING_DELAY, LOADING_PATIENCE
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import AssistantEntry, TextPart, ToolStatus, UserEntry


async def test_what_the_model_gets_wrong_is_answered_to_the_model(tmp_path: Path) -> None:
    client = ScriptedClient(
        [
            Reply(calls=(Call("raed", "{}"), Call("read", '{"path": '), call("read", path="missing.txt"))),
            Reply("Sorry."),
        ]
    )
    harness = make_agent(tmp_path, client)
    ended = await harness.say("go")
    assert ended.reason == "done"
    unknown, invalid, missing = harness.results()
    assert {unknown.status, invalid.status, missing.status} == {ToolStatus.ERROR}
    assert "read" in unknown.output
    assert "JSON" in invalid.output
    assert "missing.txt" in missing.output


async def test_more_calls_than_one_answer_may_make_are_refused_with_a_result_each(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(calls=tuple(call("ls", path=".") for _ in range(600))), Reply("Enough.")])
    harness = make_agent(tmp_path, client, rules=(Rule("doom_loop", "*", Action.ALLOW, "flag"),))
    assert (await harness.say("look everywhere")).reason == "done"
    found = harness.results()
    assert len(found) == 600
    assert [entry.status for entry in found].count(ToolStatus.COMPLETED) == MAX_CALLS == 64
    assert all("one answer may make 64 calls" in entry.output for entry in found[64:])


async def test_the_step_limit_forces_an_answer_without_tools(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(calls=(call("ls", path="."),))])
    harness = make_agent(tmp_path, client, max_steps=3)
    ended = await harness.say("go")
    assert ended == RunEnded("step_limit", steps=3)
    assert [request.tool_choice for request in client.requests] == ["auto", "auto", "none"]
    synthetic = [entry for entry in harness.path() if isinstance(entry, UserEntry) and entry.synthetic]
    assert [entry.synthetic for entry in synthetic] == ["step_limit"]
    assert harness.results()[-1].status is ToolStatus.DENIED


# -- interrupting -----------------------------------------------------------------------------------------------


async def interrupted(harness) -> RunEnded:
    harness.agent.interrupt()
    async with asyncio.timeout(60):
        return await harness.ended()


async def test_interrupt_while_streaming_keeps_what_came(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("Half an answer", hang=True), Reply("Whole.")])
    harness = make_agent(tmp_path, client)
    harness.agent.submit("go")
    await asyncio.wait_for(client.hanging.wait(), 60)
    assert (await interrupted(harness)).reason == "interrupted"
    answer = harness.path()[-1]
    assert isinstance(answer, AssistantEntry)
    assert (answer.text, answer.interrupted) == ("Half an answer", True)
    assert client.closed == 1
    harness.agent.retry()
    assert (await harness.ended()).reason == "done"
    assert client.requests[-1].messages[-1].role == "user", "a request never ends in an answer"


async def test_interrupt_while_a_command_runs_keeps_its_output_and_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.processes.watcher.TERM_GRACE_SECONDS", 1.5)
    command = "trap '' TERM; echo started; echo $$ > pid; sleep 60 & wait; sleep 60"
    client = ScriptedClient([Reply(calls=(call("bash", command=command), call("ls", path="."))), Reply("Fine.")])
    harness = make_agent(tmp_path, client)
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
    client = ScriptedClient([Reply(error=ModelError(ErrorKind.RATE_LIMIT, "Slow down.", retry_after=50)), Reply("Ok.")])
    harness = make_agent(tmp_path, client)
    harness.agent.submit("go")
    await harness.until(lambda: bool(harness.of(RetryScheduled)))
    assert (await interrupted(harness)).reason == "interrupted"
    left = harness.path()[-1]
    assert isinstance(left, AssistantEntry)
    assert (left.interrupted, left.error, left.parts) == (True, "Slow down.", ())
    assert (await harness.say("again")).reason == "done"
    assert [entry.text for entry in harness.path() if isinstance(entry, UserEntry)] == ["go", "again"]


async def test_interrupt_before_anything_happened(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("Ok.")])
    harness = make_agent(tmp_path, client)
    harness.agent.submit("go")
    harness.agent.interrupt()
    assert (await harness.ended()).reason == "interrupted"
    harness.agent.retry()
    assert (await harness.ended()).reason == "done"
    assert [entry.text for entry in harness.path() if isinstance(entry, UserEntry)] == ["go"]


# -- failures -----------------------------------------------------------------------------------------------------


async def no_wait(_seconds: float) -> None:
    return None


async def test_a_passing_failure_is_tried_again_and_nothing_is_said_twice(tmp_path: Path) -> None:
    broken = Reply("Half", error=ModelError(ErrorKind.NETWORK, "The connection broke."))
    client = ScriptedClient([broken, Reply("Whole.")])
    harness = make_agent(tmp_path, client, sleep=no_wait)
    assert (await harness.say("go")).reason == "done"
    assert [entry.text for entry in harness.path() if isinstance(entry, AssistantEntry)] == ["Whole."]
    every = [header.kind for header in harness.session.skeleton()]
    assert every.count("assistant") == 2, "the failed attempt stays in the tree, beside the path"
    assert "Half" not in request_bytes(client.requests[1]).decode()
    assert harness.session.entry(harness.of(RetryScheduled)[0].kept).text == "Half"


async def test_a_server_that_loads_its_model_is_waited_for(tmp_path: Path) -> None:
    """Minutes, and not as attempts of its own few."""
    error = ModelError(ErrorKind.LOADING, "127.0.0.1:8080 is loading the model.", status=503)
    refused = ModelError(ErrorKind.NETWORK, "Nothing answers there.")
    client = ScriptedClient([*[Reply(error=refused)] * 3, *[Reply(error=error)] * 100, Reply("Ready.")])
    harness = make_agent(tmp_path, client, sleep=no_wait)
    assert (await harness.say("go")).reason == "done"
    waits = [event.loading for event in harness.of(RetryScheduled)]
    assert waits[:5] == [None, None, None, 0.0, 2.0]

    client.script = [Reply(error=error)]
    ended = await harness.say("again")
    assert (ended.reason, ended.error) == ("error", error.message)
    assert harness.of(RetryScheduled)[-1].loading == LOADING_PATIENCE - LOADING_DELAY


async def test_a_lasting_failure_ends_the_run_with_a_sentence_and_can_be_retried(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(error=ModelError(ErrorKind.AUTH, "The key was refused.")), Reply("Hello.")])
    harness = make_agent(tmp_path, client)
    ended = await harness.say("go")
    assert (ended.reason, ended.error) == ("error", "The key was refused.")
    answer = harness.path()[-1]
    assert isinstance(answer, AssistantEntry)
    assert answer.error == "The key was refused."
    harness.agent.retry()
    assert (await harness.ended()).reason == "done"
    sent = client.requests[1]
    assert [message.role for message in sent.messages] == ["system", "user", "user"]  # the head's opening among them


async def test_an_empty_answer_is_tried_again_a_few_times_only(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("")])
    harness = make_agent(tmp_path, client, sleep=no_wait)
    ended = await harness.say("go")
    assert ended.reason == "error"
    assert "empty" in (ended.error or "")
    assert 1 < len(client.requests) < 10


async def test_a_stream_that_just_ends_is_a_failure(tmp_path: Path) -> None:
    class Cut(ScriptedClient):
        async def events(self, reply, number):
            async for event in super().events(reply, number):
                yield event
                return

    harness = make_agent(tmp_path, Cut([Reply("Some text that is cut")]), sleep=no_wait)
    ended = await harness.say("go")
    assert ended.reason == "error"


# -- messages during a run ----------------------------------------------------------------------------------------


async def test_a_message_during_a_run_steers_it_after_the_tool_batch(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(calls=(call("bash", command="rm -f gate"),)), Reply("Seen both.")])
    harness = make_agent(tmp_path, client, answer=None)
    harness.agent.submit("first")
    await harness.until(lambda: harness.agent.question is not None)
    harness.agent.submit("second")
    assert harness.of(QueueChanged)[-1] == QueueChanged(steer=("second",))
    harness.agent.answer_permission(harness.agent.question.call_id, PermissionAnswer(Decision.ONCE))
    await harness.ended()
    users = [entry for entry in harness.path() if isinstance(entry, UserEntry)]
    assert [(entry.text, entry.mid_run) for entry in users] == [("first", False), ("second", True)]
    assert harness.kinds() == ["system", "user", "assistant", "tool_result", "user", "assistant"]
    assert "<system-reminder>" in client.requests[1].messages[-1].text


async def test_a_follow_up_waits_until_the_agent_is_idle(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(calls=(call("bash", command="rm -f gate"),)), Reply("One."), Reply("Two.")])
    harness = make_agent(tmp_path, client, answer=None)
    harness.agent.submit("first")
    await harness.until(lambda: harness.agent.question is not None)
    harness.agent.submit("later", follow_up=True)
    harness.agent.submit("changed my mind", follow_up=True)
    assert harness.agent.take_back() == "changed my mind"
    harness.agent.answer_permission(harness.agent.question.call_id, PermissionAnswer(Decision.ONCE))
    await harness.ended()
    users = [(entry.text, entry.mid_run) for entry in harness.path() if isinstance(entry, UserEntry)]
    assert users == [("first", False), ("later", False)]
    assert len(harness.of(RunEnded)) == 1


async def test_changing_the_model_during_a_run_never_parts_a_call_from_its_result(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(calls=(call("bash", command="rm -f gate"),)), Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=None)
    harness.agent.submit("go")
    await harness.until(lambda: harness.agent.question is not None)
    harness.agent.change_model("test/other")
    harness.agent.answer_permission(harness.agent.question.call_id, PermissionAnswer(Decision.ONCE))
    await harness.ended()
    kinds = harness.kinds()
    assert kinds == ["system", "user", "assistant", "tool_result", "model_change", "system", "assistant"]
    assert client.requests[1].model == "test/other"


async def test_a_command_of_the_user_is_told_to_the_model_unless_excluded(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("I see.")])
    harness = make_agent(tmp_path, client)
    await harness.agent.run_shell("echo visible", excluded=False)
    await harness.agent.run_shell("echo hidden", excluded=True)
    await harness.say("what did I run?")
    sent = request_bytes(client.requests[0]).decode()
    assert "visible" in sent
    assert "hidden" not in sent


async def test_a_command_of_the_user_is_seen_at_once_and_can_be_stopped(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("x")]))
    waiting = asyncio.ensure_future(harness.agent.run_shell("echo begun; sleep 60"))
    await harness.until(lambda: any("begun" in event.text for event in harness.of(ToolOutput)))
    assert [event.title for event in harness.of(ToolStarted)] == ["echo begun; sleep 60"]
    harness.agent.interrupt()
    entry = await asyncio.wait_for(waiting, 60)
    assert entry.output == "begun\n(interrupted)", "what it printed is kept"
    assert harness.path()[-1].kind == "shell"
    assert harness.of(ToolFinished)[-1].status == "interrupted"


# -- the tree -----------------------------------------------------------------------------------------------------


async def test_a_full_context_stops_with_choices(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("x")]), window=500)
    ended = await harness.say("hi")
    assert ended.reason == "stopped"
    assert "/model" in (ended.error or "")


@pytest.mark.parametrize("kind", list(ErrorKind))
async def test_every_kind_of_error_leaves_a_session_that_goes_on(tmp_path: Path, kind: ErrorKind) -> None:
    client = ScriptedClient(
        lambda request: Reply("Fine.") if "again" in request.messages[-1].text else Reply(error=ModelError(kind, "No."))
    )
    harness = make_agent(tmp_path, client, sleep=no_wait)
    assert ((await harness.say("go")).error or "").startswith("No.")
    assert (await harness.say("again")).reason == "done"
    assert len(harness.of(RequestStarted)) >= 2


# -- doom loops -----------------------------------------------------------------------------------------------


def repeating(times: int) -> ScriptedClient:
    replies = [Reply(calls=(call("read", path="same.txt"),)) for _ in range(times)]
    return ScriptedClient([*replies, Reply("I give up.")])


async def test_the_third_identical_call_asks_before_it_runs(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "same.txt").write_text("nothing new")
    harness = make_agent(tmp_path, repeating(3), answer=PermissionAnswer(Decision.DENY, "look elsewhere"))
    assert (await harness.say("go")).reason == "done"
    (asked,) = [event.request for event in harness.of(PermissionAsked)]
    assert "3 times in a row" in asked.reason
    assert len(asked.loop) == 2
    assert [result.status for result in harness.results()] == [*[ToolStatus.COMPLETED] * 2, ToolStatus.DENIED]
    assert "look elsewhere" in harness.results()[-1].output


async def test_a_doom_loop_can_be_stopped_or_allowed_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "same.txt").write_text("nothing new")
    stopped = make_agent(tmp_path, repeating(5), answer=PermissionAnswer(Decision.STOP))
    ended = await stopped.say("go")
    assert ended.reason == "stopped"
    assert "3 times in a row" in (ended.error or "")
    assert len(stopped.results()) == 3
    allowed = make_agent(tmp_path, repeating(6), answer=PermissionAnswer(Decision.SESSION))
    assert (await allowed.say("go")).reason == "done"
    assert len(allowed.of(PermissionAsked)) == 1


async def test_without_anybody_to_ask_a_loop_is_refused_once_and_then_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "same.txt").write_text("nothing new")
    rules = (Rule("doom_loop", "*", Action.DENY),)
    harness = make_agent(tmp_path, repeating(9), answer=None, rules=rules)
    assert (await harness.say("go")).reason == "stopped"
    assert [result.status for result in harness.results()] == [
        *[ToolStatus.COMPLETED] * 2,
        *[ToolStatus.DENIED] * 2,
    ]


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
    client = ScriptedClient([Reply("First."), Reply("Second.")])
    harness = make_agent(tmp_path, client)
    at_the_end(monkeypatch, lambda: harness.agent.submit("one more thing"))
    ended = await harness.say("hi")
    assert ended.reason == "done"
    assert [entry.text for entry in harness.path() if isinstance(entry, UserEntry | AssistantEntry)] == [
        "hi",
        "First.",
        "one more thing",
        "Second.",
    ]
    assert len(harness.of(RunEnded)) == 1
    assert not any(entry.mid_run for entry in harness.path() if isinstance(entry, UserEntry))


async def test_an_edit_made_in_the_instant_a_run_ends_is_not_kept_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("First.")]))
    at_the_end(monkeypatch, lambda: harness.agent.edit_context(2, "pin"))
    assert (await harness.say("hi")).reason == "done"
    assert harness.kinds() == ["system", "user", "assistant", "context_edit"]


async def test_a_server_that_insists_on_alternating_roles_gets_them_from_then_on(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Reply:
        roles = [message.role for message in request.messages if message.role != "system"]
        if any(role == after == "user" for role, after in pairwise(roles)):
            raise ModelError(ErrorKind.INVALID_REQUEST, "It refused: conversation roles must alternate user/assistant.")
        return Reply("Yes.")

    client = ScriptedClient(script)
    harness = make_agent(tmp_path, client)
    harness.session.append(UserEntry(parts=(TextPart(text="first, unanswered"),)))
    ended = await harness.say("second")
    assert ended.reason == "done"
    assert len(client.requests) == 2
    assert "first, unanswered" in client.requests[1].messages[-1].text
    assert "second" in client.requests[1].messages[-1].text
    assert sum("roles to alternate" in notice.message for notice in harness.of(Notice)) == 1
    await harness.say("third")
    assert len(client.requests) == 3, "what was learnt holds"


async def test_a_server_that_refuses_alternating_roles_too_is_asked_twice_and_no_more(tmp_path: Path) -> None:
    refusal = ModelError(ErrorKind.INVALID_REQUEST, "It refused: roles must alternate.")
    client = ScriptedClient([Reply(error=refusal)])
    harness = make_agent(tmp_path, client)
    ended = await harness.say("hello")
    assert (ended.reason, len(client.requests)) == ("error", 2)


async def test_an_overflow_without_numbers_teaches_a_smaller_window(tmp_path: Path) -> None:
    """The first request is refused, and the server says no more than that."""
    small = ModelError(ErrorKind.CONTEXT_OVERFLOW, "The prompt is too long.")
    client = ScriptedClient([Reply(error=small), Reply("Fine.")])
    harness = make_agent(tmp_path, client, sleep=no_wait)

    ended = await harness.say("word " * 9_000)

    window = harness.directory.windows[MODEL]
    assert 8_000 < window < 12_000
    assert ended.reason == "done"
    assert any("named no window" in event.message for event in harness.events if isinstance(event, Notice))


class NoLongest(FixedDirectory):
    """Nothing is known of a longest answer, as of most servers of one's own."""

    def limits(self, model: str) -> ModelLimits:
        return replace(super().limits(model), max_output=None)


@pytest.mark.parametrize(("reasoning", "share"), [("", 0.2), ("I think.", 0.5)])
async def test_an_answer_may_take_what_is_kept_free_for_it(tmp_path: Path, reasoning: str, share: float) -> None:
    """Of a model that thinks half of what is free: its thinking is part of the answer."""
    client = ScriptedClient([Reply("One.", reasoning=reasoning), Reply("Two.")])
    harness = make_agent(tmp_path, client, directory=NoLongest(20_000))
    await harness.say("hello")
    await harness.say("go on")
    first, second = (request.max_output_tokens for request in client.requests)
    assert first is not None
    assert second is not None
    assert 3_500 < first <= 4_000
    assert second <= 20_000 * share
    assert second > 3_500 * share / 0.2 * 0.8


async def test_an_answer_cut_off_at_a_limit_ends_the_run_as_such(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("Half of", finish="length")]))
    assert (await harness.say("tell me")).reason == "length"


async def test_what_a_refusal_counted_is_learnt(tmp_path: Path) -> None:
    refused = ModelError(ErrorKind.CONTEXT_OVERFLOW, "12,000 tokens > 10000 maximum", window=10_000, sent=12_000)
    client = ScriptedClient([Reply(error=refused), Reply("Fine.")])
    harness = make_agent(tmp_path, client, sleep=no_wait)

    await harness.say("word " * 9_000)

    model, counted, reported = harness.directory.learnt[0]
    assert (model, reported) == (MODEL, 12_000)
    assert counted > 9_000
