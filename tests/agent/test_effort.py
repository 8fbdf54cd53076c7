"""How much a model thinks: chosen, kept by the branch, lowered to what a model has, and told once."""

from pathlib import Path

import pytest

from tests.agent.test_subagents import is_child, task, with_subagents
from tests.support.agents import MODEL, make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.agent import Agent
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.context.request import ModelRequest
from tui_agent.session.effort import Effort
from tui_agent.session.entries import EffortChangeEntry
from tui_agent.session.session import Session


def asked(client: ScriptedClient) -> list[Effort | None]:
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
    assert [entry.effort for entry in harness.entries(EffortChangeEntry)] == [Effort.LOW, Effort.MAX, None]
    await harness.agent.navigator.go(before)
    await harness.say("another way")
    assert asked(client) == [Effort.LOW, Effort.MAX, Effort.MEDIUM, Effort.LOW]


@pytest.mark.parametrize(
    ("chosen", "sent", "said"),
    [
        (Effort.MAX, Effort.HIGH, "has no effort max: it is asked for high. It has off, low, high."),
        (Effort.MINIMAL, Effort.LOW, "has no effort minimal: it is asked for low."),
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
    assert asked(client) == [sent, sent]
    assert [said in notice for notice in harness.notices()] == ([True] if said else [])


async def test_a_model_that_can_not_be_told_gets_nothing_and_only_a_choice_is_told(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("One."), Reply("Two.")])
    harness = make_agent(tmp_path, client, preset_effort=lambda _model: Effort.HIGH)
    harness.directory.efforts[MODEL] = ()
    await harness.say("go")
    assert (asked(client), harness.notices()) == ([None], [])
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
    assert asked(client) == [Effort.HIGH, expected, Effort.HIGH]
