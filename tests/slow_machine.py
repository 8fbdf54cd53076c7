"""Makes this machine slow at random: ``--slow-machine`` finds tests that count on things happening soon.

Event loops stop now and then for as long as the timers of the interface take, functions in threads begin and end late,
and so do programs that are started. The same number does the same to a test each time, whatever runs beside it.
"""

import random
import subprocess
import sys
import time
from asyncio import base_events
from typing import Any

LOOP_SHARE, LOOP_SECONDS = 1 / 100, 0.12
"""How many turns of a loop are late, and by how much at most."""
THREAD_SHARE, THREAD_SECONDS = 1 / 2, 0.06
PROCESS_SHARE, PROCESS_SECONDS = 1 / 2, 0.2
SWITCHES = 1e-4
"""Seconds a thread runs before another may: so short that they change places everywhere."""

chance = random.Random()


def late(share: float, seconds: float) -> None:
    """Sleep for some time, or not."""
    if chance.random() < share:
        time.sleep(chance.uniform(0, seconds))


def slow_down() -> None:
    """Make everything late from now on."""
    run_once: Any = base_events.BaseEventLoop._run_once  # type: ignore[attr-defined]
    run_in_executor: Any = base_events.BaseEventLoop.run_in_executor
    start: Any = subprocess.Popen.__init__

    def run_once_late(loop: Any) -> None:
        late(LOOP_SHARE, LOOP_SECONDS)
        run_once(loop)

    def run_in_executor_late(loop: Any, executor: Any, function: Any, *arguments: Any) -> Any:
        def called() -> Any:
            late(THREAD_SHARE, THREAD_SECONDS)
            try:
                return function(*arguments)
            finally:
                late(THREAD_SHARE, THREAD_SECONDS)

        return run_in_executor(loop, executor, called)

    def start_late(process: Any, *arguments: Any, **options: Any) -> None:
        start(process, *arguments, **options)
        late(PROCESS_SHARE, PROCESS_SECONDS)

    base_events.BaseEventLoop._run_once = run_once_late  # type: ignore[attr-defined]
    base_events.BaseEventLoop.run_in_executor = run_in_executor_late  # type: ignore[method-assign]
    subprocess.Popen.__init__ = start_late  # type: ignore[method-assign]
    sys.setswitchinterval(SWITCHES)
