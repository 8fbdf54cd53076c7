"""Eight streams at once: what a race costs the screen, beside one answer in the conversation."""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.report import Row
from tests.support.races import ALLOW, make_project
from tests.support.real_stage import RealStage, real_stage
from tests.support.ui_app import until
from tui_agent.agent.race.race import RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.app import race_commands
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import Finished, ModelEvent, TextDelta, UsageReport
from tui_agent.session.entries import TextPart, Usage
from tui_agent.ui.screens.branch import BranchScreen

NAME = "racing"
RUNNERS, PIECES, PAUSE = 8, 1_000, 0.01
PIECE = "a **word** or two, "
LOOK = 0.005
"""Seconds between two looks at the loop."""


class SteadyClient:
    """Answers every request with so many pieces, one each hundredth of a second; late ones are made up for."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream one answer."""
        if not request.tools:
            yield TextDelta("a title")
            yield Finished("stop")
            return
        start = time.perf_counter()
        for number in range(PIECES):
            yield TextDelta("\n\n" if number % 40 == 39 else PIECE)
            await asyncio.sleep(max(0.0, start + (number + 1) * PAUSE - time.perf_counter()))
        yield UsageReport(Usage(input=1_000, output=PIECES), cost=0.01)
        yield Finished("stop")

    async def aclose(self) -> None:
        """Nothing is held."""


def run() -> Iterator[Row]:
    """Measure one answer, then the race from its page, then a runner that is watched."""
    for what, measure in (
        ("one answer in the conversation", _one),
        (f"{RUNNERS} runners, their table shown", _table),
        (f"{RUNNERS} runners, one of them watched", _watched),
    ):
        with tempfile.TemporaryDirectory() as folder:
            cpu, lags, wall = asyncio.run(measure(_stage(Path(folder))))
        late = quantiles(lags, n=100)
        yield Row(
            NAME,
            f"{what}: CPU",
            cpu / wall * 100,
            "%",
            40,
            f"{wall:.1f} s of stream at 100 pieces/s each",
        )
        yield Row(
            NAME,
            f"{what}: the loop is held, p95",
            late[94] * 1000,
            "ms",
            25,
            f"CPU between two of {len(lags)} looks",
        )
        yield Row(NAME, f"{what}: held longest", max(lags) * 1000, "ms", 100, "CPU")


def _stage(folder: Path) -> RealStage:
    make_project(folder / "project")
    stage = real_stage(folder, (), keeps_files=True, copies=folder / "races", rules=ALLOW)
    stage.harness.agent.ports.client = SteadyClient()
    return stage


Measured = tuple[float, list[float], float]


async def _one(stage: RealStage) -> Measured:
    async with stage.run((120, 40)):
        stage.harness.agent.submit("go on")
        await until(lambda: stage.harness.agent.live)
        return await _measured(lambda: not stage.harness.agent.running)


async def _table(stage: RealStage) -> Measured:
    async with stage.run((120, 40)):
        race = await _begun(stage)
        return await _measured(race.over.is_set)


async def _watched(stage: RealStage) -> Measured:
    async with stage.run((120, 40)) as pilot:
        race = await _begun(stage)
        await until(lambda: stage.screen.number == 1)
        await pilot.press("enter")
        await until(lambda: isinstance(stage.screen, BranchScreen))
        return await _measured(race.over.is_set)


async def _begun(stage: RealStage) -> Any:
    controller = stage.main.controller
    parts, specs = (TextPart(text="go on"),), (RunnerSpec(),) * RUNNERS
    race = await race_commands.begin(
        controller, RaceOrder("go on", parts, specs, stage.harness.session.leaf)
    )
    race_commands.show(controller)
    await until(
        lambda: all(runner.agent is not None and runner.agent.live for runner in race.runners)
    )
    return race


async def _measured(is_over: Any) -> Measured:
    """Look at the loop until something is over; returns CPU seconds, what it did between two looks, seconds.

    What it did is counted in seconds of CPU, so that other programs on the machine do not count.
    """
    lags: list[float] = []
    cpu, start = time.process_time(), time.perf_counter()
    while not is_over():
        before = time.thread_time()
        await asyncio.sleep(LOOK)
        lags.append(time.thread_time() - before)
    return time.process_time() - cpu, lags, time.perf_counter() - start
