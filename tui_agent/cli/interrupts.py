"""Decides what Ctrl+C does during the start, before the program has done anything it must finish.

Python raises `KeyboardInterrupt` wherever it happens to be. While modules are being imported, that
may be one of Python's own callbacks, which prints the exception and drops it: the program would
continue. So during the start, Ctrl+C ends the process.
"""

import signal


def end_at_once() -> None:
    """Let Ctrl+C end the process at once, as the system does by default."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """Let Ctrl+C raise `KeyboardInterrupt` again, if `end_at_once` changed that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
