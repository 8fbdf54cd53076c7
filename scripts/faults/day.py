"""A day of work in one session: turns by the thousand, and everything else that happens to a session in between.

``python -m scripts.faults.day --turns 2000 --crashes 3`` prints a row for every so many turns: memory, processor time,
the size of the file. At the end it says whether memory and speed stayed as they were and what the file is full of.
"""

import argparse
import asyncio
import base64
import itertools
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil

from scripts.faults.kills import in_process, wrong_in
from scripts.faults.rows import going_back
from scripts.faults.scene import SUMMARY, WINDOW, Place, an_agent, work
from tests.support.agents import MODEL
from tests.support.request_validator import validate
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.agent import Agent
from tui_agent.agent.race.race import Race, RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.app.moves import make_move
from tui_agent.context.request import Message, ModelRequest
from tui_agent.context.tokens import TokenCounter
from tui_agent.session.effort import Effort
from tui_agent.session.entries import ImagePart, TextPart, UserEntry

EVERY = 100
"""Turns between two rows of the table."""
FLAT = 1.10
"""How much more memory the last rows may take than those after the beginning."""
_DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


COUNTER = TokenCounter(MODEL)


@lru_cache(maxsize=500)
def _tokens(message: Message) -> int:
    """Count a message; most of those of the next request are the same."""
    return COUNTER.message(message)


@dataclass
class Watch:
    """Looks at every request: whether it is one that a strict server takes, and whether it fits."""

    tell: Callable[..., None]
    requests: int = 0

    def look(self, request: ModelRequest) -> None:
        """Tell at once what is wrong with a request: a kill may come next."""
        self.requests += 1
        try:
            validate(request)
        except AssertionError as error:
            self.tell("wrong", str(error))
        tokens = sum(map(_tokens, request.messages)) + sum(map(COUNTER.schema, request.tools))
        if tokens > WINDOW:
            self.tell("wrong", f"{tokens} tokens in a window of {WINDOW}")


def _replies(watch: Watch, chance: random.Random) -> Callable[[ModelRequest], Reply]:
    numbers = itertools.count()

    def answer(request: ModelRequest) -> Reply:
        watch.look(request)
        if not request.tools:
            return Reply(SUMMARY)
        number = next(numbers)
        if request.messages[-1].role == "tool" and chance.random() < 0.6:
            return Reply(
                f"Step {number} is done. " + "It does what was asked for. " * chance.randrange(20)
            )
        calls = {
            "bash": {
                "command": f"seq {number} {number + chance.randrange(2_000)}; echo {number} >> log.txt"
            },
            "read": {"path": f"file{chance.randrange(30)}.txt", "offset": 1 + number % 7},
            "write": {
                "path": f"made{chance.randrange(40)}.txt",
                "content": f"{number}\n" * chance.randrange(1, 300),
            },
            "grep": {"pattern": f"file {chance.randrange(30)}", "path": "."},
        }
        names = chance.sample(list(calls), k=chance.choice((1, 1, 1, 2)))
        return Reply(
            "I look." if number % 3 else "",
            tuple(Call(name, json.dumps(calls[name])) for name in names),
        )

    return answer


async def _turn(agent: Agent, number: int, chance: random.Random) -> None:
    """Have one turn, and now and then do something else before."""
    session = agent.session
    typed = [
        entry.id
        for entry in session.active_path()
        if isinstance(entry, UserEntry) and not entry.synthetic
    ]
    match number % 100:
        case 11 if len(typed) > 3:
            await agent.navigator.move(agent.navigator.plan(typed[-3]), focus="")
        case 23 if len(typed) > 2:
            await going_back(agent, typed[-2])
        case 37:
            await agent.prune()
        case 45:
            await _race(agent)
        case 51:
            agent.change_model("test/other" if agent.model == MODEL else MODEL)
        case 63:
            agent.change_effort(chance.choice(list(Effort)))
        case 77:
            await agent.compact()
        case 83:
            await agent.run_shell("seq 300")
        case 97:
            blob = agent.ports.put_blob(_DOT)
            agent.submit(
                (
                    TextPart(text="Look at this."),
                    ImagePart(blob=blob, mime="image/png", width=1, height=1),
                )
            )
            await agent.wait_idle()
            return
    await work(
        agent,
        [
            f"Turn {number}: change something. "
            + "It matters because of the redirect. " * (number % 9)
        ],
    )


