"""A process of its own that ends commands when the program that started them is gone, however that happened.

The program holds the writing end of the watcher's standard input and tells on it what runs. A killed program says
nothing any more, but the end of that input can't be missed.
"""

import os
import signal
import sys
import time

from tui_agent.tools.process_table import PROC, marked_in_session, members, signal_all, signal_each

GRACE = 0.3
"""Seconds between the request to end and the end."""

_ROUNDS = 50
_POLL = 0.02

Watched = tuple[int, bool]
"""The process that leads a command's session, 0 while it starts, and whether what left the session counts too."""


def main() -> None:
    """Take lines until the end of input, then end what is still told to run."""
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[str, Watched] = {}
    for line in sys.stdin.buffer:
        take(watched, line.decode("ascii", "replace").split())
    end(watched)


def take(watched: dict[str, Watched], words: list[str]) -> None:
    """Take ``+ mark 0`` (about to start), ``+ mark pid`` (runs), ``& mark pid`` (left something), ``- mark`` (over)."""
    match words:
        case ["+" | "&" as sign, mark, pid]:
            watched[mark] = (int(pid), sign == "+")
        case ["-", mark]:
            watched.pop(mark, None)
        case _:
            return


def end(watched: dict[str, Watched]) -> None:
    """End everything: ask, wait, kill until nothing is left."""
    _signal(watched, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and _left(watched):
        time.sleep(_POLL)
    for _ in range(_ROUNDS):
        if not _left(watched):
            return
        _signal(watched, signal.SIGKILL)
        time.sleep(_POLL)


def _members(leader: int, mark: str, *, whole: bool) -> list[int]:
    return members(leader or -1, mark) if whole else marked_in_session(leader, mark)


def _left(watched: dict[str, Watched]) -> list[int]:
    if not PROC.is_dir():
        return [leader for leader, whole in watched.values() if leader and whole]
    return [pid for mark, (leader, whole) in watched.items() for pid in _members(leader, mark, whole=whole)]


def _signal(watched: dict[str, Watched], number: signal.Signals) -> None:
    for mark, (leader, whole) in watched.items():
        found = _members(leader, mark, whole=whole)
        if whole and leader:
            signal_all(leader, number, found)
        else:
            signal_each(number, found)


if __name__ == "__main__":
    main()
