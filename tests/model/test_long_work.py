"""Hours of work in a small window, through real litellm: nothing overflows, nothing thrashes, nothing is lost."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.model_client import Provider
from tests.support.model_script import Call, Recorded, Turn, status
from tests.support.model_server import ModelServer
from tests.support.thoroughness import NIGHTLY
from tui_agent.agent.permissions import Action, Rule
from tui_agent.context.tokens import TokenCounter
from tui_agent.model.client import ProviderClient
from tui_agent.model.settings import RetrySettings
from tui_agent.session.entries import AssistantEntry, CompactionEntry

pytestmark = pytest.mark.asyncio(loop_scope="session")

SUMMARY = "## Goal\nRead every file.\n\n## Next Steps\n1. Go on with the next file.\n"
ALLOW_ALL = (Rule("*", "*", Action.ALLOW, "flag"),)


class Provided:
    """Plays a model that works for ``steps`` steps; keeps the size of every request in the model's tokens.

    ``most`` is the most that any request and the longest answer it allows come to, which strict servers look at.
    """

    def __init__(self, steps: int, usage: str) -> None:
        self.steps, self.usage = steps, usage
        self.step = 0
        self.sizes: list[int] = []
        self.most = 0
        self._count = cache(TokenCounter("openai/gpt-4o").text)

    def _size(self, body: dict[str, Any]) -> int:
        """What the model reads: the text of the messages, not the JSON around it."""
        texts = [json.dumps(body.get("tools", []), ensure_ascii=False)]
        for message in body["messages"]:
            texts.append(message["content"] if isinstance(message["content"], str) else json.dumps(message["content"]))
            texts += [
                f"{call['function']['name']}{call['function']['arguments']}" for call in message.get("tool_calls") or ()
            ]
        return sum(self._count(text) + 4 for text in texts)

    def __call__(self, request: Recorded) -> Turn:
        body = request.json
        size = self._size(body)
        self.sizes.append(size)
        self.most = max(self.most, size + body.get("max_tokens", body.get("max_completion_tokens")))
        if "<length>" in request.prompt:
            return Turn(text=SUMMARY)
        self.step += 1
        usage = {
            "honest": {"input": size, "output": 30},
            "missing": None,
            "zero": {"input": 0, "output": 0},
            "absurd": {"input": 80_000_000, "output": 5},
            "stale": {"input": max(self.sizes), "output": 30},
            "first": {"input": self.sizes[0], "output": 30},
            "summed": {"input": sum(self.sizes), "output": 30},
        }[self.usage]
        if self.step >= self.steps:
            return Turn(text="Everything is read.", usage=usage)
        calls = (
            Call("read", {"path": f"file{self.step % 7}.txt"}),
            Call("bash", {"command": f"seq 1 {50 + self.step % 300}"}),
            Call("grep", {"pattern": f"line {self.step % 10}"}),
        )
        return Turn(text=f"Step {self.step}.", tool_calls=(calls[self.step % 3],), usage=usage)


def check_room_was_made(harness: Harness) -> int:
    """Fail if a compaction followed another without a completed step, or no work came after; return how many."""
    answered, compactions = True, 0
    for entry in harness.path():
        if isinstance(entry, AssistantEntry) and not entry.error:
            answered = True
        elif isinstance(entry, CompactionEntry):
            assert answered, f"#{entry.id} follows a compaction without a step in between"
            assert entry.tokens_after <= entry.tokens_before * 0.9
            answered, compactions = False, compactions + 1
    assert answered, "no work came after the last compaction"
    return compactions


USAGES = ("missing", "zero", "absurd", "stale", "first", "summed") if NIGHTLY else ("missing", "summed")
"""What is reported; see also ``tests/agent/test_room.py``."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("window", "steps", "usage", "least"),
    [
        (32_000, 300 if NIGHTLY else 90, "honest", 15),
        (16_000, 1_000 if NIGHTLY else 50, "honest", 7),
        *((16_000, 60 if NIGHTLY else 30, usage, 5) for usage in USAGES),
        (8_192, 300 if NIGHTLY else 40, "honest", 5),
        (4_096, 300 if NIGHTLY else 25, "honest", 1.5),
        (4_096, 60 if NIGHTLY else 25, "missing", 1.5),
    ],
)
async def test_hundreds_of_steps_never_overflow(
    tmp_path: Path,
    session_client: ProviderClient,
    session_server: ModelServer,
    window: int,
    steps: int,
    usage: str,
    least: float,
) -> None:
    """``least`` is how many steps a compaction has to last on average."""
    project = tmp_path / "project"
    project.mkdir()
    for number in range(7):
        lines = (f"line {line} of file {number}: {line * number}" for line in range(120))
        (project / f"file{number}.txt").write_text("\n".join(lines))
    model = Provided(steps, usage)
    session_server.play_function(model)
    harness = make_agent(
        tmp_path, session_client, window=window, model=Provider.OPENAI.model, max_steps=2_000, rules=ALLOW_ALL
    )
    ended = await harness.say("Read every file, again and again. Never stop early.")
    assert (ended.reason, ended.error) == ("done", None)
    assert model.step == steps
    assert model.most <= window
    made = check_room_was_made(harness)
    assert 1 <= made <= steps / least
    if usage == "honest":
        assert "prune" in harness.kinds()
    await harness.agent.aclose()


async def test_two_hundred_overflows_end_in_two_attempts_and_a_choice(
    tmp_path: Path, session_client: ProviderClient, session_server: ModelServer
) -> None:
    text = "This model's maximum context length is 12000 tokens. However, your messages resulted in 45000 tokens."
    asked: list[str] = []

    def refuse(request: Recorded) -> Turn:
        if "<length>" in request.prompt:
            return Turn(text=SUMMARY)
        if "and now?" not in request.prompt:
            return Turn(text="Answer. " * 400)
        asked.append(request.prompt)
        return status(400, text, code="context_length_exceeded")

    session_server.play_function(refuse)
    harness = make_agent(
        tmp_path, session_client, window=100_000, model=Provider.OPENAI.model, retry=RetrySettings(first_delay=0.0)
    )
    for number in range(8):
        await harness.say(f"Question {number}: " + "word " * 300)
    ended = await harness.say("and now?")
    assert ended.reason == "stopped"
    assert "/compact" in (ended.error or "")
    assert len(asked) == 2
    assert sum(isinstance(entry, CompactionEntry) for entry in harness.path()) == 1
    assert harness.directory.windows == {Provider.OPENAI.model: 12_000}
    await harness.agent.aclose()
