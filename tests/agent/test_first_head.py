"""What a session shows of its context before its first message, and when its tokens are counted exactly."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

from tests.support.agents import FixedDirectory, make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.events import HeadKnown, Notice
from tui_agent.context.projection import ModelTraits
from tui_agent.context.request import ModelRequest
from tui_agent.context.tokens import count_text
from tui_agent.session.entries import ToolResultEntry


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
    assert sum(tokens for _label, tokens in blocks) == before.fixed <= before.total
    assert {"agent prompt", "environment", "tool bash"} <= dict(blocks).keys()
    assert request.tools
    await harness.say("Hello")
    after = agent.inspector.map()
    assert after.size.fixed == before.fixed
    assert [(block.label, block.tokens) for block in after.blocks][: len(blocks)] == blocks


async def test_a_local_server_reads_little_anew_in_a_new_project(tmp_path: Path) -> None:
    """Qwen's and Hermes' templates put the tools behind the system text: what differs has to come after both."""
    texts = []
    far = "a directory/with a rather long path/of another project"
    for directory, branch in (
        ("one", "main"),
        (far, "a/branch-with-a-long-name-that-goes-on-and-on"),
    ):
        project = tmp_path / directory / "project"
        project.mkdir(parents=True)
        subprocess.run(("git", "init", "-q", "-b", branch, project), check=True)
        client = ScriptedClient([Reply("Done.")])
        await make_agent(tmp_path / directory, client).say("Hello")
        texts.append(qwen_text(client.requests[0]))
    one, two = texts
    same = next(
        index for index, (left, right) in enumerate(zip(*texts, strict=False)) if left != right
    )
    assert same > one.index("</tools>")
    assert count_text(two[same:], "o200k_base") <= 400


def qwen_text(request: ModelRequest) -> str:
    """Write a request down as Qwen's template does."""
    system, *others = request.messages
    tools = "\n".join(
        json.dumps({"name": t.name, "parameters": t.parameters}, sort_keys=True)
        for t in request.tools
    )
    turns = "".join(f"<|im_start|>{message.role}\n{message.text}<|im_end|>\n" for message in others)
    return f"<|im_start|>system\n{system.text}\n\n<tools>\n{tools}\n</tools><|im_end|>\n{turns}<|im_start|>assistant\n"


async def test_a_model_without_tools_has_them_told_in_the_prompt_which_is_said_once(
    tmp_path: Path,
) -> None:
    harness = make_agent(tmp_path, [Reply("Hello."), Reply("Again.")])
    harness.directory.without_tools.add(harness.agent.model)
    await harness.say("Hello")
    await harness.say("And again")

    assert all(request.tools for request in harness.client.requests)
    (said,) = [notice.message for notice in harness.of(Notice) if "support tools" in notice.message]
    assert harness.agent.model in said


class TinyDirectory(FixedDirectory):
    """Every model is too small for tools."""

    def traits(self, model: str) -> ModelTraits:
        return replace(super().traits(model), tiny=True)


async def test_a_model_too_small_for_tools_is_named_the_files_and_that_is_said_once(
    tmp_path: Path,
) -> None:
    script = [Reply("READ a.py"), Reply("It is empty."), Reply("Again.")]
    harness = make_agent(tmp_path, script, directory=TinyDirectory())
    for name in ("a.py", "src/b.py"):
        path = Path(harness.agent.session.info.cwd) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x = 1\n")

    await harness.say("What is in a.py?")
    await harness.say("And again?")

    assert {request.tools for request in harness.client.requests} == {()}
    assert "files: a.py, src/b.py" in harness.client.requests[0].messages[1].text
    assert [entry.tool for entry in harness.entries(ToolResultEntry)] == ["read"]
    assert sum("too small for tools" in notice for notice in harness.notices()) == 1
