"""Hooks that fail, hang, flood, or want more than they may: told to the user, and the default goes on."""

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.agents import YES, Harness, make_agent
from tests.support.hooks import from_settings
from tests.support.scripted_client import Reply, ScriptedClient, call
from tests.support.stores import unable_to_store
from tui_agent.agent.events import (
    HookAnswered,
    HookAwaited,
    MessageRefused,
    Notice,
    PermissionAsked,
    QueueChanged,
)
from tui_agent.agent.hooks.hooks import CommandHook, Hooks, LoadedHooks, checked
from tui_agent.agent.hooks.payloads import (
    AfterTree,
    BeforeCompact,
    BeforeTool,
    BeforeToolAnswer,
    BeforeTree,
    HookAnswer,
    SessionEnd,
    SummaryAnswer,
    UserPromptAnswer,
    schemas,
)
from tui_agent.agent.hooks.settings import HookSettings
from tui_agent.agent.permissions import Action, Rule
from tui_agent.context.request import ModelRequest, request_bytes
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.lazy import dataclass
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.processes.environment import SafeEnvironment
from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    ToolStatus,
    UserEntry,
)

PATH = {"PATH": os.environ["PATH"]}


def commands(
    tmp_path: Path, *rows: dict[str, object], environment: dict[str, str] | None = None
) -> Hooks:
    settings = [HookSettings.model_validate(row) for row in rows]
    (tmp_path / "project").mkdir(exist_ok=True)
    return Hooks(lambda: from_settings(settings, tmp_path / "project", environment or PATH))


@dataclass(frozen=True, slots=True)
class FunctionHook(CommandHook):
    """Answers in the process what a command would write."""

    functions: dict[str, Callable[[Any], Any]] = field(default_factory=dict)

    def handles(self, event: str, tool: str) -> bool:
        return event in self.functions

    async def __call__(self, payload: Any) -> HookAnswer:
        answer = self.functions[payload.event](payload)
        return checked(
            payload.event, answer.model_dump() if isinstance(answer, HookAnswer) else answer
        )


def functions(*rows: dict[str, Callable[[Any], Any]]) -> Hooks:
    settings = HookSettings(event="run_end", command="function")
    return Hooks(
        lambda: LoadedHooks(
            tuple(FunctionHook(settings, Path(), {}, functions=row) for row in rows)
        )
    )


def warnings(harness: Harness) -> list[str]:
    return [notice.message for notice in harness.of(Notice) if notice.severity == "warning"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo oops >&2; exit 1", "exit code 1: oops"),
        ("echo hello", "is not JSON: 'hello'"),
        ("""echo '{"contxt": "x"}'""", "is invalid: contxt"),
        ("echo '[]'", "is invalid"),
        ("kill -9 $$", "exit code -9"),
        ("yes", "wrote more than"),
        ("/nowhere/at/all", "exit code 127"),
    ],
)
async def test_a_failure_is_told_and_the_message_goes_on(
    tmp_path: Path, command: str, why: str
) -> None:
    hooks = commands(tmp_path, {"event": "user_prompt", "command": command})
    harness = make_agent(tmp_path, [Reply("Hello.")], hooks=hooks)
    assert (await harness.say("hi")).reason == "done"
    (warning,) = warnings(harness)
    assert why in warning
    assert "user_prompt hook" in warning


async def test_a_hook_that_hangs_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    command = "trap '' TERM; sleep 600 & echo $$ $! > pids; wait; sleep 600"
    hooks = commands(tmp_path, {"event": "user_prompt", "command": command, "timeout": 0.3})
    harness = make_agent(tmp_path, [Reply("Hello.")], hooks=hooks)
    assert (await harness.say("hi")).reason == "done"
    assert "took longer than 0.3 s" in warnings(harness)[0]
    for pid in (tmp_path / "project" / "pids").read_text().split():
        await harness.until(lambda pid=pid: not Path(f"/proc/{pid}").exists())


