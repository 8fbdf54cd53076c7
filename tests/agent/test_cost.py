"""What a session has cost: at once for a short one, in the background for a long one."""

from pathlib import Path

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import ScriptedClient
from tui_agent.agent.agent import MAX_ENTRIES_AT_ONCE, Agent
from tui_agent.agent.events import AgentEvent, CostKnown
from tui_agent.session.entries import AssistantEntry, TextPart


def reopened(harness: Harness, entries: int) -> tuple[Agent, list[AgentEvent]]:
    answer = AssistantEntry(parts=(TextPart(text="so"),), model="test/model", cost=0.5)
    harness.session.append_many([answer] * entries)
    agent = Agent(harness.session, harness.agent.ports, model="test/model")
    events: list[AgentEvent] = []
    agent.subscribe(events.append)
    return agent, events


async def test_the_cost_of_a_short_session_is_known_at_once(tmp_path: Path) -> None:
    agent, events = reopened(make_agent(tmp_path, ScriptedClient([])), 3)
    assert agent.session_cost() == 1.5
    await agent.warm()
    assert not any(isinstance(event, CostKnown) for event in events)


async def test_the_cost_of_a_long_session_is_added_up_when_there_is_time(tmp_path: Path) -> None:
    agent, events = reopened(make_agent(tmp_path, ScriptedClient([])), MAX_ENTRIES_AT_ONCE + 2)
    assert agent.session_cost() is None
    await agent.warm()
    assert agent.session_cost() == (MAX_ENTRIES_AT_ONCE + 2) / 2
    assert events == [CostKnown()]
