"""Decides what Ctrl+C does before anything that has to be finished has begun.

Python raises `KeyboardInterrupt` wherever it happens to be. While modules are imported that may be a
callback of its own, which prints the exception and drops it: the program would go on.
"""

import signal


def end_at_once() -> None:
    """Let an interrupt end the process, as the system does by default."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """Let an interrupt raise `KeyboardInterrupt`, if `end_at_once` had changed that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
