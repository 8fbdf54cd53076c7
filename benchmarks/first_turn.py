"""The first turn after the start: how long it takes where it is asked for at once, what it costs, what it leaves."""

import time
from collections.abc import Iterator
from statistics import median

import psutil

from benchmarks.headless import BASE, import_cpu
from benchmarks.program import PROMPT_HINT, Sandbox, ask, cpu_seconds, pss, sandbox
from benchmarks.report import Row

NAME = "first turn"
ROUNDS = 5


def run() -> Iterator[Row]:
    """Measure starts with one turn each, on native wires: the program is one process then."""
    with sandbox() as box:
        with box.ready():
            pass
        base = import_cpu()
        rounds = [_round(box) for _ in range(ROUNDS)]
    at_once, cpu, started, after = (median(values) for values in zip(*rounds, strict=True))
    yield Row(
        NAME,
        "asked as soon as keys are taken",
        at_once * 1000,
        "ms",
        None,
        "Enter until it is answered",
    )
    note = f"`{BASE}`: {base:.0f} ms"
    yield Row(
        NAME,
        "CPU from the start to the first answer",
        cpu * 1000,
        "ms",
        1_000,
        note,
        cpu * 1000 / base,
    )
    yield Row("memory", "after the start", started, "MB", 100, "PSS, every process")
    yield Row("memory", "after a turn", after, "MB", 115, "PSS, every process")


def _round(box: Sandbox) -> tuple[float, float, float, float]:
    with box.terminal() as terminal:
        terminal.wait_for(PROMPT_HINT)
        at_once = ask(terminal, "at once", "You said: at once")
    with box.terminal() as terminal:
        process = psutil.Process(terminal.process.pid)
        terminal.wait_for(PROMPT_HINT)
        terminal.wait_quiet(1)
        # What it does by itself when nobody types.
        until = time.perf_counter() + 2
        while (left := until - time.perf_counter()) > 0:
            terminal.pump(left)
        started = _whole(process)
        ask(terminal, "a turn", "You said: a turn")
        cpu = sum(cpu_seconds(one) for one in _all(process))
        terminal.wait_quiet(0.5)
        return at_once, cpu, started, _whole(process)


def _all(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _whole(process: psutil.Process) -> float:
    return sum(map(pss, _all(process)))