async def test_an_interrupt_while_a_hook_runs_keeps_the_message_for_later(tmp_path: Path) -> None:
    hooks = commands(
        tmp_path, {"event": "user_prompt", "command": "test -f go || { touch started; sleep 600; }"}
    )
    harness = make_agent(tmp_path, [Reply("Hello.")], hooks=hooks)
    harness.agent.submit("important")
    await harness.until((tmp_path / "project" / "started").exists)
    harness.agent.submit("and this")
    harness.agent.interrupt()
    assert (await harness.ended()).reason == "interrupted"
    assert harness.agent.queue.snapshot() == QueueChanged(steer=("important", "and this"))
    (tmp_path / "project" / "go").touch()
    harness.agent.retry()
    assert (await harness.ended()).reason == "done"
    assert [entry.text for entry in harness.entries(UserEntry)] == ["important", "and this"]


async def test_messages_are_still_waiting_while_their_hooks_run(tmp_path: Path) -> None:
    hold = "touch started; until test -f go; do sleep .01; done"
    hooks = commands(tmp_path, {"event": "user_prompt", "command": hold})
    failing = Reply(error=ModelError(ErrorKind.AUTH, "No key."), hang=True)
    harness = make_agent(tmp_path, [failing, Reply("Hello.")], hooks=hooks)
    project = tmp_path / "project"
    (project / "go").touch()
    harness.agent.submit("zero")
    await harness.until(harness.client.hanging.is_set)
    for text in ("one", "two"):
        harness.agent.submit(text)
    harness.agent.interrupt()
    await harness.ended()
    for name in ("go", "started"):
        (project / name).unlink()
    harness.agent.retry()
    await harness.until((project / "started").exists)
    checked_now = QueueChanged(checked=("one", "two"))
    assert harness.agent.queue.snapshot() == harness.of(QueueChanged)[-1] == checked_now
    assert [entry.text for entry in harness.entries(UserEntry)] == ["zero"]
    assert harness.agent.take_back() is None
    (project / "go").touch()
    assert (await harness.ended()).reason == "done"
    assert QueueChanged(checked=("two",)) in harness.of(QueueChanged)
    assert harness.of(QueueChanged)[-1] == QueueChanged()
    assert [entry.text for entry in harness.entries(UserEntry)] == ["zero", "one", "two"]


async def test_a_message_that_a_hook_refuses_waits_no_longer(tmp_path: Path) -> None:
    hooks = commands(tmp_path, {"event": "user_prompt", "command": "echo no >&2; exit 2"})
    harness = make_agent(tmp_path, [], hooks=hooks)
    assert (await harness.say("hi")).reason == "stopped"
    assert harness.of(QueueChanged) == [QueueChanged(checked=("hi",)), QueueChanged()]
    assert not harness.entries(UserEntry)