async def _race(agent: Agent) -> None:
    """Have two runners do the same, and take what the first one did, with its files."""
    task = "Change something, whoever does it better."
    order = RaceOrder(
        task, (TextPart(text=task),), (RunnerSpec(), RunnerSpec()), start=agent.session.leaf
    )
    race = await Race.begin(agent, order)
    await race.over.wait()
    await race.end_runners()
    leaf = race.runner(1).record.leaf
    assert leaf is not None
    await make_move(
        agent, agent.navigator.plan(leaf, continue_from_here=True), await agent.files.plan(leaf)
    )
    await race.finish(1)


async def _live(place: Place, first: int, last: int, tell: Callable[..., None]) -> None:
    chance, watch, process = random.Random(first), Watch(tell), psutil.Process()
    client = ScriptedClient(_replies(watch, chance))
    async with an_agent(place, client) as agent:
        used = time.process_time()
        for number in range(first, last):
            await _turn(agent, number, chance)
            tell("turn", number)
            client.requests.clear()  # a provider does not keep them either
            if (number + 1) % EVERY == 0:
                spent, used = time.process_time() - used, time.process_time()
                requests, watch.requests = watch.requests, 0
                tell("sample", number + 1, process.memory_full_info().pss, spent, requests)
                used = time.process_time()
        tell("end")


def _sizes(file: Path) -> Iterator[tuple[str, int]]:
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 8"
        yield from connection.execute(query)


def _kinds(place: Place) -> Counter[str]:
    with place.session() as session:
        return Counter(header.kind for header in session.skeleton())


def _day(place: Place, turns: int, crashes: int, seed: int) -> tuple[list[list[Any]], list[str]]:
    """Work through all turns; return the samples and what was wrong."""
    chance = random.Random(seed)
    ends = [*sorted(chance.sample(range(1, turns), crashes)), turns]
    samples: list[list[Any]] = []
    wrong: list[str] = []
    first = 0
    for end in ends:
        delay = chance.uniform(0, 0.5)

        def kill_at(told: list[list[Any]], end: int = end, delay: float = delay) -> float | None:
            return (
                time.monotonic() + delay if told[-1] == ["turn", end - 1] and end < turns else None
            )

        def live(tell: Callable[..., None], first: int = first) -> None:
            asyncio.run(_live(place, first, turns, tell))

        told = in_process(live, kill_at, longest=3_600)
        wrong += wrong_in(told)
        for word, *rest in told:
            if word == "sample":
                samples.append(rest)
                print(_line(rest, place), flush=True)
        first = max((rest[0] for word, *rest in told if word == "turn"), default=first - 1) + 1
        if end < turns:
            print(f"  killed after turn {first}", flush=True)
    if first < turns:
        wrong.append(f"it came to turn {first} of {turns}")
    return samples, wrong


def _line(sample: list[Any], place: Place) -> str:
    turn, memory, spent, requests = sample
    size = sum(path.stat().st_size for path in place.root.glob("sessions.db*") if path.is_file())
    return f"{turn:>6}{memory / 1e6:>9.1f}{spent / EVERY * 1_000:>9.1f}{requests:>10}{size / 1e6:>9.1f}"


def main() -> int:
    """Return 1 if a request was wrong, memory grew, or turns became slower."""
    parser = argparse.ArgumentParser(prog="python -m scripts.faults.day", description=__doc__)
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--crashes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tui-agent-day-") as name:
        place = Place(Path(name))
        place.project.mkdir()
        for number in range(30):
            (place.project / f"file{number}.txt").write_text(f"file {number}\n" * 200)
        print(f"{'turns':>6}{'MB':>9}{'ms each':>9}{'requests':>10}{'file MB':>9}")
        samples, wrong = _day(place, arguments.turns, arguments.crashes, arguments.seed)
        print(
            "in the file, MB:",
            ", ".join(f"{table} {size / 1e6:.1f}" for table, size in _sizes(place.file)),
        )
        print(
            "entries:", ", ".join(f"{kind} {count}" for kind, count in _kinds(place).most_common())
        )
    third = max(len(samples) // 3, 1)
    early, late = samples[1 : third + 1] or samples, samples[-third:]
    for at, what, most in ((1, "memory", FLAT), (2, "processor time of a turn", 1.25)):
        growth = fmean(sample[at] for sample in late) / fmean(sample[at] for sample in early)
        print(f"{what}: the last third takes {growth:.2f} of the first")
        if growth > most:
            wrong.append(f"{what} grew")
    for fault in wrong:
        print(fault, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
