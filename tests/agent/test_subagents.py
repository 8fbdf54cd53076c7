"""Subagents: a session of their own, questions answered by the same user, an end with their parent."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient, call
from tui_agent.agent.agent import Agent
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.answer_format import AnswerFormat
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked, ToolOutput
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.ports import RunCheck
from tui_agent.context.cache import prefix_break
from tui_agent.context.request import ModelRequest
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.session.entries import SystemEntry, ToolResultEntry, ToolStatus, UserEntry
from tui_agent.session.session import Session
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.task import TaskTool

SPECS = (
    AgentSpec(
        "explore", "finds and reads", prompt="You explore.", tools=("read", "grep", "glob", "ls")
    ),
    AgentSpec("general", "does anything", prompt="You do things."),
)
TASKS = (Rule("task", "*", Action.ALLOW),)


def is_child(request: ModelRequest) -> bool:
    return (
        request.messages[0].text.startswith("You ") and "tui-agent" not in request.messages[0].text
    )


def with_subagents(tmp_path: Path, client: ScriptedClient, **ports: Any) -> Harness:
    tools = (*builtin_tools(), TaskTool())
    return make_agent(tmp_path, client, tools=tools, **({"agents": SPECS, "rules": TASKS} | ports))


def branches(harness: Harness) -> list[Session]:
    """Return the branches of subagents, each to its newest entry."""
    session = harness.session
    ends = {first.id: first.id for first in session.subagents()}
    for header in session.skeleton():
        if (first := session.reader.spine().subagent_of(header.id)) is not None:
            ends[first] = header.id
    return [session.beside(end) for end in ends.values()]


def task(agent: str, text: str) -> Call:
    return call("task", agent=agent, task=text)


async def test_a_subagent_works_in_its_own_session_and_reports(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Reply:
        if not is_child(request):
            if any(message.role == "tool" for message in request.messages):
                return Reply("It is in a.py.")
            return Reply(calls=(task("explore", "Where is the bug?"),))
        if any(message.role == "tool" for message in request.messages):
            return Reply("The bug is in a.py:3.")
        return Reply(calls=(Call("ls", '{"path": "."}'),))

    client = ScriptedClient(script)
    harness = with_subagents(tmp_path, client)
    assert (await harness.say("find it")).reason == "done"
    (result,) = harness.results()
    assert result.status is ToolStatus.COMPLETED
    assert "a.py:3" in result.output
    assert "2 steps" in result.output
    (child,) = branches(harness)
    assert result.metadata.branch == child.leaf
    kinds = [entry.kind for entry in child.path()]
    assert kinds == ["subagent", "system", "user", "assistant", "tool_result", "assistant"]
    assert not any(map(harness.session.on_path, (entry.id for entry in child.path())))
    assert harness.session.returns() == []
    assert [typed.text for typed in harness.store.typed_in(None, 9)] == ["find it"]
    forked = harness.store.fork(harness.session.id, harness.session.leaf)
    assert forked.entry_count == harness.session.info.entry_count
    copy = harness.store.fork(harness.session.id, child.leaf)
    going_on = Session(harness.store, copy.id, estimate=lambda _entry: 0)
    assert [entry.kind for entry in going_on.path()] == [
        "system",
        "user",
        "assistant",
        "tool_result",
        "assistant",
    ]
    asked = [request for request in client.requests if is_child(request)]
    assert [tool.name for tool in asked[0].tools] == ["read", "grep", "glob"]
    assert any("● ls" in event.text for event in harness.of(ToolOutput))


async def test_several_run_side_by_side(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    class Meeting(ScriptedClient):
        """Answers no subagent before the other one has asked, too."""

        async def stream(self, request):
            if is_child(request):
                await asyncio.wait_for(both.wait(), 60)
            async for event in super().stream(request):
                yield event

    def script(request: ModelRequest) -> Reply:
        if is_child(request):
            return Reply(f"Report on {request.messages[-1].text}")
        if any(message.role == "tool" for message in request.messages):
            return Reply("Both done.")
        return Reply(calls=(task("explore", "one"), task("explore", "two")))

    harness = with_subagents(tmp_path, Meeting(script))
    await harness.say("look at both")
    assert len(branches(harness)) == 2
    assert {"one", "two"} == {result.output.split()[2] for result in harness.results()}


async def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Reply:
        return (
            Reply("thinking", hang=True)
            if is_child(request)
            else Reply(calls=(task("explore", "look"),))
        )

    client = ScriptedClient(script)
    harness = with_subagents(tmp_path, client)
    harness.agent.submit("go")
    await asyncio.wait_for(client.hanging.wait(), 60)
    assert len(harness.agent.subagents) == 1
    harness.agent.interrupt()
    assert (await harness.ended()).reason == "interrupted"
    assert harness.agent.subagents == {}
    await harness.agent.aclose()
    assert harness.results()[0].status is ToolStatus.INTERRUPTED
    assert client.closed == len(client.requests)
    assert branches(harness)[0].path()[-1].interrupted
    assert harness.results()[0].metadata.branch == branches(harness)[0].leaf


async def test_an_unknown_kind_is_told_to_the_model(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(calls=(task("wizard", "conjure"),)), Reply("Oh.")])
    harness = with_subagents(tmp_path, client)
    await harness.say("go")
    assert harness.results()[0].status is ToolStatus.ERROR
    assert "explore" in harness.results()[0].output
    assert branches(harness) == []


async def test_what_a_subagent_changes_in_files_is_the_parents_to_take_back(tmp_path: Path) -> None:
    work = [Reply(calls=(Call("bash", '{"command": "echo sub > sub.txt"}'),)), Reply("Made it.")]
    main = [Reply(calls=(task("general", "make it"),)), Reply("Done.")]
    client = ScriptedClient(lambda request: (work if is_child(request) else main).pop(0))
    harness = with_subagents(tmp_path, client, keeps_files=True)
    await harness.say("delegate")
    made = tmp_path / "project" / "sub.txt"
    assert made.exists()
    assert "checkpoint" not in {entry.kind for entry in branches(harness)[0].path()}
    plan = await harness.agent.files.plan(None)
    await harness.agent.files.restore(plan)
    assert not made.exists()


async def test_always_in_a_subagent_holds_for_its_parent_and_for_the_next_one(
    tmp_path: Path,
) -> None:
    run = Reply(calls=(call("bash", command="git add a"),))

    def script(request: ModelRequest) -> Reply:
        done = sum(message.role == "tool" for message in request.messages)
        if is_child(request):
            return Reply("Added.") if done else run
        return (
            Reply(calls=(task("general", "Add a."),)),
            run,
            Reply(calls=(task("general", "Again."),)),
            Reply("Ok."),
        )[done]

    harness = with_subagents(
        tmp_path, ScriptedClient(script), answer=PermissionAnswer(Decision.SESSION)
    )
    await harness.say("go")
    (asked,) = harness.of(PermissionAsked)
    assert asked.request.title == "general: git add a"
    assert asked.request.rules == ("allow bash: git add *",)
    assert [str(rule) for rule in harness.agent.tools.gate.session_rules] == [
        "allow bash: git add *"
    ]


async def test_the_note_of_a_yes_reaches_only_the_subagent_that_asked(tmp_path: Path) -> None:
    run = Reply(calls=(call("bash", command="git add a"),))

    def script(request: ModelRequest) -> Reply:
        done = sum(message.role == "tool" for message in request.messages)
        if is_child(request):
            return Reply("Added.") if done else run
        return (Reply(calls=(task("general", "Add a."),)), Reply("Ok."))[done]

    client = ScriptedClient(script)
    answer = PermissionAnswer(Decision.ONCE, "and add b")
    harness = with_subagents(tmp_path, client, answer=answer)
    await harness.say("go")
    told = [request for request in client.requests if "and add b" in request.messages[-1].text]
    assert [is_child(request) for request in told] == [True]
    assert len(harness.entries(UserEntry)) == 1


async def test_a_subagent_of_an_agent_that_plans_changes_nothing(tmp_path: Path) -> None:
    write = call("write", path="a.txt", content="x")

    def script(request: ModelRequest) -> Reply:
        if any(message.role == "tool" for message in request.messages):
            return Reply("Done.")
        return Reply(calls=(write,) if is_child(request) else (task("general", "Write it."),))

    harness = with_subagents(tmp_path, ScriptedClient(script))
    harness.agent.change_mode("plan")
    await harness.say("go")
    assert [
        entry.mode for entry in branches(harness)[0].path() if isinstance(entry, SystemEntry)
    ] == ["plan"]
    (refused,) = [
        entry for entry in branches(harness)[0].path() if isinstance(entry, ToolResultEntry)
    ]
    assert refused.status is ToolStatus.DENIED
    assert not (tmp_path / "project" / "a.txt").exists()


async def test_a_subagent_at_work_follows_changed_settings_within_its_kind(tmp_path: Path) -> None:
    parent_asked = 0

    def script(request: ModelRequest) -> Reply:
        nonlocal parent_asked
        if not is_child(request):
            parent_asked += 1
            return Reply("Noted.") if parent_asked > 1 else Reply(calls=(task("general", "Look."),))
        worker = harness.agent.subagents.get("call_1_0")
        seen.append(worker)
        if len(seen) == 1:
            deny = Rule("*", "*", Action.DENY, "user")
            changed = replace(
                harness.agent.ports.adjustable(),
                rules=(*TASKS, deny),
                max_steps=100,
                settings=halved,
            )
            harness.agent.adopt(changed)
            return Reply(calls=(Call("bash", '{"command": "touch made"}'),))
        return Reply("Done.")

    seen: list[Agent] = []
    halved = ContextSettings(compaction=CompactionSettings(threshold="50%"))
    harness = with_subagents(tmp_path, ScriptedClient(script))
    assert (await harness.say("go")).reason == "done"
    worker = seen[0]
    assert worker.ports.max_steps == 60, "a kind without a limit of its own has sixty"
    assert worker.context_size().threshold == 50_000
    assert not (tmp_path / "project" / "made").exists(), "the new rule holds for what comes next"
    assert harness.agent.ports.max_steps == 100


async def test_a_subagent_at_work_does_not_get_a_removed_rule_back(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Reply:
        if not is_child(request):
            return Reply(calls=(task("general", "Look."),)) if not seen else Reply("Noted.")
        agent = harness.agent
        reread = replace(agent.ports.adjustable(), rules=(*TASKS, allowed))
        agent.adopt(reread)
        agent.tools.gate.remove(allowed)
        agent.adopt(reread)
        seen.extend(agent.subagents["call_1_0"].ports.rules)
        return Reply("Done.")

    seen: list[Rule] = []
    allowed = Rule("bash", "touch *", Action.ALLOW, "project")
    harness = with_subagents(tmp_path, ScriptedClient(script))
    await harness.say("go")
    assert seen
    assert allowed not in seen


async def test_a_subagent_from_the_conversation_sends_what_the_provider_has_cached(
    tmp_path: Path,
) -> None:
    """Its first request begins with the bytes of the parent's, under the same cache key."""
    asked = call("task", task="Count the files.", agent="general", context="conversation")

    def script(request: ModelRequest) -> Reply:
        newest = request.messages[-1].text
        if "Count the files." in newest and "subagent" in newest:
            return Reply(calls=(Call("ls", '{"path": "."}'),), cost=0.25)
        if any(
            "Count the files." in message.text
            for message in request.messages
            if message.role == "user"
        ):
            return Reply("There are 2.", cost=0.25)
        if request.messages[-1].role == "tool":
            return Reply("Two files.", cost=1.0)
        return (
            Reply(calls=(asked,), cost=1.0) if "how many" in newest else Reply("Hello.", cost=1.0)
        )

    client = ScriptedClient(script)
    harness = with_subagents(tmp_path, client)
    await harness.say("Remember the number 412.")
    assert (await harness.say("how many files are there?")).reason == "done"

    (result,) = harness.results()
    assert "There are 2." in result.output
    parent, child = client.requests[1], client.requests[2]
    begin = [replace(message, cache=False) for message in child.messages[: len(parent.messages)]]
    assert begin == [replace(message, cache=False) for message in parent.messages]
    assert child.tools == parent.tools
    assert child.effort == parent.effort
    assert child.session == parent.session == harness.session.id
    assert prefix_break(parent, child, ()) is None
    (branch,) = branches(harness)
    path = [entry.kind for entry in branch.path()]
    assert path[:4] == ["system", "user", "assistant", "user"], "nothing was copied"
    assert path[4] == "subagent"
    assert harness.agent.session_cost() == pytest.approx(3.5)


