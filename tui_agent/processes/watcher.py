"""A process of its own that ends commands when the program that started them is gone, however that happened.

The program holds the writing end of the watcher's standard input and tells on it what runs. A killed program says
nothing any more, but the end of that input can't be missed.
"""

import os
import signal
import sys
import time

from tui_agent.lazy import dataclass
from tui_agent.processes.table import PROC, any_left, left_over, members, signal_each

TERM_GRACE_SECONDS = 0.3
"""Seconds between the request to end and the end."""

_ROUNDS = 50
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class WatchedCommand:
    """A command: the process that leads its session, 0 while it starts.

    Of one that has ended ``left`` are the processes it left behind, each with its start; None while it runs.
    """

    leader: int
    left: tuple[tuple[int, int], ...] | None = None


def main() -> None:
    """Take lines until the end of input, then end what is still told to run."""
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[str, WatchedCommand] = {}
    for line in sys.stdin.buffer:
        take(watched, line.decode("ascii", "replace").split())
    end(watched)


def take(watched: dict[str, WatchedCommand], words: list[str]) -> None:
    """Take a line.

    ``+ mark 0``: about to start; ``+ mark pid``: runs; ``& mark pid pid:start ...``: ended and left these behind;
    ``- mark``: over.
    """
    match words:
        case ["+", mark, pid]:
            watched[mark] = WatchedCommand(int(pid))
        case ["&", mark, pid, *left]:
            pairs = (item.partition(":") for item in left)
            watched[mark] = WatchedCommand(int(pid), tuple((int(number), int(start)) for number, _, start in pairs))
        case ["-", mark]:
            watched.pop(mark, None)
        case _:
            return


def end(watched: dict[str, WatchedCommand]) -> None:
    """End everything: ask, wait, kill until nothing is left."""
    _signal(watched, signal.SIGTERM)
    deadline = time.monotonic() + TERM_GRACE_SECONDS
    while time.monotonic() < deadline and _left(watched):
        time.sleep(_POLL)
    for _ in range(_ROUNDS):
        if not _left(watched):
            return
        _signal(watched, signal.SIGKILL)
        time.sleep(_POLL)


def _members(mark: str, command: WatchedCommand) -> list[int]:
    return members(command.leader or -1, mark) if command.left is None else left_over(mark, command.left)


def _left(watched: dict[str, WatchedCommand]) -> list[int]:
    if not PROC.is_dir():
        return [command.leader for command in watched.values() if command.leader and any_left(command.leader, ())]
    return [pid for mark, command in watched.items() for pid in _members(mark, command)]


def _signal(watched: dict[str, WatchedCommand], number: signal.Signals) -> None:
    for mark, command in watched.items():
        leads = command.leader and (command.left is None or not PROC.is_dir())
        signal_each(number, _members(mark, command), command.leader if leads else None)


if __name__ == "__main__":
    main()
