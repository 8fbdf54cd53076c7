"""No test asks a clock how fast something was, or waits for a time instead of for a state."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.parsed import parsed

TESTS = Path(__file__).parent
STOPWATCHES = {"perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "thread_time"}
WORDS = re.compile("|".join([*STOPWATCHES, r"(sleep|pause)\(\s*[\d.]"]))
"""Files without any of these need not be parsed."""

FOR_EVER = 60
"""Seconds from which on a sleep plays something that hangs."""


def unsteady(tree: ast.AST) -> Iterator[str]:
    """Say what in a test depends on how fast the machine is."""
    polls = {id(inner) for loop in ast.walk(tree) if isinstance(loop, ast.While) for inner in ast.walk(loop)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        seconds = next((one.value for one in call.args if isinstance(one, ast.Constant)), None)
        waits = isinstance(seconds, int | float) and 0 < seconds < FOR_EVER
        if name in STOPWATCHES:
            yield f"line {call.lineno} reads a stopwatch: count what is done, or measure it in benchmarks"
        elif name in {"sleep", "pause"} and waits and id(call) not in polls:
            yield f"line {call.lineno} waits for {seconds} s: wait for the state it stands for"


def test_no_test_depends_on_how_fast_the_machine_is() -> None:
    found = [
        f"{file.relative_to(TESTS)}: {what}"
        for file in sorted(TESTS.rglob("test_*.py"))
        if WORDS.search(text := file.read_text(encoding="utf-8"))
        for what in unsteady(parsed(text))
    ]
    assert not found, "\n".join(found)