async def test_subagents_of_a_conversation_start_no_others(tmp_path: Path) -> None:
    asked = call("task", task="Go deeper.", agent="general", context="conversation")

    def script(request: ModelRequest) -> Reply:
        if request.messages[-1].role == "tool":
            return Reply(f"Got: {request.messages[-1].text}")
        return Reply(calls=(asked,))

    harness = with_subagents(tmp_path, ScriptedClient(script))
    await harness.say("go")

    assert "can't start subagents" in harness.results()[0].output


@pytest.mark.parametrize(
    ("explore", "said"),
    [
        (SPECS[0], "explore can't use bash, only: read, grep, glob, ls."),
        (AgentSpec("explore", "finds", without=("bash", "write")), "explore can't use bash."),
    ],
)
async def test_a_kind_that_changes_nothing_changes_nothing_from_the_conversation(
    tmp_path: Path, explore: AgentSpec, said: str
) -> None:
    arguments = {"task": "Look around.", "agent": "explore", "context": "conversation"}
    asked = Call("task", json.dumps(arguments))
    tried = (
        Call("bash", '{"command": "touch made"}'),
        Call("write", '{"path": "made", "content": "x"}'),
    )

    def script(request: ModelRequest) -> Reply:
        messages = [message.text for message in request.messages if message.role == "user"]
        if not any("Look around." in text for text in messages):
            done = request.messages[-1].role == "tool"
            return Reply("Done.") if done else Reply(calls=(asked,))
        told = [message.text for message in request.messages if message.role == "tool"]
        return (
            Reply(f"Tools said: {told}")
            if told
            else Reply(calls=(*tried, Call("ls", '{"path": "."}')))
        )

    everything = (Rule("*", "*", Action.ALLOW, "user"),)
    harness = with_subagents(
        tmp_path, ScriptedClient(script), rules=everything, agents=(explore, SPECS[1])
    )
    assert (await harness.say("go")).reason == "done"

    report = harness.results()[0].output
    assert not (tmp_path / "project" / "made").exists()
    assert said in report
    assert "explore can't use write" in report
    assert "ls is not for" not in report


