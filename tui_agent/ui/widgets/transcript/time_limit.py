"""Limits the processor time of regular expressions and parsers, because they block the screen.

The limit uses SIGVTALRM and the process's virtual timer, so no other code in the program may use
these.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooLongError(Exception):
    """Raised when code has used more processor time than allowed."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Abort the ``with`` block after ``seconds`` of processor time.

    Because the block can be aborted anywhere, the data that it changes may be inconsistent
    afterwards. There is no limit outside the main thread. In nested blocks, only the outer limit
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
