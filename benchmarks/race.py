"""Races: a copy of 10,000 files, and four runners beside one, on a server that streams at a fixed rate."""

import asyncio
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Row
from tests.support.agents import make_agent
from tests.support.model_client import Provider, host_client
from tests.support.model_script import Call, Recorded, Turn
from tests.support.model_server import ModelServer
from tests.support.races import ALLOW, make_project
from tui_agent.agent.race.copies import make_copy, remove_home
from tui_agent.agent.race.race import Race, RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.files.ripgrep import shared_files
from tui_agent.session.entries import TextPart

NAME = "race"
FILES = 10_000
WORDS = 120
RATE = 0.01
"""Seconds between two pieces of an answer."""


def run() -> Iterator[Row]:
    """Measure; takes about half a minute."""
    with tempfile.TemporaryDirectory() as directory:
        yield from _copied(Path(directory))
    walls = {}
    for runners in (1, 4):
        with tempfile.TemporaryDirectory() as directory, ModelServer(_play) as server:
            walls[runners] = asyncio.run(_raced(Path(directory), server, runners))
    note = f"one takes {walls[1]:.2f} s; pieces every {RATE * 1000:.0f} ms, copies included"
    yield Row(NAME, "4 runners, wall time of one", walls[4] / walls[1], "times", 1.15, note)


def _copied(directory: Path) -> Iterator[Row]:
    project = directory / "project"
    make_project(project, files=0)
    for number in range(FILES):
        path = project / f"d{number % 500}" / f"f{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 40)
    made, floors = [], []
    for number in range(5):
        began = time.perf_counter()
        names = asyncio.run(shared_files(project))
        make_copy(project, names, directory / "race", str(number), may_link=True)
        made.append(time.perf_counter() - began)
        began = time.perf_counter()
        subprocess.run(
            [shutil.which("cp") or "cp", "-a", project, directory / f"cp{number}"], check=True
        )
        floors.append(time.perf_counter() - began)
    remove_home(directory / "race")
    value, floor = min(made), min(floors)
    note = f"the quickest of {len(made)}; cp -a takes {floor * 1000:.0f} ms"
    yield Row(NAME, f"copy {FILES:,} files", value * 1000, "ms", 1_000, note, ratio=value / floor)


def _play(request: Recorded) -> Turn:
    steps = json.dumps(request.json["messages"]).count("step done")
    text = f"step done {'word ' * WORDS}"
    if steps == 2:
        return Turn(text=text, chunks=WORDS, delay=RATE)
    return Turn(
        text=text,
        chunks=WORDS,
        delay=RATE,
        tool_calls=(Call("bash", {"command": f"echo {steps} >> f.txt"}),),
    )


async def _raced(directory: Path, server: ModelServer, runners: int) -> float:
    make_project(directory / "project")
    client = host_client(server)
    harness = make_agent(
        directory,
        client,
        model=Provider.OPENAI.model,
        keeps_files=True,
        rules=ALLOW,
        copies=directory / "races",
    )
    await harness.agent.context.warm()
    harness.agent.context.ensure_head()
    order = RaceOrder(
        "Go.", (TextPart(text="Go."),), (RunnerSpec(),) * runners, harness.session.leaf
    )
    began = time.perf_counter()
    race = await Race.begin(harness.agent, order)
    await race.over.wait()
    seconds = time.perf_counter() - began
    assert all(runner.record.files == 1 for runner in race.runners), [
        runner.record for runner in race.runners
    ]
    await race.finish(None)
    await harness.agent.aclose()
    await client.aclose()
    harness.store.close()
    return seconds