@pytest.mark.parametrize(
    "event", ["session_start", "user_prompt", "before_tool", "after_tool", "before_end"]
)
async def test_a_hook_that_the_agent_waits_for_is_named(
    tmp_path: Path, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.agent.hooks.hooks.AWAITED_SECONDS", 0.01)
    command = "sleep 0.2 # slowly"
    hooks = commands(
        tmp_path,
        {"event": event, "command": command},
        {"event": "run_end", "command": command},
    )
    harness = make_agent(tmp_path, [Reply(calls=(call("ls"),)), Reply("Done.")], hooks=hooks)
    await harness.say("hi")
    await harness.agent.aclose()
    awaited = HookAwaited(event, command, 0.01)
    found = [one for one in harness.events if isinstance(one, HookAwaited | HookAnswered)]
    assert found == [awaited, HookAnswered(event, command)]


async def test_a_quick_hook_is_not_named(tmp_path: Path) -> None:
    hooks = commands(tmp_path, {"event": "user_prompt", "command": "true"})
    harness = make_agent(tmp_path, [Reply("Hello.")], hooks=hooks)
    await harness.say("hi")
    assert not harness.of(HookAwaited)
    assert not harness.of(HookAnswered)


async def test_commands_are_given_no_secrets(tmp_path: Path) -> None:
    environment = SafeEnvironment({**PATH, "OPENAI_API_KEY": "s3cret", "EDITOR_NAME": "ed"})
    hooks = commands(
        tmp_path, {"event": "user_prompt", "command": "env > seen"}, environment=environment
    )
    harness = make_agent(tmp_path, [Reply("Hello.")], hooks=hooks)
    await harness.say("hi")
    seen = (tmp_path / "project" / "seen").read_text()
    assert "s3cret" not in seen
    assert "EDITOR_NAME=ed" in seen


async def test_allowing_never_overrules_a_rule_that_denies(tmp_path: Path) -> None:
    hooks = commands(
        tmp_path, {"event": "before_tool", "command": """echo '{"decision": "allow"}'"""}
    )
    calls = tuple(call("write", path=path, content="x") for path in "xy")
    rules = (Rule("edit", "x", Action.DENY, "user"),)
    harness = make_agent(tmp_path, [Reply(calls=calls), Reply("Done.")], hooks=hooks, rules=rules)
    await harness.say("go")
    assert [result.status for result in harness.results()] == [
        ToolStatus.DENIED,
        ToolStatus.COMPLETED,
    ]
    assert harness.of(PermissionAsked) == []
    assert sorted(path.name for path in (tmp_path / "project").iterdir()) == ["y"]


async def test_changed_arguments_are_checked_again(tmp_path: Path) -> None:
    changed = {"first": {"path": "denied", "content": "x"}, "second": {"wrong": 1}}
    hooks = functions(
        {"before_tool": lambda given: {"arguments": changed[given.arguments["path"]]}}
    )
    calls = tuple(call("write", path=path, content="x") for path in changed)
    rules = (Rule("edit", "denied", Action.DENY, "user"),)
    harness = make_agent(tmp_path, [Reply(calls=calls), Reply("Done.")], hooks=hooks, rules=rules)
    await harness.say("go")
    first, second = harness.results()
    assert (first.status, second.status) == (ToolStatus.DENIED, ToolStatus.ERROR)
    assert "wrong is not a field" in second.output
    assert list((tmp_path / "project").iterdir()) == []


async def test_a_matcher_limits_a_hook_to_tools(tmp_path: Path) -> None:
    hooks = commands(
        tmp_path,
        {"event": "before_tool", "matcher": "w*", "command": "echo never >&2; exit 2"},
        {
            "event": "after_tool",
            "matcher": "ba*",
            "command": """echo '{"append": "seen by a hook"}'""",
        },
    )
    calls = [
        call("write", path="a", content="x"),
        *(call("bash", command=text) for text in ("echo hi", "exit 3")),
    ]
    harness = make_agent(tmp_path, [Reply(calls=tuple(calls)), Reply("Done.")], hooks=hooks)
    await harness.say("go")
    written, *others = harness.results()
    assert written.status is ToolStatus.DENIED
    assert "refused this call: never" in written.output
    assert [result.status for result in others] == [ToolStatus.COMPLETED, ToolStatus.ERROR]
    assert all(result.output.endswith("seen by a hook") for result in others)


async def test_hooks_are_asked_in_their_order_and_see_what_the_one_before_did(
    tmp_path: Path,
) -> None:
    def add(letter: str, given: BeforeTool) -> BeforeToolAnswer:
        return BeforeToolAnswer(
            arguments={"command": f"{given.arguments['command']}{letter}"}, decision="allow"
        )

    hooks = functions(*({"before_tool": partial(add, letter)} for letter in "ab"))
    harness = make_agent(
        tmp_path, [Reply(calls=(call("bash", command="echo "),)), Reply("Done.")], hooks=hooks
    )
    await harness.say("go")
    assert harness.results()[0].output.startswith("ab\n")


async def test_steering_that_is_refused_leaves_the_run_going(tmp_path: Path) -> None:
    hooks = functions(
        {
            "user_prompt": lambda given: UserPromptAnswer(
                block=given.prompt == "bad", message="not this"
            )
        }
    )
    client = ScriptedClient([Reply(calls=(call("bash", command="touch x"),)), Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=None, hooks=hooks)
    harness.agent.submit("good")
    await harness.until(lambda: harness.agent.questions.open is not None)
    harness.agent.submit("bad")
    harness.agent.answer_permission(harness.agent.questions.open.call_id, YES)
    assert (await harness.ended()).reason == "done"
    assert harness.of(MessageRefused) == [MessageRefused("bad", "not this – hook “function”")]
    assert [entry.text for entry in harness.path() if isinstance(entry, UserEntry)] == ["good"]


SMALL = ContextSettings(compaction=CompactionSettings(keep_recent=200))
TOLD = "## Goal\nWhat the model itself wrote about the work so far.\n"


async def long_talk(tmp_path: Path, hooks: Hooks) -> Harness:
    def script(request: ModelRequest) -> Reply:
        if "<length>" in request.messages[-1].text:
            return Reply(TOLD)
        return Reply("An answer. " + "word " * 600, usage=None)

    harness = make_agent(tmp_path, script, hooks=hooks, settings=SMALL, window=16_000)
    for number in range(4):
        await harness.say(f"question {number}")
    return harness


async def test_a_summary_that_says_nothing_is_a_failure(tmp_path: Path) -> None:
    hooks = functions({"before_compact": lambda _given: SummaryAnswer(summary="ok")})
    harness = await long_talk(tmp_path, hooks)
    assert (await harness.agent.compact()).problem is None
    entry = harness.entries(CompactionEntry)[0]
    assert entry.summary.strip() == TOLD.strip()
    assert "its summary is too short" in warnings(harness)[0]


async def test_what_hooks_want_a_summary_to_keep_is_told_to_the_model_that_writes_it(
    tmp_path: Path,
) -> None:
    def wants(name: str) -> dict[str, Callable[[Any], Any]]:
        answer = SummaryAnswer(context=f"Keep what the {name} hook is about.")
        return {"before_compact": lambda _given: answer, "before_tree": lambda _given: answer}

    harness = await long_talk(tmp_path, functions(wants("first"), wants("second")))
    assert (await harness.agent.compact("the till")).problem is None
    asked = harness.client.requests[-1].messages[-1].text
    assert all(text in asked for text in ("the till", "the first hook", "the second hook"))
    assert cast("CompactionEntry", harness.path()[-1]).instructions == "the till"
    plan = harness.agent.navigator.plan(harness.entries(AssistantEntry)[0].id)
    await harness.agent.navigator.move(plan, focus="")
    assert "the second hook" in harness.client.requests[-1].messages[-1].text


async def test_a_branch_summary_by_a_hook_says_so_and_keeps_its_details(tmp_path: Path) -> None:
    text = "The till was counted twice, and both counts agree with the book of the day."
    answer = SummaryAnswer(summary=text, details={"ticket": "T-1"})
    given: list[Any] = []

    def hook(payload: Any) -> SummaryAnswer:
        given.append(payload)
        return answer

    harness = await long_talk(tmp_path, functions({"before_tree": hook}))
    chosen = next(entry for entry in harness.path() if isinstance(entry, UserEntry))
    sent = len(harness.client.requests)
    await harness.agent.navigator.move(harness.agent.navigator.plan(chosen.id), focus="")
    [summary] = harness.entries(BranchSummaryEntry)
    assert (summary.summary, summary.style, summary.model) == (text, "hook", None)
    assert json.loads(summary.details.hook) == {"ticket": "T-1"}
    assert (given[0].target, given[0].leaf) == (chosen.id, chosen.parent_id)
    assert len(harness.client.requests) == sent
    assert "T-1" not in request_bytes(harness.agent.context.next_request()).decode()


async def test_the_preparation_holds_everything_a_summary_is_made_of(tmp_path: Path) -> None:
    given: list[Any] = []
    harness = await long_talk(
        tmp_path, functions({"before_compact": given.append, "before_tree": given.append})
    )
    await harness.agent.compact("the till")
    (compaction,) = given
    assert isinstance(compaction, BeforeCompact)
    path = {entry.id: entry for entry in harness.path()}
    assert (compaction.trigger, compaction.focus) == ("manual", "the till")
    summarised = (*compaction.entries, *compaction.turn_prefix)
    assert {row.kind for row in summarised} >= {"user", "assistant"}
    assert all(
        path[row.id].kind == row.kind and row.text in compaction.conversation for row in summarised
    )
    assert compaction.first_kept_id in path
    assert compaction.tokens_summarised + compaction.tokens_kept == compaction.tokens_before
    assert compaction.settings["keep_recent"] == 200
    assert [row.id for row in compaction.branch] == [entry.id for entry in harness.path()[:-1]]

    left, here = harness.session.leaf, summarised[0].id
    plan = harness.agent.navigator.plan(here, continue_from_here=True)
    await harness.agent.navigator.move(plan)
    move = given[1]
    assert isinstance(move, BeforeTree)
    assert (move.target, move.leaf, move.old_leaf, move.common_ancestor, move.wants_summary) == (
        here,
        here,
        left,
        here,
        False,
    )
    assert [row.id for row in move.entries] == list(plan.abandoned.ids)


async def test_an_automatic_compaction_that_is_cancelled_is_not_made_behind_the_hooks_back(
    tmp_path: Path,
) -> None:
    hooks = functions(
        {"before_compact": lambda _given: SummaryAnswer(cancel=True, message="not today")}
    )
    client = ScriptedClient([Reply("An answer. " + "word " * 700, usage=None)])
    harness = make_agent(tmp_path, client, hooks=hooks, settings=SMALL, window=5_000)
    ended = [await harness.say(f"question {number}") for number in range(6)][-1]
    assert ended.reason == "stopped"
    assert "not today" in (ended.error or "")
    assert not harness.entries(CompactionEntry)


async def test_exit_code_2_cancels_a_compaction(tmp_path: Path) -> None:
    hooks = commands(tmp_path, {"event": "before_compact", "command": "echo later >&2; exit 2"})
    client = ScriptedClient([Reply("An answer. " + "word " * 700, usage=None)])
    harness = make_agent(tmp_path, client, hooks=hooks, settings=SMALL, window=5_000)
    await harness.say("question")
    assert "later" in ((await harness.agent.compact()).problem or "")
    assert not harness.entries(CompactionEntry)


def test_the_schemas_name_every_event() -> None:
    found = schemas()
    assert set(found["before_tool"]["answer"]["properties"]) == {
        "notice",
        "decision",
        "message",
        "arguments",
    }
    assert all(row["given"]["properties"]["event"]["const"] == name for name, row in found.items())


async def test_the_end_of_the_program_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.agent.hooks.hooks.CLOSING_SECONDS", 0.2)
    hooks = commands(tmp_path, {"event": "run_end", "command": "echo $$ > pid; sleep 600"})
    harness = make_agent(tmp_path, [Reply("Hello.")], hooks=hooks)
    await harness.say("hi")
    await harness.until((tmp_path / "project" / "pid").exists)
    async with asyncio.timeout(60):
        await harness.agent.aclose()
    pid = int((tmp_path / "project" / "pid").read_text())
    await harness.until(lambda: not Path(f"/proc/{pid}").exists())


async def test_hooks_in_the_background_run_in_the_order_of_their_events() -> None:
    seen: list[str] = []
    may_go_on = asyncio.Event()

    @dataclass(frozen=True, slots=True)
    class WaitingHook(CommandHook):
        def handles(self, event: str, tool: str) -> bool:
            return True

        async def __call__(self, payload: Any) -> HookAnswer:
            name = f"{payload.event} {getattr(payload, 'leaf', '')}"
            seen.append(f"{name} begins")
            await may_go_on.wait()
            seen.append(f"{name} ends")
            return HookAnswer()

    settings = HookSettings(event="run_end", command="function")
    hooks = Hooks(lambda: LoadedHooks((WaitingHook(settings, Path(), {}),)))
    for leaf in range(3):
        hooks.tell(AfterTree(about=hooks.about, leaf=leaf, old_leaf=None, summary=None))
    hooks.tell(SessionEnd(about=hooks.about))
    async with asyncio.timeout(60):
        while "session_end  begins" not in seen:
            await asyncio.sleep(0)
        may_go_on.set()
        await hooks.aclose()
    moves = [line for line in seen if line.startswith("after_tree")]
    assert moves == [
        f"after_tree {leaf} {what}" for leaf in range(3) for what in ("begins", "ends")
    ]


async def test_a_hook_chooses_where_a_summary_ends_and_keeps_something_with_it(
    tmp_path: Path,
) -> None:
    place = [1]
    told = {"details": {"ticket": 412}, "summary": TOLD}
    harness = await long_talk(
        tmp_path, functions({"before_compact": lambda _given: {"first_kept": place[0], **told}})
    )
    assert ((await harness.agent.compact()).problem or "").startswith(
        "A hook wants to cut before #1: "
    )
    place[0] = harness.entries(UserEntry)[1].id
    assert (await harness.agent.compact()).problem is None
    (entry,) = harness.entries(CompactionEntry)
    assert (entry.first_kept_id, entry.style) == (place[0], "hook")
    assert json.loads(entry.details.hook) == {"ticket": 412}
    assert not any(
        "ticket" in message.text for message in harness.agent.inspector.next_request().messages
    )


async def test_a_message_whose_hook_text_can_not_be_stored_is_sent_once(tmp_path: Path) -> None:
    context = json.dumps({"context": "frozen"})
    hooks = commands(tmp_path, {"event": "user_prompt", "command": f"echo '{context}'"})
    harness = make_agent(tmp_path, [Reply("Ok.")], hooks=hooks)

    def is_of_hook(entry: Entry) -> bool:
        return isinstance(entry, UserEntry) and entry.synthetic == "hook"

    with unable_to_store(harness.session, is_of_hook):
        assert (await harness.say("hi")).error == "The disk is full."
    harness.agent.retry()
    await harness.ended()
    texts = [entry.text for entry in harness.entries(UserEntry)]
    assert texts == ["hi", "<hook-context>\nfrozen\n</hook-context>"]


async def test_a_refused_message_does_not_leave_the_one_beside_it_unanswered(
    tmp_path: Path,
) -> None:
    hooks = commands(
        tmp_path,
        {"event": "user_prompt", "command": "! grep -q secret || { echo no >&2; exit 2; }"},
    )
    failing = Reply(error=ModelError(ErrorKind.AUTH, "No key."), hang=True)
    harness = make_agent(tmp_path, [failing, Reply("Both.")], hooks=hooks)
    harness.agent.submit("first")
    await harness.until(harness.client.hanging.is_set)
    harness.agent.submit("a secret")
    harness.agent.interrupt()
    await harness.ended()
    harness.events.clear()
    assert (await harness.say("second")).reason == "done"
    assert len(harness.of(MessageRefused)) == 1
    assert harness.entries(AssistantEntry)[-1].text == "Both."


async def test_hooks_at_the_start_that_were_interrupted_run_with_the_next_message(
    tmp_path: Path,
) -> None:
    context = json.dumps({"context": "frozen"})
    slow = f"test -e go || {{ touch began; sleep 60; }}; echo '{context}'"
    hooks = commands(tmp_path, {"event": "session_start", "command": slow})
    harness = make_agent(tmp_path, [Reply("Ok.")], hooks=hooks)
    project = harness.agent.ports.project
    harness.agent.submit("hi")
    await harness.until((project / "began").exists)
    harness.agent.interrupt()
    await harness.ended()
    (project / "go").touch()
    harness.agent.retry()
    await harness.ended()
    texts = [entry.text for entry in harness.entries(UserEntry)]
    assert texts == ["hi", "<hook-context>\nfrozen\n</hook-context>"]


async def test_an_interrupt_of_a_hook_after_a_call_keeps_the_calls_result(tmp_path: Path) -> None:
    hooks = commands(tmp_path, {"event": "after_tool", "command": "touch began; sleep 60"})
    calls = (call("bash", command="echo all of it"),)
    harness = make_agent(tmp_path, [Reply(calls=calls), Reply("Ok.")], hooks=hooks)
    harness.agent.submit("hi")
    await harness.until((harness.agent.ports.project / "began").exists)
    harness.agent.interrupt()
    assert (await harness.ended()).reason == "interrupted"
    (result,) = harness.results()
    assert (result.status, result.output) == (ToolStatus.COMPLETED, "all of it")
