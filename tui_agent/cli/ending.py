"""Helps the program to end: passes on signals, and limits how long tasks and threads delay the end.

The callers of `listening` (the screen and the runs without one) decide what a signal does.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

from tui_agent.cli.interrupts import raise_again

T = TypeVar("T")

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""Signals that ask the program to end and for which it can run a handler."""

SECONDS_TO_END = 10
"""Seconds that the program has to end after a signal; then the system kills it."""

THREAD_SECONDS = 1.0
"""Maximum number of seconds to wait at the end for worker threads, which can't be stopped."""
_WORKERS = 16


@contextmanager
def listening(act: Callable[[int], object], *numbers: int) -> Iterator[None]:
    """Call ``act`` with the signal's number for each signal that arrives during the ``with`` block.

    ``numbers`` are the signals to handle. ``act`` is called on the event loop. Signals that are
    ignored when the block begins stay ignored.
    """
    loop = asyncio.get_running_loop()
    heard = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, act, number)
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def end_in_time() -> None:
    """Make the system kill this process if it has not ended within `SECONDS_TO_END`."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS_TO_END)


class _Threads(ThreadPoolExecutor):
    """The worker threads of an event loop.

    At the end, ``shutdown`` waits for them for at most `THREAD_SECONDS`.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:  # noqa: FBT001, FBT002 - as inherited
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        until = monotonic() + THREAD_SECONDS
        for thread in self._threads if wait else ():
            thread.join(max(0.0, until - monotonic()))


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like ``asyncio.run``, but limit the wait for worker threads.

    The limit is `THREAD_SECONDS`.
    """
    raise_again()
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(_Threads(_WORKERS, "work"))
        return runner.run(_with_its_tasks(work))


async def _with_its_tasks(work: Coroutine[Any, Any, T]) -> T:
    """Await ``work``, then cancel all other tasks and wait for them; return the result of ``work``.

    Tasks in which asyncio connects the pipes of a new process are not cancelled: Python 3.11 would
    never wake a task that waits for the process, and the program would not end.
    """
    try:
        return await work
    finally:
        # Hide asyncio's warning about a lost exit status, given if other code waited for its
        # process.
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            if getattr(task.get_coro(), "__name__", "") != "_connect_pipes":
                task.cancel()
        if others:
            await asyncio.wait(others)
