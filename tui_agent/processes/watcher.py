"""Ends commands, for the program that started them and when it is gone, however that happened.

Run as a process of its own it is the watcher: the program holds the writing end of its standard
input and names running commands on it. A killed program sends nothing more, but the end of that
input can't be missed.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator

from tui_agent.lazy import frozen
from tui_agent.processes.table import PROC, any_left, left_over, members, signal_each

TERM_GRACE_SECONDS = 0.3
"""Seconds between SIGTERM and SIGKILL."""

KILL_SECONDS = 3.0
"""Seconds to wait until killed processes are gone, which takes long on a busy machine."""
_POLL = 0.02


@frozen
class WatchedCommand:
    """A watched command. ``leader`` is the process that leads its session, 0 while it starts.

    ``left`` is None while the command runs; then the processes it left behind, with their start
    times.
    """

    leader: int
    left: tuple[tuple[int, int], ...] | None = None


def main() -> None:
    """Read lines until the end of input, then end the commands that still run."""
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[str, WatchedCommand] = {}
    for line in sys.stdin.buffer:
        take(watched, line.decode("ascii", "replace").split())
    end(watched)


def take(watched: dict[str, WatchedCommand], words: list[str]) -> None:
    """Apply one line of input to the watched commands.

    ``+ mark 0``: about to start; ``+ mark pid``: running; ``& mark pid pid:start ...``: ended and
    left these processes behind; ``- mark``: over.
    """
    match words:
        case ["+", mark, pid]:
            watched[mark] = WatchedCommand(int(pid))
        case ["&", mark, pid, *left]:
            processes: list[tuple[int, int]] = []
            for item in left:
                number, _, start = item.partition(":")
                processes.append((int(number), int(start)))
            watched[mark] = WatchedCommand(int(pid), tuple(processes))
        case ["-", mark]:
            watched.pop(mark, None)
        case _:
            return


def end(watched: dict[str, WatchedCommand]) -> set[int]:
    """End all processes by SIGTERM, then SIGKILL until nothing is left; returns those that it ended.

    They are found by the command's session, or by the mark in their environment (on Linux; on other
    systems only by the process group).
    """
    seen = set[int]()
    asked = _signalled(watched, signal.SIGTERM, seen)
    deadline = time.monotonic() + TERM_GRACE_SECONDS
    while time.monotonic() < deadline and any(any_left(leader, pids) for leader, pids in asked):
        time.sleep(_POLL)
    deadline = time.monotonic() + KILL_SECONDS
    looks = 0
    # Nothing twice: a process that is just starting another program is not recognised for a moment.
    while watched and time.monotonic() < deadline and looks < 2:
        looks += 1
        if any(any_left(leader, pids) for leader, pids in _found(watched)):
            looks = 0
            _signalled(watched, signal.SIGKILL, seen)
        time.sleep(_POLL)
    return seen


def _found(watched: dict[str, WatchedCommand]) -> Iterator[tuple[int, list[int]]]:
    """Yield each command's leader, whose group gets the signal (0 for none), and its processes."""
    for mark, command in watched.items():
        if command.left is None:
            yield command.leader, members(command.leader or -1, mark)
        else:
            yield 0 if PROC.is_dir() else command.leader, left_over(mark, command.left)


def _signalled(
    watched: dict[str, WatchedCommand], number: signal.Signals, seen: set[int]
) -> list[tuple[int, list[int]]]:
    """Send a signal to all processes, add them to ``seen``, and return them as `_found` does."""
    found = list(_found(watched))
    for leader, pids in found:
        signal_each(number, pids, leader or None)
        seen.update(pids)
    return found


if __name__ == "__main__":
    main()
