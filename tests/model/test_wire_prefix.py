"""What a provider's cache needs, looked at where it counts: in the bytes that real litellm sends, step after step."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.knowledge import knowledge, skill, write
from tests.support.model_client import Provider
from tests.support.model_script import Call, Recorded, Turn
from tests.support.model_server import ModelServer
from tests.support.thoroughness import NIGHTLY
from tests.support.wire_blocks import blocks, texts
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.events import EntryAppended, RequestStarted
from tui_agent.agent.permissions import Action, Rule
from tui_agent.context.tokens import count_text
from tui_agent.model.client import ProviderClient
from tui_agent.session.entries import AssistantEntry
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.task import TaskTool

pytestmark = pytest.mark.asyncio(loop_scope="session")

SUMMARY = "## Goal\nRead every file.\n\n## Next Steps\n1. Go on.\n"
ALLOW_ALL = (Rule("*", "*", Action.ALLOW, "flag"),)
EXPLORER = AgentSpec("explore", "finds and reads", prompt="You explore.", tools=("read", "ls"))
AROUND_TOKENS = 4
"""About what stands around each text, call and tool of a request."""
BREAKING = {"compaction", "prune", "context_edit"}
"""Kinds of entries that may change what was sent before."""


def marks(body: dict[str, Any]) -> tuple[int, int, bool]:
    """Return how many system blocks and how many messages' parts carry a cache mark, and whether the last one does."""
    parts = [json.dumps(part) for message in body["messages"] for part in message["content"]]
    marked = ["cache_control" in part for part in parts]
    return sum("cache_control" in part for part in body["system"]), sum(marked), marked[-1]


class Worker:
    """Plays a model that reads, runs, asks a subagent and thinks, and says what it was sent."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.step = 0
        self.sent: list[Recorded] = []

    def __call__(self, request: Recorded) -> Turn:
        if "<length>" in request.body.decode():
            return Turn(text=SUMMARY)
        if '"task"' not in json.dumps(request.json.get("tools", [])):
            return Turn(text="Nothing there.")
        self.sent.append(request)
        self.step += 1
        if self.step % self.steps == 0:
            return Turn(text="Everything is read.", usage=None)
        calls = (
            (
                Call("read", {"path": f"file{self.step % 7}.txt"}),
                Call("bash", {"command": "seq 1 40"}),
            ),
            (Call("bash", {"command": f"seq 1 {50 + self.step}"}),),
            (Call("read", {"path": f"sub/file{self.step % 3}.txt"}),),
            (Call("task", {"agent": "explore", "task": "look around"}),),
            (Call("grep", {"pattern": f"line {self.step % 10}"}),),
            (Call("read", {"path": "missing.txt"}),),
        )
        return Turn(
            text=f"Step {self.step} · 第{self.step}步.",
            reasoning=f"Thinking of step {self.step}." if self.step % 4 == 0 else "",
            tool_calls=calls[self.step % len(calls)],
            usage=None,
        )


def project_files(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    for place in [
        *(project / f"file{n}.txt" for n in range(7)),
        *(project / f"sub/file{n}.txt" for n in range(3)),
    ]:
        write(place, "\n".join(f"line {line} of {place.stem}" for line in range(120)))
    write(project / "AGENTS.md", "Be careful.")
    write(project / "sub" / "AGENTS.md", "Be very careful here.")
    skill(project / ".agents/skills")
    return project


def appended_before_each_request(harness: Harness) -> Iterator[set[str]]:
    """Yield, for every request of the session, the kinds of entries that came since the one before."""
    kinds: set[str] = set()
    for event in harness.events:
        if isinstance(event, EntryAppended):
            kinds.add(event.entry.kind)
        elif isinstance(event, RequestStarted):
            yield kinds
            kinds = set()


async def test_each_request_extends_the_one_before_until_something_breaks_it_on_purpose(
    tmp_path: Path, session_client: ProviderClient, session_server: ModelServer, provider: Provider
) -> None:
    project = project_files(tmp_path)
    worker = Worker(steps=30 if NIGHTLY else 16)
    session_server.play_function(worker)
    harness = make_agent(
        tmp_path, session_client, window=10_000, model=provider.model, max_steps=1_000, rules=ALLOW_ALL,
        tools=(*builtin_tools(), TaskTool()), agents=(EXPLORER,), knowledge=knowledge(tmp_path),
    )  # fmt: skip

    def steer(event: Any) -> None:
        if isinstance(event, RequestStarted) and event.step in (5, 13, 21):
            harness.agent.submit(f"Mind the time, it is step {event.step}.")
            write(project / "AGENTS.md", f"Be careful, as of step {event.step}.")

    harness.agent.channel.subscribe(steer)
    for text in ("Read every file, again and again.", "And once more.", "The last time."):
        ended = await harness.say(text)
        assert (ended.reason, ended.error) == ("done", None)
    grown = list(appended_before_each_request(harness))
    assert len(grown) == len(worker.sent) == 3 * worker.steps
    breaks = [
        at
        for at in range(1, len(grown))
        if (before := blocks(worker.sent[at - 1].json))
        != blocks(worker.sent[at].json)[: len(before)]
    ]
    assert [(at, grown[at]) for at in breaks if not grown[at] & BREAKING] == []
    assert 0 < len(breaks) < len(grown) / 2
    assert {"prune", "compaction"} <= set(harness.kinds())
    everything = b"".join(request.body for request in worker.sent).decode()
    assert "Mind the time" in everything
    assert "Be very careful here" in everything
    answers = [entry for entry in harness.session.path() if isinstance(entry, AssistantEntry)]
    counts = [
        sum(count_text(text) + AROUND_TOKENS for text in texts(request.json))
        for request in worker.sent
    ]
    estimates = [answer.estimate for answer in answers]
    assert sum(estimates) == pytest.approx(sum(counts), rel=0.03)
    # What stands around a text is only about known here, and small requests have most of it.
    assert all(
        abs(one - counted) <= 0.05 * counted for one, counted in zip(estimates, counts, strict=True)
    )
    # A changed file is told of at a break, not before.
    assert "as of step" in worker.sent[-1].body.decode()
    if provider is Provider.ANTHROPIC:
        assert marks(worker.sent[0].json) == (1, 2, True)
        assert {marks(request.json) for request in worker.sent[1:]} == {(1, 3, True)}
    await harness.agent.aclose()
