"""A limit of processor time for work the screen waits for: regular expressions and parsers can take for ever."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooLongError(Exception):
    """The work was given up."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Give the block up after so many seconds of processor time.

    It must leave nothing half done that is used again.

    Without effect in a block that is limited already, and in other threads, which hold up nobody.

    Raises:
        TooLongError: the time is over; also within a single call of ``re``, which looks for
            signals.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGVTALRM) is _give_up
    ):
        yield
        return
    former = signal.signal(signal.SIGVTALRM, _give_up)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)


def _give_up(_number: int, _frame: FrameType | None) -> None:
    raise TooLongError
