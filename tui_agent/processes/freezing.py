"""Stops a command's processes for a moment, so that what they made can be looked at."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from tui_agent.processes.table import descendants, state_of

FREEZE_SECONDS = 2.0
"""How long processes are waited for that don't stop, because a disk or network keeps them."""
_PAUSE = 0.001
_STOPPED = frozenset({"T", "t", "Z", "X", ""})
_STANDING = _STOPPED | {"D"}
"""Waiting for a disk, or for its child to begin: the signal comes before anything else does."""


@contextmanager
def held_still(leader: int) -> Iterator[Callable[[], bool]]:
    """Give a function that stops all processes below one until the block ends.

    It returns whether all of them stand still.

    A stopped process starts no other: once two looks find the same ones, there are no more. All of
    a command's are below its first, which is the first of their namespace or takes in those whose
    parents ended.
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
