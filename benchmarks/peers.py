"""Other agents that are installed, taken through the same cases against the same scripted server."""

import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import psutil

from benchmarks import mishaps
from benchmarks.contenders import (
    ANSWER,
    Contender,
    Measured,
    Screen,
    contenders,
    cpu_of,
    family,
    kill,
    memory_of,
)
from benchmarks.headless import BASE, spent
from benchmarks.machine import describe
from benchmarks.program import WORDS
from benchmarks.report import Row
from tests.support.model_script import Recorded, Turn
from tui_agent.context.tokens import count_text

NAME = "compare"
ROUNDS = 3
FLOORS = 2
"""How often the bare import is run in a round."""
WARM_RUNS = 2
"""How often a one-shot run is repeated in a round, after the first in an empty home."""
WARM_STARTS = 2
"""How often a screen is started in a round, after the first time in a home."""
TURNS = 5
SETTLE_SECONDS = 3.0
"""How long a peer is left alone after it showed a key, before its first turn."""
LONG = "longer"
STEADY = "steady"
WIDE = "wide"
END = "thatisall"
WIDE_END = "endofit"
PARAGRAPHS = 400
CHUNKS = 2_000
STEADY_CHUNKS = 600
WIDE_CHARS = 80_000
HELD_SECONDS = 1.5
"""How long the server holds an answer back while the memory of a one-shot run is read."""


@dataclass(slots=True)
class _Taken:
    """The values of one row, of all rounds."""

    unit: str
    note: str
    values: list[float] = field(default_factory=list)


def run() -> Iterator[Row]:
    """Take this program and every peer that is found through the cases, again in each round.

    A round takes the programs in turn, so that a machine that is slower for some minutes is slower for
    all of them. Cases of mishaps are run in the first round only: what matters there is how they end.
    """
    taken: dict[tuple[str, str], _Taken] = {}
    for number in range(ROUNDS):
        cases = [_floor, _one_shot, _asked_at_once, _conversation, _streams]
        if number == 0:
            cases += mishaps.CASES
        for who in contenders():
            load = describe()["load"]
            print(f"round {number + 1}, {who.name}: load {load}", file=sys.stderr, flush=True)
            for what, value, unit, note in _measured(who, cases):
                print(f"{who.name}: {what}: {value:.3g} {unit} {note}", file=sys.stderr, flush=True)
                taken.setdefault((who.name, what), _Taken(unit, note)).values.append(value)
    for (name, what), row in taken.items():
        yield Row(NAME, f"{name}: {what}", median(row.values), row.unit, note=row.note)


def _measured(who: Contender, cases: Sequence[Callable[[Contender], Measured]]) -> Measured:
    """Yield what each case measured; one that a program does not get through says why, the others still run."""
    for case in cases:
        who.server.play_function(_answer)
        try:
            yield from case(who)
        except (AssertionError, psutil.NoSuchProcess) as error:
            name = getattr(case, "__name__", "")
            print(f"{who.name}, {name.strip('_')}: {error}", file=sys.stderr, flush=True)


def _floor(_who: Contender) -> Measured:
    """A bare import, just before the program's own cases."""
    for _ in range(FLOORS):
        run = spent([sys.executable, "-c", BASE], {})
        yield "floor, wall", run.wall, "s", f"`{BASE}`, just before"
        yield "floor, CPU", run.cpu, "s", f"`{BASE}`, just before"


def _one_shot(who: Contender) -> Measured:
    version = spent([*who.command, "--version"], who.env, who.project).said
    said = re.search(r"\d+(?:\.\d+)+", version)
    command = [*who.command, *who.once, "hello"]
    first, *later = [spent(command, who.env, who.project) for _ in range(1 + WARM_RUNS)]
    assert ANSWER in first.said, f"answered {first.said!r}"
    yield "one-shot, first", first.wall, "s", said[0] if said else ""
    for run in later:
        yield "one-shot", run.wall, "s", ""
        yield "one-shot, CPU", run.cpu, "s", ""
    biggest = max((call for call in who.server.calls), key=lambda call: len(call.body))
    yield "bytes of the first request", float(len(biggest.body)), "", "prompt and tools for “hello”"
    yield "tokens of the first request", float(_tokens(biggest)), "", "o200k, of its JSON"
    yield "memory of a one-shot run", _memory_while_it_waits(who), "MB", "PSS, every process"