@pytest.mark.parametrize("kind", ["explore", "general"])
async def test_a_subagent_goes_on_by_the_number_at_the_end_of_its_report(
    tmp_path: Path, kind: str
) -> None:
    def script(request: ModelRequest) -> Reply:
        if is_child(request):
            return Reply(
                "It is in b.py." if "And where" in request.messages[-1].text else "It is in a.py."
            )
        results = [message for message in request.messages if message.role == "tool"]
        if not results:
            return Reply(calls=(task(kind, "Where is the bug?"),))
        if len(results) > 1:
            return Reply("Done.")
        number = re.search(r"continue: (\d+)", results[0].text)
        assert number is not None
        again = {"task": "And where is the other?", "continue": int(number[1])}
        return Reply(calls=(Call("task", json.dumps(again)),))

    client = ScriptedClient(script)
    harness = with_subagents(tmp_path, client)
    assert (await harness.say("go")).reason == "done"
    first, second = harness.results()
    assert "a.py" in first.output
    assert "b.py" in second.output
    assert f"[{kind}, 1 step; " in second.output, "it is of the kind that it began as"
    (asked,) = [
        request
        for request in client.requests
        if is_child(request) and "And where" in request.messages[-1].text
    ]
    assert any("Where is the bug?" in message.text for message in asked.messages)
    assert any("a.py" in message.text for message in asked.messages if message.role == "assistant")


