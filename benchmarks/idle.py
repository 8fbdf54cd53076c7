"""The program at rest: processor time, and how often it wakes up."""

import time
from collections.abc import Iterator

import psutil

from benchmarks.program import cpu_seconds, sandbox
from benchmarks.report import Row

NAME = "idle"
SECONDS = 5


def run() -> Iterator[Row]:
    """Watch a program that has answered once and waits."""
    with sandbox() as box, box.warm() as terminal:
        terminal.wait_quiet(2)
        process = psutil.Process(terminal.process.pid)
        written = len(terminal.raw)
        before, wakes = cpu_seconds(process), process.num_ctx_switches().voluntary
        end = time.perf_counter() + SECONDS
        while (left := end - time.perf_counter()) > 0:
            terminal.pump(left)
        share = (cpu_seconds(process) - before) / SECONDS * 100
        woken = (process.num_ctx_switches().voluntary - wakes) / SECONDS
        yield Row(
            NAME,
            "CPU of the UI at rest",
            share,
            "%",
            0.5,
            f"over {SECONDS} s; {woken:.0f} wake-ups/s",
        )
        yield Row(NAME, "bytes written at rest", len(terminal.raw) - written, "bytes", 0)
