"""Long answers: a fast one, a steady one, and three shapes of Markdown that are hard to draw."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from benchmarks.program import (
    Sandbox,
    ask,
    cpu_seconds,
    private,
    probe_key,
    pss,
    sandbox,
    wait_written,
)
from benchmarks.report import Row
from tests.support.model_script import Turn

NAME = "streaming"
END = "THE-END-OF-IT"


@dataclass(frozen=True, slots=True)
class Shape:
    """An answer and how it is cut. The seconds are from the last byte on the wire until the end is visible."""

    what: str
    text: str
    chunks: int


def run() -> Iterator[Row]:
    """Measure each answer in a program of its own."""
    for measure in (_fast, _steady):
        with sandbox() as box:
            yield from measure(box)
    for shape in _shapes():
        with sandbox() as box:
            yield from _shape(box, shape)


def _fast(box: Sandbox) -> Iterator[Row]:
    """20,000 tokens in 2,000 chunks as fast as the server can send."""
    with box.warm() as terminal:
        process = psutil.Process(terminal.process.pid)
        before = cpu_seconds(process)
        box.server.play(Turn(text=f"{_prose(20_000)}\n\n{END}", chunks=2_000))
        seconds = ask(terminal, "go", END)
        key = probe_key(terminal)
        terminal.wait_quiet(0.5)
        what = "20,000 tokens in 2,000 chunks"
        yield Row(NAME, f"{what}: Enter → end visible", seconds, "s", 0.9)
        yield Row(NAME, f"{what}: CPU of the UI", cpu_seconds(process) - before, "s", 1.0)
        yield Row(NAME, f"{what}: key right after", key * 1000, "ms", 50)
        others = process.children(recursive=True)
        all_of_it = pss(process) + sum(map(pss, others))
        own = sum(map(private, (process, *others)))
        note = (
            f"PSS; {own:.0f} MB of it in no file; {1 + len(others)} process{'es' if others else ''}"
        )
        yield Row("memory", "the program after 20,000 tokens", all_of_it, "MB", 115, note)


def _steady(box: Sandbox) -> Iterator[Row]:
    """100 chunks a second for 10 seconds."""
    with box.warm() as terminal:
        process = psutil.Process(terminal.process.pid)
        box.server.play(Turn(text=f"{_prose(10_000)}\n\n{END}", chunks=1_000, delay=0.01))
        before, start = _cpu_of_all(process), time.perf_counter()
        ask(terminal, "go", END)
        share = (_cpu_of_all(process) - before) / (time.perf_counter() - start)
        yield Row(NAME, "100 chunks/s for 10 s: CPU of all processes", share * 100, "%", 10)


def _cpu_of_all(process: psutil.Process) -> float:
    return sum(map(cpu_seconds, (process, *process.children(recursive=True))))


def _shapes() -> Iterator[Shape]:
    words = " ".join(f"word{number}" for number in range(9_000))
    yield Shape("a paragraph of 80,000 characters", f"{words[:80_000]} {END}", 1_600)
    items = "\n".join(f"- item {number} with a few words and `code`" for number in range(1_000))
    yield Shape("a list of 1,000 items", f"{items}\n- {END}", 1_000)
    code = "\n".join(
        f"value_{number} = compute({number}, name='x')  # note" for number in range(5_000)
    )
    yield Shape("a fence of 5,000 lines", f"```python\n{code}\n# {END}\n```", 2_500)


def _shape(box: Sandbox, shape: Shape) -> Iterator[Row]:
    with box.warm() as terminal:
        process = psutil.Process(terminal.process.pid)
        before = cpu_seconds(process)
        box.server.play(Turn(text=shape.text, chunks=shape.chunks))
        seen = len(terminal.raw)
        terminal.type("go")
        terminal.wait_quiet(0.1)
        terminal.press("enter")
        visible = wait_written(terminal, END, seen)
        late = max(0.0, visible - box.server.finished_at)
        terminal.wait_quiet(0.5)
        spent = cpu_seconds(process) - before
        yield Row(
            NAME,
            f"{shape.what}: last byte → end visible",
            late,
            "s",
            0.5,
            f"{spent:.1f} s of CPU in all",
        )


def _prose(tokens: int) -> str:
    """Return Markdown of about that many tokens: paragraphs, a list now and then, a little code."""
    # Numbered, so that nobody takes it for a model that repeats itself.
    blocks = (
        f"The cart {number} adds up prices and quantities, and every **total** is a number of whole cents. "
        f"A discount of {number % 90} is taken once, after the sum, and `round_{number}` is never called.\n\n"
        f"- first the sum {number}\n- then the discount\n\n"
        f"```python\ntotal_{number} = sum(item.price for item in items)\n```\n\n"
        for number in range(tokens // 85)
    )
    return "".join(blocks)
