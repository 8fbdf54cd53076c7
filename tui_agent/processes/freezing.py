"""Stops a command's processes for a moment, so that their changes can be judged."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from tui_agent.processes.table import descendants, state_of

FREEZE_SECONDS = 2.0
"""Seconds to wait for processes that don't stop at once, as a disk or network keeps them busy."""
_PAUSE = 0.001
_STOPPED = frozenset({"T", "t", "Z", "X", ""})
_STANDING = _STOPPED | {"D"}
"""States of a process that does nothing now: stopped, or waiting in the kernel (D), which acts on the
signal before anything else."""


@contextmanager
def held_still(leader: int) -> Iterator[Callable[[], bool]]:
    """Give a function that stops ``leader`` and all processes below it until the block ends.

    The function returns True if all of them have stopped. A stopped process starts no other, so two
    looks that find the same processes have found all. ``leader`` adopts the processes whose parents
    have ended, so every process of the command is below it.
    """
    stopped: dict[int, None] = {}
    try:
        yield partial(_stop, leader, stopped)
    finally:
        for pid in stopped:
            with suppress(OSError):
                os.kill(pid, signal.SIGCONT)


def _stop(leader: int, stopped: dict[int, None]) -> bool:
    until = time.monotonic() + FREEZE_SECONDS
    while time.monotonic() < until:
        is_complete = True
        for pid in descendants([leader]):
            if pid in stopped or state_of(pid) in _STOPPED:
                continue
            is_complete = False
            with suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
                stopped[pid] = None
        if is_complete and all(state_of(pid) in _STANDING for pid in stopped):
            return True
        time.sleep(_PAUSE)
    return False
