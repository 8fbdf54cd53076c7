"""The end of the program: how it answers signals, and that it ends soon, whatever its threads compute."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""Signals that ask for an end and leave time for it."""

SECONDS_TO_END = 10
"""After these the system ends a program that was asked to end and still runs."""

THREAD_SECONDS = 1.0
"""How long threads are waited for at the end; nothing can stop a thread."""
_WORKERS = 16


@contextmanager
def listening(act: Callable[[int], object], *numbers: int) -> Iterator[None]:
    """Call ``act`` with the number of a signal while the block runs; those the program was started deaf to stay so.

    ``act`` is called by the event loop, where it may do anything.
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
    """Have the system end the program when it doesn't end on its own, whatever holds it up."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS_TO_END)


class _Threads(ThreadPoolExecutor):
    """The threads of an event loop; at the end they are waited for only so long."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:  # noqa: FBT001, FBT002 - as inherited
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        until = monotonic() + THREAD_SECONDS
        for thread in self._threads if wait else ():
            thread.join(max(0.0, until - monotonic()))


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of its own, as ``asyncio.run`` does, without waiting for endless threads."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(_Threads(_WORKERS, "work"))
        return runner.run(_with_its_tasks(work))


async def _with_its_tasks(work: Coroutine[Any, Any, T]) -> T:
    """Cancel what still runs after the work as well, but not the part of asyncio that connects a starting program.

    Python 3.11 never wakes who waits for a program whose pipes were not connected, and the end
    would wait for ever.
    """
    try:
        return await work
    finally:
        # It says of a program that was waited for by somebody else that its end was lost.
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            if getattr(task.get_coro(), "__name__", "") != "_connect_pipes":
                task.cancel()
        if others:
            await asyncio.wait(others)
