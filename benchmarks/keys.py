"""Key press until it is shown: idle, while an answer streams, while the model host starts, in a long session."""

import time
from collections.abc import Iterator

from benchmarks.floors import key_shown
from benchmarks.program import Sandbox, probe_key, sandbox
from benchmarks.report import Row, percentile
from benchmarks.sessions import fill_session
from tests.support.model_script import Turn
from tests.support.terminal import Terminal

NAME = "keys"
TARGET = 50.0
CHUNKS_PER_SECOND = 100
SECONDS = 6


def run() -> Iterator[Row]:
    """Measure each situation."""
    with sandbox() as box:
        yield from _while_the_host_starts(box)
    # What was typed there and not sent comes back at the next start in the same place.
    with sandbox() as box:
        yield from _idle_and_streaming(box)
    with sandbox() as box:
        entries = 10_000
        session = fill_session(box, entries)
        with box.ready("-r", session) as terminal:
            yield _row(f"session of {entries:,} entries", _probe(terminal, 80))


def _while_the_host_starts(box: Sandbox) -> Iterator[Row]:
    with box.terminal() as terminal:
        terminal.wait_for("Ask anything")
        delays = []
        end = time.perf_counter() + 4
        while time.perf_counter() < end:
            delays.append(probe_key(terminal))
            terminal.pump(0.03)
        yield _row("while the host starts", delays)


def _idle_and_streaming(box: Sandbox) -> Iterator[Row]:
    with box.warm() as terminal:
        yield _row("idle", _probe(terminal, 80))
        terminal.press("enter")
        terminal.wait_quiet(0.5)
        words = " ".join(f"word{number}" for number in range(CHUNKS_PER_SECOND * SECONDS))
        box.server.play(Turn(text=words, delay=1 / CHUNKS_PER_SECOND))
        terminal.type("go")
        terminal.press("enter")
        terminal.wait_for("word10")
        yield _row(f"while {CHUNKS_PER_SECOND} chunks/s stream", _probe(terminal, 60))


def _probe(terminal: Terminal, times: int) -> list[float]:
    """Type letters at a fast typist's pace."""
    delays = []
    for _ in range(times):
        delays.append(probe_key(terminal))
        terminal.pump(0.03)
    return delays


def _row(what: str, delays: list[float]) -> Row:
    median = percentile(delays, 0.5) * 1000
    base = key_shown() * 1000
    note = f"p99 of {len(delays)} keys; median {median:.1f} ms, in an empty app {base:.1f}"
    return Row(
        NAME,
        f"key shown, {what}",
        percentile(delays, 0.99) * 1000,
        "ms",
        TARGET,
        note,
        median / base,
    )
