"""One turn: Enter until the first token, a tool call until the next request, and what the requests hold."""

import itertools
import random
import subprocess
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from benchmarks.floors import commit, first_token, key_shown
from benchmarks.program import WORDS, Sandbox, ask, sandbox
from benchmarks.report import Row, milliseconds, percentile
from tests.support.model_script import Call, Recorded, Turn, echo
from tests.support.terminal import Terminal

NAME = "turns"
ROUNDS = 15
CALLS = 12
PAUSE = 0.2
"""Seconds the server waits before each half of an answer that goes on."""
LONG_ANSWERS = {32_768: 8_000, 131_072: 20_000, 1_000_000: 20_000}
"""Tokens of the answer before the turn that is timed, by the model's window in tokens."""
LONG_ROUNDS = 3


def run() -> Iterator[Row]:
    """Measure turns against a server that answers at once."""
    with sandbox() as box:
        yield from _first_token(box)
        yield _tool_round_trip(box, "tool round trip beyond the command", 20)
        yield from _prefixes(list(box.server.calls)[-CALLS - 1 :])
    for window, tokens in LONG_ANSWERS.items():
        yield _after_a_long_answer(window=window, tokens=tokens)
    with sandbox(commands="auto") as box:
        yield _tool_round_trip(box, "the same in a sandbox, its making included", None)


def _first_token(box: Sandbox) -> Iterator[Row]:
    with box.ready() as terminal:
        terminal.pump(0.0)
        first = ask(terminal, "the very first turn", "You said: the very first turn")
        yield Row(
            NAME, "Enter → first token, first turn", first * 1000, "ms", note="loading included"
        )
        terminal.wait_quiet(0.5)
        marks = [f"mark{number}x" for number in range(ROUNDS)]
        delays: list[float] = []
        requests, arrived = [], [0.0]

        def script(_request: Recorded) -> Turn:
            arrived.append(time.perf_counter())
            return Turn(text=f"{marks[len(delays)]} and so on")

        box.server.play_function(script)
        for mark in marks:
            delays.append(ask(terminal, "go", mark))
            requests.append(arrived[-1] - (time.perf_counter() - delays[-1]))
            terminal.wait_quiet(0.2)
        begun = list(_begun(box, terminal))
        box.server.play_function(echo)
        yield Row(
            NAME,
            "Enter → request",
            milliseconds(requests),
            "ms",
            note=f"median of {ROUNDS}, at the server",
        )
        base = (key_shown() + first_token(box.server.openai_url) + 3 * commit()) * 1000
        note = f"a key in an empty app, plain httpx and three SQLite commits: {base:.0f} ms"
        note = f"median of {ROUNDS}; worst {percentile(delays, 1) * 1000:.0f} ms; {note}"
        enter = milliseconds(delays)
        yield Row(NAME, "Enter → answer, all of it at once", enter, "ms", 25, note, enter / base)
        going_on = milliseconds(begun)
        note = "the server's pause before it taken off"
        yield Row(
            NAME,
            "Enter → first token of an answer that goes on",
            going_on,
            "ms",
            20,
            note,
            going_on / base,
        )


def _after_a_long_answer(*, window: int, tokens: int) -> Row:
    """Time the first turn after a long answer: what has come to be counted must not be waited for."""
    delays = [_turn_after_a_long_answer(window=window, tokens=tokens) for _ in range(LONG_ROUNDS)]
    return Row(
        NAME,
        f"Enter → first token after {tokens:,} tokens, window {window:,}",
        milliseconds(delays),
        "ms",
        30,
        f"median of {LONG_ROUNDS}, each a new program",
    )


def _turn_after_a_long_answer(*, window: int, tokens: int) -> float:
    with sandbox(window=window) as box, box.ready() as terminal:
        words = random.Random(1).choices(WORDS, k=tokens)  # what repeats itself is stopped
        long = " ".join([*words, "THE-END"])
        box.server.play_function(lambda _request: Turn(text=long, chunks=200))
        ask(terminal, "tell me everything", "THE-END")
        terminal.wait_quiet(1.0)
        box.server.play_function(echo)
        return ask(terminal, "and now", "You said: and now")


def _begun(box: Sandbox, terminal: Terminal) -> Iterator[float]:
    """Yield the seconds from Enter to the first half of answers whose second half comes later."""
    for number in range(ROUNDS):
        mark = f"begun{number}x"
        box.server.play_function(
            lambda _request: Turn(text=f"{mark} and so on, and on", chunks=2, delay=PAUSE)  # noqa: B023 - asked at once
        )
        yield ask(terminal, "go", mark) - PAUSE
        terminal.wait_quiet(4 * PAUSE)


def _tool_round_trip(box: Sandbox, what: str, target: float | None) -> Row:
    """Time from the last byte of an answer with a call until the next request arrives, less the command itself."""
    finished: list[float] = []
    arrived: list[float] = []

    def script(_request: Recorded) -> Turn:
        arrived.append(time.perf_counter())
        finished.append(box.server.finished_at)
        if len(arrived) <= CALLS:
            return Turn(tool_calls=(Call("bash", {"command": f"echo hi {len(arrived)}"}),))
        return Turn(text="ALL-CALLS-DONE")

    with box.warm() as terminal:
        box.server.play_function(script)
        ask(terminal, "go", "ALL-CALLS-DONE")
    # The first request follows a person, not a tool.
    waits = [arrival - end for arrival, end in zip(arrived[1:], finished[1:], strict=True)]
    command = median(_command_seconds() for _ in range(9))
    note = f"median of {len(waits)}; `echo hi` itself takes {command * 1000:.1f} ms"
    return Row(NAME, what, (median(waits) - command) * 1000, "ms", target, note)


def _command_seconds() -> float:
    start = time.perf_counter()
    subprocess.run(["bash", "-c", "echo hi"], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def _prefixes(calls: list[Recorded]) -> Iterator[Row]:
    """Check that each request only appends to the one before, and weigh the fixed part of the first."""
    held = [_extends(before.json, after.json) for before, after in itertools.pairwise(calls)]
    broken = 100 * (1 - sum(held) / len(held))
    yield Row(NAME, "requests that change what was sent before", broken, "%", 0, f"of {len(held)}")


def _extends(before: dict[str, Any], after: dict[str, Any]) -> bool:
    messages = before["messages"]
    same_head = all(before.get(key) == after.get(key) for key in ("tools", "model", "tool_choice"))
    return same_head and after["messages"][: len(messages)] == messages
