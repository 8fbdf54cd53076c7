"""Modes in a whole agent: what runs, what the model is told, and what a session remembers."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.test_subagents import is_child, task, with_subagents
from tests.support.agents import MODEL, Harness, make_agent
from tests.support.scripted_client import Reply, ScriptedClient, call
from tui_agent.agent.agent import Agent
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked
from tui_agent.agent.permissions import Action, Rule
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    EffortChangeEntry,
    ModeChangeEntry,
    SystemEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.session import Session

WRITE = call("write", path="a.txt", content="x\n")


def asked(harness: Harness) -> list[str]:
    return [event.request.title for event in harness.of(PermissionAsked)]


@pytest.mark.parametrize(
    ("mode", "questions", "made"),
    [("build", 2, True), ("auto-edit", 1, True), ("plan", 0, False), ("yolo", 0, True)],
)
async def test_what_a_mode_asks_about_and_lets_happen(
    tmp_path: Path, mode: str, questions: int, made: bool
) -> None:
    harness = make_agent(
        tmp_path, [Reply(calls=(WRITE, call("bash", command="cp a.txt b.txt"))), Reply("Done.")]
    )
    harness.agent.change_mode(mode)
    await harness.say("go")
    assert len(asked(harness)) == questions
    assert (tmp_path / "project" / "b.txt").exists() is made


async def test_plan_mode_refuses_in_code_and_says_so_to_the_model(tmp_path: Path) -> None:
    calls = (
        WRITE,
        *(call("bash", command=text) for text in ("touch b.txt", "ls > c.txt", "ls -a")),
    )
    everything = Rule("*", "*", Action.ALLOW, "flag")
    harness = make_agent(tmp_path, [Reply(calls=calls), Reply("A plan.")], rules=(everything,))
    harness.agent.change_mode("plan")
    await harness.say("go")
    statuses = [result.status for result in harness.results()]
    assert statuses == [*[ToolStatus.DENIED] * 3, ToolStatus.COMPLETED]
    assert "plan mode" in harness.results()[0].output
    assert list((tmp_path / "project").iterdir()) == []


async def test_a_rule_with_the_absolute_path_of_a_project_file_holds(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("hidden words\n")
    calls = (call("read", path="notes.txt"), call("bash", command="cat notes.txt"))
    denied = Rule("read", f"{project}/notes.*", Action.DENY, "user")
    harness = make_agent(tmp_path, [Reply(calls=calls), Reply("Done.")], rules=(denied,))
    await harness.say("go")
    assert [result.status for result in harness.results()] == [ToolStatus.DENIED] * 2
    assert "hidden words" not in "".join(result.output for result in harness.results())


async def test_mode_changes_are_entries_and_survive_but_yolo_does_not(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("One."), Reply("Two.")])
    leaves = []
    for mode, opened_again in (("auto-edit", "auto-edit"), ("yolo", "build")):
        harness.agent.change_mode(mode)
        await harness.say("go")
        leaves.append((harness.session.leaf, opened_again))
        session = Session(
            harness.store, harness.session.id, estimate=lambda _entry: 1, read_only=True
        )
        assert Agent(session, harness.agent.ports, model=MODEL).mode == opened_again
    assert [entry.mode for entry in harness.entries(ModeChangeEntry)] == ["auto-edit", "yolo"]
    for leaf, mode in leaves:
        await harness.agent.navigator.go(leaf)
        assert harness.agent.mode == mode


@pytest.mark.parametrize("begun_with", ["message", "failure", "command"])
async def test_a_session_keeps_the_mode_it_was_begun_in_when_the_settings_say_another(
    tmp_path: Path, begun_with: str
) -> None:
    error = ModelError(ErrorKind.AUTH, "No key.")
    client = ScriptedClient(
        [Reply(error=error if begun_with == "failure" else None, text="One."), Reply("Two.")]
    )
    harness = make_agent(tmp_path, client)
    agent = Agent(harness.session, harness.agent.ports, model=MODEL, mode="plan")
    if begun_with == "command":
        await agent.run_shell("echo first")
    else:
        agent.submit("go")
        await asyncio.wait_for(agent.wait_idle(), 60)
        assert (
            "Plan mode" in client.requests[0].messages[1].text + client.requests[0].messages[0].text
        )
    session = Session(harness.store, harness.session.id, estimate=lambda _entry: 1)
    again = Agent(session, harness.agent.ports, model=MODEL, mode="build")
    assert again.mode == "plan"
    again.submit("go on")
    await asyncio.wait_for(again.wait_idle(), 60)
    assert {entry.mode for entry in session.path() if isinstance(entry, SystemEntry)} == {"plan"}
    first = next(entry.id for entry in session.path() if entry.kind in ("user", "shell"))
    await again.navigator.go(session.entry(first).parent_id)
    assert again.mode == "plan", "before its first message, too"


async def test_always_is_told_listed_and_can_be_taken_back(tmp_path: Path) -> None:
    commit, done = (
        Reply(calls=(call("bash", command="git commit --allow-empty -m x"),)),
        Reply("Done."),
    )
    harness = make_agent(
        tmp_path, [commit, commit, done, commit, done], answer=PermissionAnswer(Decision.SESSION)
    )
    await harness.say("go")
    (question,) = harness.of(PermissionAsked)
    assert question.request.rules == ("allow bash: git commit *",)
    told = "Allowed until the program ends without asking: commands that begin with “git commit”."
    assert told in harness.notices()
    gate = harness.agent.tools.gate
    (made,) = [rule for rule in gate.rules() if rule.source == "session"]
    assert str(made) == "allow bash: git commit *"
    assert [gate.remove(made), gate.remove(made)] == [True, False]
    gate.restore(made)
    assert made in gate.rules()
    assert gate.remove(made)
    await harness.say("again")
    assert len(asked(harness)) == 2


@pytest.mark.parametrize("decision", [Decision.ONCE, Decision.SESSION])
async def test_the_note_of_a_yes_is_a_message_that_the_model_reads_with_the_result(
    tmp_path: Path, decision: Decision
) -> None:
    commit = call("bash", command="git commit --allow-empty -m x")
    answer = PermissionAnswer(decision, "use the fast target next time")
    client = ScriptedClient([Reply(calls=(commit,)), Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=answer)
    await harness.say("go")
    path = [(entry.kind, entry) for entry in harness.path()]
    at = next(at for at, (kind, _) in enumerate(path) if kind == "tool_result")
    assert path[at][1].status is not ToolStatus.DENIED
    said = path[at + 1][1]
    assert isinstance(said, UserEntry)
    assert said.mid_run
    assert said.synthetic is None
    assert said.text == "use the fast target next time"
    assert "use the fast target next time" in client.requests[-1].messages[-1].text


async def test_a_removed_rule_goes_back_to_its_place(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [])
    gate = harness.agent.tools.gate
    for pattern in ("a *", "b *", "c *"):
        gate.session_rules.append(Rule("bash", pattern, Action.ALLOW, "here"))
        harness.agent.ports.rules += (Rule("bash", pattern, Action.DENY, "project"),)
    before = gate.rules()
    for rule in before:
        if gate.remove(rule):
            assert rule not in gate.rules()
            gate.restore(rule)
            gate.restore(rule)
        assert gate.rules() == before


async def test_a_rule_of_another_program_is_not_removed(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [])
    rule = Rule("bash", "a *", Action.DENY, "other", origin=".claude/settings.json:3")
    harness.agent.ports.rules += (rule,)
    gate = harness.agent.tools.gate
    assert not gate.remove(rule)
    assert rule in gate.rules()


async def test_a_rule_that_is_in_the_users_file_again_is_in_force(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [])
    rule = Rule("bash", "a *", Action.ALLOW, "here")
    harness.agent.ports.rules += (rule,)
    reread = harness.agent.ports.rules
    gate = harness.agent.tools.gate
    gate.session_rules.append(rule)
    assert gate.remove(rule)
    assert rule not in gate.rules()
    harness.agent.ports.rules = reread
    gate.remove_again()
    assert rule in gate.rules()


@pytest.mark.parametrize("decision", [Decision.SESSION, Decision.PROJECT])
async def test_a_rule_removed_and_allowed_again_stays_when_settings_are_reread(
    tmp_path: Path, decision: Decision
) -> None:
    commit = Reply(calls=(call("bash", command="git commit --allow-empty -m x"),))
    replies = [commit, Reply("Done."), commit, Reply("Done."), commit, Reply("Done.")]
    harness = make_agent(tmp_path, replies, answer=PermissionAnswer(decision))
    agent = harness.agent
    await harness.say("go")
    before = agent.ports.adjustable()
    (made,) = agent.tools.gate.session_rules
    saved = replace(before, rules=(*before.rules, made))
    agent.adopt(saved)
    assert agent.tools.gate.remove(made)
    await harness.say("again")
    agent.adopt(saved)
    await harness.say("and again")
    assert len(asked(harness)) == 2


async def test_always_for_one_part_does_not_allow_the_rest(tmp_path: Path) -> None:
    commands = (
        "git commit --allow-empty -m x && rm -rf tmp",
        "git commit --allow-empty -m y",
        "rm -rf other",
    )
    replies = [*(Reply(calls=(call("bash", command=text),)) for text in commands), Reply("Done.")]
    harness = make_agent(tmp_path, replies, answer=PermissionAnswer(Decision.SESSION))
    await harness.say("go")
    assert asked(harness) == [commands[0], commands[2]]


async def test_calls_side_by_side_ask_once_when_one_answer_allows_both(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in "ab":
        (outside / name).write_text(name)
    calls = tuple(call("read", path=str(outside / name)) for name in "ab")
    harness = make_agent(
        tmp_path, [Reply(calls=calls), Reply("Done.")], answer=PermissionAnswer(Decision.SESSION)
    )
    await harness.say("go")
    assert len(asked(harness)) == 1
    assert [result.status for result in harness.results()] == [ToolStatus.COMPLETED] * 2


def efforts(client: ScriptedClient) -> list[Effort | None]:
    return [request.effort for request in client.requests]


async def test_a_branch_keeps_it_and_going_back_restores_it(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("One."), Reply("Two."), Reply("Three."), Reply("Four.")])
    harness = make_agent(tmp_path, client, preset_effort=lambda _model: Effort.MEDIUM)
    harness.agent.change_effort(Effort.LOW)
    harness.agent.change_effort(Effort.LOW)
    await harness.say("go")
    before = harness.session.leaf
    harness.agent.change_effort(Effort.MAX)
    await harness.say("think hard")
    session = Session(harness.store, harness.session.id, estimate=lambda _entry: 1, read_only=True)
    assert Agent(session, harness.agent.ports, model=MODEL).effort.asked is Effort.MAX
    harness.agent.change_effort(None)
    await harness.say("as the settings say")
    assert [entry.effort for entry in harness.entries(EffortChangeEntry)] == [
        Effort.LOW,
        Effort.MAX,
        None,
    ]
    await harness.agent.navigator.go(before)
    await harness.say("another way")
    assert efforts(client) == [Effort.LOW, Effort.MAX, Effort.MEDIUM, Effort.LOW]


@pytest.mark.parametrize(
    ("chosen", "sent", "said"),
    [
        (
            Effort.MAX,
            Effort.HIGH,
            "has no effort level max, so high is used. It has off, low, high.",
        ),
        (Effort.MINIMAL, Effort.LOW, "has no effort level minimal, so low is used."),
        (Effort.OFF, Effort.OFF, None),
    ],
)
async def test_a_level_a_model_lacks_is_lowered_and_told_once_with_those_it_has(
    tmp_path: Path, chosen: Effort, sent: Effort, said: str | None
) -> None:
    client = ScriptedClient([Reply("One."), Reply("Two.")])
    harness = make_agent(tmp_path, client)
    harness.directory.efforts[MODEL] = (Effort.HIGH, Effort.LOW, Effort.OFF)
    harness.agent.change_effort(chosen)
    await harness.say("go")
    await harness.say("go on")
    assert efforts(client) == [sent, sent]
    assert [said in notice for notice in harness.notices()] == ([True] if said else [])


async def test_settings_may_name_the_highest_level_for_every_model(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("One.")])
    harness = make_agent(tmp_path, client, preset_effort=lambda _model: Effort.MAX)
    harness.directory.efforts[MODEL] = (Effort.LOW, Effort.HIGH, Effort.XHIGH)
    await harness.say("go")
    assert (efforts(client), harness.notices()) == ([Effort.XHIGH], [])


async def test_a_model_that_can_not_be_told_gets_nothing_and_only_a_choice_is_told(
    tmp_path: Path,
) -> None:
    client = ScriptedClient([Reply("One."), Reply("Two.")])
    harness = make_agent(tmp_path, client, preset_effort=lambda _model: Effort.HIGH)
    harness.directory.efforts[MODEL] = ()
    await harness.say("go")
    assert (efforts(client), harness.notices()) == ([None], [])
    harness.agent.change_effort(Effort.LOW)
    assert harness.notices() == [f"{MODEL} can't be told how much to think: low has no effect."]


@pytest.mark.parametrize(("own", "expected"), [(Effort.LOW, Effort.LOW), (None, Effort.HIGH)])
async def test_a_subagent_thinks_as_its_kind_says_or_as_its_parent_does(
    tmp_path: Path, own: Effort | None, expected: Effort
) -> None:
    def script(request: ModelRequest) -> Reply:
        if is_child(request) or any(message.role == "tool" for message in request.messages):
            return Reply("Done.")
        return Reply(calls=(task("explore", "Where is the bug?"),))

    client = ScriptedClient(script)
    harness = with_subagents(tmp_path, client)
    harness.agent.ports.agents = (AgentSpec("explore", "finds", prompt="You explore.", effort=own),)
    harness.agent.change_effort(Effort.HIGH)
    await harness.say("go")
    assert efforts(client) == [Effort.HIGH, expected, Effort.HIGH]
