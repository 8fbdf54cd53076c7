"""Decides what Ctrl+C does at startup, before the program has begun anything that it must finish.

Python raises `KeyboardInterrupt` in whatever code is running. While modules are being imported,
that may be one of Python's own callbacks, which prints the exception and drops it, so that the
program would continue. During startup, Ctrl+C therefore ends the process.
"""

import signal


def end_at_once() -> None:
    """Let Ctrl+C end the process at once, which is the system's default."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """Let Ctrl+C raise `KeyboardInterrupt` again, if `end_at_once` has changed that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
