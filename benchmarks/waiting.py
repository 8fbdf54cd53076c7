"""Whether anybody waits for a summary in tool work: mixed steps, windows of all sizes, slow summarisers.

Everything is a fifth as long as it would be: a step of a model takes 5 s in the work that is meant, and 1 s here.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.report import Row
from tests.agent.test_room import SUMMARY, Worker, is_summary_call
from tests.support.agents import FixedDirectory, make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.events import CompactionEnded, Notice, ToolFinished
from tui_agent.agent.permissions import Action, Rule
from tui_agent.context.budget import ModelLimits
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import ModelEvent

NAME = "waiting"
SCALE = 0.2
STEP_SECONDS = 5.0
WAIT_SECONDS = 0.5
"""The next request may leave so long after a step's end."""
OWN_SECONDS = 0.15
"""What the program itself may take of it here, where three sessions share a processor; this does not scale."""
WINDOWS = (16_384, 32_768, 65_536, 131_072)
SUMMARISERS = (1.0, 5.0, 20.0)
STEPS = 60
SAID_SHARE = (0.002, 0.03)
"""Least and most that a step says itself, as a share of the window: outputs alone are pruned, never summarised."""
LINES = (100, 200, 900, 2_600)
"""Lines of output of one step after the other, in a window of 32k."""


class SlowSummariser(ScriptedClient):
    """Takes its time for every answer, and another for summaries."""

    def __init__(self, worker: Worker, seconds: float) -> None:
        super().__init__(worker)
        self._seconds = seconds
        self.asked_at: list[float] = []
        self.summaries = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if is_summary_call(request):
            self.summaries += 1
            await asyncio.sleep(self._seconds * SCALE)
        else:
            self.asked_at.append(time.perf_counter())
            await asyncio.sleep(STEP_SECONDS * SCALE)
        async for event in super().stream(request):
            yield event


class MixedWorker(Worker):
    """Takes steps of very different sizes, larger ones in a larger window."""

    def __init__(self, steps: int, window: int) -> None:
        super().__init__(steps, summary=Reply(SUMMARY, cost=0.02))
        self._dice = Random(window)
        self._window = window
        self._size = window / 32_768

    def __call__(self, request: ModelRequest) -> Reply:
        reply = super().__call__(request)
        if reply.calls:
            lines = round(self._dice.choice(LINES) * self._size * self._dice.uniform(0.5, 1.2))
            call = Call("bash", json.dumps({"command": f"seq {self.step} {self.step + lines}"}))
            words = round(self._window * self._dice.uniform(*SAID_SHARE) / 2)
            said = " ".join(f"w{self._dice.randrange(9_999)}" for _ in range(words))
            reply = Reply(f"Step {self.step}. {said}", calls=(call,), usage=reply.usage, cost=0.001)
        return reply


class LongAnswers(FixedDirectory):
    """Models of today may answer at length: the reserve is what the settings say."""

    def limits(self, model: str) -> ModelLimits:
        return ModelLimits(model, self.window, max_output=32_000)


@dataclass
class Run:
    """One piece of work. ``waits`` are the seconds from a step's end to the next request at compactions, unscaled."""

    window: int
    summariser: float
    waits: list[float] = field(default_factory=list)
    summaries: int = 0
    compactions: int = 0
    dropped: int = 0


async def work(window: int, summariser: float, place: Path) -> Run:
    """Work until all steps are done."""
    run = Run(window, summariser)
    client = SlowSummariser(MixedWorker(STEPS, window), summariser)
    rules = (Rule("*", "*", Action.ALLOW, "flag"),)
    harness = make_agent(place, client, directory=LongAnswers(window), max_steps=999, rules=rules)
    ended_at = 0.0
    compacted = False

    def watch(event: object) -> None:
        nonlocal ended_at, compacted
        if isinstance(event, ToolFinished):
            ended_at = time.perf_counter()
        elif isinstance(event, CompactionEnded):
            compacted = compacted or event.error is None
            run.compactions += event.error is None
        elif isinstance(event, Notice):
            run.dropped += "dropped" in event.message

    harness.agent.channel.subscribe(watch)
    counted = 0

    async def note() -> None:
        nonlocal compacted, counted
        while True:
            await asyncio.sleep(0.005)
            if len(client.asked_at) > counted:
                counted = len(client.asked_at)
                if compacted:
                    run.waits.append((client.asked_at[-1] - ended_at) / SCALE)
                    compacted = False

    noting = asyncio.create_task(note())
    await harness.say("Read everything. Never stop early.")
    noting.cancel()
    run.summaries = client.summaries
    await harness.agent.aclose()
    return run


async def all_runs() -> list[Run]:
    runs = []
    with tempfile.TemporaryDirectory(prefix="tui-agent-bench-") as name:
        for window in WINDOWS:
            places = [Path(name) / f"{window}-{seconds}" for seconds in SUMMARISERS]
            for place in places:
                (place / "project").mkdir(parents=True)
            runs += await asyncio.gather(
                *(work(window, s, place) for s, place in zip(SUMMARISERS, places, strict=True))
            )
    return runs


def run() -> Iterator[Row]:
    """Measure it: about three minutes."""
    runs = asyncio.run(all_runs())
    for one in runs:
        waited = sum(wait > WAIT_SECONDS + OWN_SECONDS / SCALE for wait in one.waits)
        note = (
            f"longest wait {max(one.waits, default=0):.1f} s, {one.summaries} summaries for "
            f"{one.compactions} compactions, {one.dropped} dropped"
        )
        share = 100 * waited / max(1, len(one.waits))
        what = (
            f"compactions that were waited for, window {one.window:,}, summary {one.summariser:g} s"
        )
        yield Row(NAME, what, share, "%", 10, note)
