"""What a session shows of its context before its first message."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.knowledge import knowledge, skill, write
from tests.support.mcp_place import Place
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.context_map import ContextBlock
from tui_agent.agent.events import HeadKnown, Notice
from tui_agent.context.request import ModelRequest
from tui_agent.context.tokens import count_text
from tui_agent.session.entries import SystemEntry
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.skill import SkillTool
from tui_agent.tools.task import TaskTool


async def test_the_head_is_measured_before_the_first_message_as_after_it(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("Done.", usage=None)])
    agent = harness.agent
    assert agent.context_size().fixed < 10  # not read yet: nothing waits for it
    await agent.warm()
    assert harness.of(HeadKnown)
    before = agent.context_size()
    blocks = [(block.label, block.tokens) for block in agent.inspector.map().blocks]
    request = agent.inspector.next_request()
    assert not harness.path()
    assert before.fixed > 1_000
    assert before.total >= before.fixed
    assert "agent prompt" in dict(blocks)
    assert any(label.startswith("tool ") for label in dict(blocks))
    assert request.tools
    await harness.say("Hello")
    after = agent.inspector.map()
    assert after.size.fixed == before.fixed
    assert [(block.label, block.tokens) for block in after.blocks][: len(blocks)] == blocks


@pytest.mark.parametrize("branch", ["main", "a/branch-with-a-long-name-that-goes-on-and-on"])
async def test_a_local_server_reads_little_anew_in_a_new_project(tmp_path: Path, branch: str) -> None:
    """Qwen's and Hermes' templates put the tools behind the system text: what differs has to come after both."""
    texts = []
    for name, directory in (("one", "one"), ("two", "a directory/with a rather long path/of another project")):
        project = tmp_path / directory / "project"
        project.mkdir(parents=True)
        subprocess.run(("git", "init", "-q", "-b", branch if name == "two" else "main", project), check=True)
        client = ScriptedClient([Reply("Done.")])
        await make_agent(tmp_path / directory, client).say("Hello")
        texts.append(qwen_text(client.requests[0]))
    one, two = texts
    same = next(index for index, (left, right) in enumerate(zip(*texts, strict=False)) if left != right)
    assert same > one.index("</tools>")
    assert count_text(two[same:], "o200k_base") <= 400


def qwen_text(request: ModelRequest) -> str:
    """Write a request down as Qwen's template does."""
    system, *others = request.messages
    tools = "\n".join(json.dumps({"name": t.name, "parameters": t.parameters}, sort_keys=True) for t in request.tools)
    turns = "".join(f"<|im_start|>{message.role}\n{message.text}<|im_end|>\n" for message in others)
    return f"<|im_start|>system\n{system.text}\n\n<tools>\n{tools}\n</tools><|im_end|>\n{turns}<|im_start|>assistant\n"


async def test_a_model_without_tools_is_sent_none_and_that_is_said_once(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("Hello."), Reply("Again.")])
    harness.directory.without_tools.add(harness.agent.model)
    await harness.agent.warm()
    assert harness.agent.context_size().fixed < 700

    await harness.say("Hello")
    await harness.say("And again")

    assert [request.tools for request in harness.client.requests] == [(), ()]
    (said,) = [notice.message for notice in harness.of(Notice) if "takes no tools" in notice.message]
    assert said.startswith(harness.agent.model)


# -- The context map names everything the head is made of, and the parts add up to what is measured --------------------


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
    head = harness.entries(SystemEntry)[0]
    assert {block.tool for block in blocks if block.tool} == {tool.name for tool in head.tools}
    assert {"tracker_add", "tracker_fail", "task", "skill", "bash"} <= {block.tool for block in blocks}
    labels = " | ".join(block.label for block in blocks if not block.tool)
    for part in ("AGENTS.md", "config", "skills", "agents", "environment"):
        assert part in labels, labels
    assert all(block.tokens for block in blocks)
    shown = harness.agent.inspector.map()
    assert shown.estimate == shown.size.total
