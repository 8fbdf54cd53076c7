"""Process start until the prompt shows a typed letter, beside an empty Textual application in the same run."""

import sys
import time
from collections.abc import Iterator
from statistics import median

from benchmarks.floors import empty_app
from benchmarks.program import Sandbox, sandbox
from benchmarks.report import Row
from tests.support.terminal import Terminal

ROUNDS = 7
NAME = "start-up"


def run() -> Iterator[Row]:
    """Measure both programs in turn, so that both see the same load."""
    with sandbox() as box:
        for size in ((80, 24), (200, 50)):
            early, ours, empty = [], [], []
            for _ in range(ROUNDS + 1):
                empty.append(_until_a_key_is_shown(empty_app(box.env, box.project, size)))
                ours.append(_until_a_key_is_shown(box.terminal(size=size)))
                early.append(_until_typed_is_shown(box, size))
            at = f"{size[0]}x{size[1]}"
            base, mine = median(empty[1:]), median(ours[1:])
            note = f"median of {ROUNDS}; by the prompt that is there before the interface, from the second start on"
            shown = median(early[1:])
            yield Row(
                NAME, f"what is typed is shown, {at}", shown * 1000, "ms", 250, note, shown / base
            )
            note = f"empty app {base * 1000:.0f} ms"
            yield Row(
                NAME, f"the interface takes keys, {at}", mine * 1000, "ms", 500, note, mine / base
            )


def _until_typed_is_shown(box: Sandbox, size: tuple[int, int]) -> float:
    """Type a letter as soon as there is a prompt; return the seconds from the start until it is shown in it."""
    command = [sys.executable, "-m", "tui_agent"]
    start = time.perf_counter()
    with Terminal(command, size=size, env=box.env, cwd=box.project) as terminal:
        terminal.wait_until(lambda: "▌".encode() in terminal.raw, "the prompt")
        terminal.type("Ω")
        terminal.wait_until(lambda: "Ω".encode() in terminal.raw, "the letter")
        return time.perf_counter() - start


def _until_a_key_is_shown(terminal: Terminal) -> float:
    """Send letters from the first output on, until the program shows one; return the seconds since its start."""
    start = time.perf_counter()
    with terminal:
        terminal.wait_until(lambda: b"\x1b[?1004h" in terminal.raw, "the alternate screen")
        sent = time.perf_counter()
        terminal.type("Ω")
        while "Ω".encode() not in terminal.raw:
            terminal.pump(0.005)
            if time.perf_counter() - sent > 0.02:
                terminal.type("Ω")
                sent = time.perf_counter()
            if sent - start > 60:
                raise AssertionError(f"no key was ever shown\n{terminal.framed()}")
        return time.perf_counter() - start