def _tokens(request: Recorded) -> int:
    """Return the tokens of what a request tells the model: its instructions, tools and messages."""
    told = ("system", "instructions", "tools", "messages", "input")
    return sum(count_text(str(request.json[key])) for key in told if key in request.json)


def _memory_while_it_waits(who: Contender) -> float:
    who.server.play_function(lambda _request: Turn(text=ANSWER, first_delay=HELD_SECONDS))
    process = who.start("hello")
    try:
        asked = who.server.wait(lambda server: bool(server.calls), 30)
        assert asked, "no request came"
        return memory_of(process.pid)
    finally:
        kill(family(process.pid))
        process.communicate()


def _asked_at_once(who: Contender) -> Measured:
    """Start a screen for the first time in a home, then again."""
    yield from _start_and_ask(who, "first start")
    for _ in range(WARM_STARTS):
        yield from _start_and_ask(who, "start")


def _start_and_ask(who: Contender, what: str) -> Measured:
    """Type as soon as a letter is shown, and send that."""
    with who.screen() as screen:
        typed = screen.type_until_shown()
        shown_after = screen.age
        yield f"{what} until anything is painted", screen.painted_after, "s", ""
        yield f"{what} until a key is shown", shown_after, "s", ""
        screen.write("\x7f" * typed + "now")
        screen.terminal.read_for(0.2)
        screen.enter("now")
        answered = screen.answered_after
        yield f"{what} until the answer to a message typed at once", answered, "s", ""


def _conversation(who: Contender) -> Measured:
    """Start, come to rest, take some turns, then read a long answer."""
    with who.screen() as screen:
        screen.settle(SETTLE_SECONDS)
        yield from _turns(screen)


def _turns(screen: Screen) -> Measured:
    yield "memory after the start", memory_of(screen.pid), "MB", "PSS, every process"
    yield "Enter → first token, first turn", screen.turn("first") * 1000, "ms", ""
    for number in range(TURNS):
        later = screen.turn(f"turn{number}x")
        yield "Enter → first token", later * 1000, "ms", ""
    yield "memory after the turns", memory_of(screen.pid), "MB", "PSS, every process"
    cpu = cpu_of(screen.pid)
    yield "CPU of start and turns", cpu, "s", ""
    note = f"{CHUNKS:,} pieces, {PARAGRAPHS} paragraphs: Enter until the last word is shown"
    yield "long answer", screen.turn(LONG, END), "s", note
    yield "long answer, CPU", cpu_of(screen.pid) - cpu, "s", "with the second after it"
    after = screen.turn("afterwards") * 1000
    yield "Enter → first token, after the long answer", after, "ms", ""
    yield "memory after the long answer", memory_of(screen.pid), "MB", "PSS, every process"


def _streams(who: Contender) -> Measured:
    """Read an answer that comes steadily, and one that is a single paragraph."""
    with who.screen() as screen:
        screen.settle(SETTLE_SECONDS)
        screen.turn("first")
        cpu = cpu_of(screen.pid)
        begun = time.perf_counter()
        screen.turn(STEADY, END)
        share = (cpu_of(screen.pid) - cpu) / (time.perf_counter() - begun)
        yield "100 pieces a second, CPU", share * 100, "%", f"{STEADY_CHUNKS / 100:.0f} s of them"
        screen.turn(WIDE, WIDE_END)
        late = max(0.0, screen.answered_at - who.server.finished_at)
        yield "one paragraph of 80,000 characters", late, "s", "last byte until the end is shown"


def _answer(request: Recorded) -> Turn:
    """Repeat what was said; a question for a longer answer gets one, and its end is a word of its own."""
    dice = random.Random(1)  # a text that repeats itself is stopped by some
    if LONG in request.prompt:
        paragraphs = (
            " ".join(dice.choices(WORDS, k=40)).capitalize() + "." for _ in range(PARAGRAPHS)
        )
        return Turn(text="\n\n".join([*paragraphs, END]), chunks=CHUNKS)
    if STEADY in request.prompt:
        words = " ".join(dice.choices(WORDS, k=8 * STEADY_CHUNKS))
        return Turn(text=f"{words} {END}", chunks=STEADY_CHUNKS, delay=0.01)
    if WIDE in request.prompt:
        words = " ".join(f"word{number}" for number in range(WIDE_CHARS // 8))
        return Turn(text=f"{words[:WIDE_CHARS]} {WIDE_END}", chunks=WIDE_CHARS // 50)
    return mishaps.echo(request)
