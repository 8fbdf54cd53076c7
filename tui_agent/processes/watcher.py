"""Ends all processes of commands, when the program asks for it or after the program was killed.

Run as a separate process, this module is the watcher. The program writes to its standard input
which commands are running. When the program ends, in whatever way, that input ends as well, and the
watcher ends the commands that are still running.
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
"""Maximum seconds to wait until killed processes have ended, which takes long on a busy machine."""
_POLL = 0.02


@frozen
class WatchedCommand:
    """A command whose processes have to be ended, by the program itself or by the watcher.

    ``leader`` is the id of its own process, which leads its session; 0 before the start. ``left``
    is None while the command runs, later the processes that it left running, with their start
    times.
    """

    leader: int
    left: tuple[tuple[int, int], ...] | None = None


def main() -> None:
    """Read lines for `take` until the input ends, then end the commands that are still running."""
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[str, WatchedCommand] = {}
    for line in sys.stdin.buffer:
        take(watched, line.decode("ascii", "replace").split())
    end(watched)


def take(watched: dict[str, WatchedCommand], words: list[str]) -> None:
    """Apply one line of input, split into words, to the watched commands, stored by mark.

    ``+ mark 0``: the command is about to start; ``+ mark pid``: it runs; ``& mark pid pid:start
    ...``: it has ended and left these processes running; ``- mark``: it has ended with all of them.
    Other lines are ignored.
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
    """End all processes of the commands: by SIGTERM, then by SIGKILL until none is left.

    Returns the ids of the processes that were sent a signal. The processes are found by the
    command's session and by the mark in their environment; without ``/proc``, the signals are sent
    only to the process group. Blocks for a few seconds at most.
    """
    seen = set[int]()
    asked = _signalled(watched, signal.SIGTERM, seen)
    deadline = time.monotonic() + TERM_GRACE_SECONDS
    while time.monotonic() < deadline and any(any_left(leader, pids) for leader, pids in asked):
        time.sleep(_POLL)
    deadline = time.monotonic() + KILL_SECONDS
    looks = 0
    # Repeat until nothing is found twice in a row, because a process that is starting another program
    # is briefly not recognised.
    while watched and time.monotonic() < deadline and looks < 2:
        looks += 1
        if any(any_left(leader, pids) for leader, pids in _found(watched)):
            looks = 0
            _signalled(watched, signal.SIGKILL, seen)
        time.sleep(_POLL)
    return seen


def _found(watched: dict[str, WatchedCommand]) -> Iterator[tuple[int, list[int]]]:
    """Yield, for each command, the process group to signal (0 for none) and its process ids."""
    for mark, command in watched.items():
        if command.left is None:
            yield command.leader, members(command.leader or -1, mark)
        else:
            yield 0 if PROC.is_dir() else command.leader, left_over(mark, command.left)


def _signalled(
    watched: dict[str, WatchedCommand], number: signal.Signals, seen: set[int]
) -> list[tuple[int, list[int]]]:
    """Send a signal to all processes of the commands, and return the result of `_found`.

    The ids of these processes are added to ``seen``.
    """
    found = list(_found(watched))
    for leader, pids in found:
        signal_each(number, pids, leader or None)
        seen.update(pids)
    return found


if __name__ == "__main__":
    main()
