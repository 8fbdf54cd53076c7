"""Briefly pauses a command's processes, so that the changes they made can be judged."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from tui_agent.processes.table import descendants, state_of

FREEZE_SECONDS = 2.0
"""Maximum seconds to wait until all processes have stopped. A slow disk or network delays this."""
_PAUSE = 0.001
_STOPPED = frozenset({"T", "t", "Z", "X", ""})
_STANDING = _STOPPED | {"D"}
"""States of a process that is running no code: stopped, ended, or waiting in the kernel (D). A
process in state D stops before it runs again."""


@contextmanager
def held_still(leader: int) -> Iterator[Callable[[], bool]]:
    """Yield a function that stops all descendants of ``leader`` until the block ends.

    The function blocks for at most `FREEZE_SECONDS` and returns True if all have stopped. At the
    end of the block they continue. ``leader`` must adopt orphans, so that every process of the
    command is its descendant.
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
