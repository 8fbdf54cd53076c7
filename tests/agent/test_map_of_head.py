"""The context map names everything the head is made of, and the parts add up to what is measured."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.knowledge import knowledge, skill, write
from tests.support.mcp_place import QUICK, Place
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.context_map import ContextBlock
from tui_agent.session.entries import SystemEntry
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.skill import SkillTool
from tui_agent.tools.task import TaskTool


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    (tmp_path / "servers").mkdir()
    found = Place(tmp_path / "servers", QUICK)
    yield found
    await found.hub.aclose()


async def started(tmp_path: Path, place: Place, window: int = 100_000) -> Harness:
    """Return an agent that knows of everything a head can tell, after its first answer."""
    write(tmp_path / "project/AGENTS.md", "Use tabs.")
    write(tmp_path / "config/AGENTS.md", "Answer in short.")
    skill(tmp_path / "project/.agents/skills")
    write(tmp_path / "config/agents/reviewer.md", "---\ndescription: reviews changes\n---\nYou review.\n")
    known = knowledge(tmp_path, trusted=lambda: True)
    await place.hub.settle()
    tools = (*builtin_tools(), TaskTool(), SkillTool(lambda: known.skills, lambda: known.offers_skills))
    client = ScriptedClient([Reply("Hello.", usage=None)])
    harness = make_agent(tmp_path, client, tools=tools, mcp=place.hub, knowledge=known, window=window)
    await harness.say("hi")
    return harness


def head_of(harness: Harness) -> list[ContextBlock]:
    return [block for block in harness.agent.inspector.map().blocks if block.kind in {"system", "tool_schema"}]


async def test_every_token_of_the_head_has_a_name(tmp_path: Path, place: Place) -> None:
    place.add_stdio(allow=("add", "fail"))
    harness = await started(tmp_path, place)
    blocks = head_of(harness)
    assert sum(block.tokens for block in blocks) == harness.agent.context_size().fixed
    head = next(entry for entry in harness.path() if isinstance(entry, SystemEntry))
    assert {block.tool for block in blocks if block.tool} == {tool.name for tool in head.tools}
    assert {"tracker_add", "tracker_fail", "task", "skill", "bash"} <= {block.tool for block in blocks}
    labels = " | ".join(block.label for block in blocks if not block.tool)
    for part in ("AGENTS.md", "config", "skills", "agents", "environment"):
        assert part in labels, labels
    assert all(block.tokens for block in blocks)
    shown = harness.agent.inspector.map()
    assert shown.estimate == shown.size.total
