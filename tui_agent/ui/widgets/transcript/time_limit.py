"""Limits the processor time of regular expressions and parsers that the screen waits for.

It uses the process's virtual timer and SIGVTALRM, which nothing else may use.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooLongError(Exception):
    """The time limit was exceeded."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Abort the ``with`` block after ``seconds`` of processor time, by a signal.

    It can be aborted anywhere, so data that it changes may be inconsistent afterwards. There is no
    limit in threads other than the main one; inside another limited block, only the outer limit
    applies.

    Raises:
        TooLongError: the limit was exceeded, possibly during a single call of ``re``.
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
