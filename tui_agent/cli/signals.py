"""What the program does when the system or somebody asks it to end."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""Signals that ask for an end and leave time for it."""

SECONDS_TO_END = 10
"""After these the system ends a program that was asked to end and still runs."""


@contextmanager
def listening(act: Callable[[int], object], *numbers: int) -> Iterator[None]:
    """Call ``act`` with the number of a signal while the block runs; those the program was started deaf to stay so.

    ``act`` is called by the event loop, where it may do what it likes.
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
    """Have the system end the program when it doesn't end by itself, whatever holds it up."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS_TO_END)