async def test_a_number_that_is_no_subagents_is_refused(tmp_path: Path) -> None:
    wrong = [
        Call("task", json.dumps({"task": "go on", "continue": number})) for number in (1, 4_711)
    ]
    harness = with_subagents(tmp_path, ScriptedClient([Reply(calls=tuple(wrong)), Reply("Done.")]))
    assert (await harness.say("go")).reason == "done"
    assert all("is not an entry of a subagent" in result.output for result in harness.results())


async def test_the_check_and_the_format_of_a_run_are_not_its_subagents(tmp_path: Path) -> None:
    """A subagent may only look; what it finds is neither the work nor the answer of the run."""

    def script(request: ModelRequest) -> Reply:
        has_looked = request.messages[-1].role == "tool"
        if is_child(request):
            return Reply("Two files.") if has_looked else Reply(calls=(call("ls", path="."),))
        return Reply("2") if has_looked else Reply(calls=(task("explore", "Look around."),))

    harness = with_subagents(
        tmp_path,
        ScriptedClient(script),
        check=RunCheck("exit 1", rounds=0),
        answer_format=AnswerFormat({"type": "integer"}),
    )
    await harness.say("how many files are there?")
    (branch,) = branches(harness)
    kinds = [entry.kind for entry in branch.path()]
    assert kinds == ["subagent", "system", "user", "assistant", "tool_result", "assistant"]
    assert harness.kinds()[-2:] == ["assistant", "check"]
