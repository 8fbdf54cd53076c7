"""Finds processes that a command leaves running, watches them, and ends them when the program ends.

On Linux, this program adopts the orphans among its descendants: however a process forks, or changes
its session or environment, it becomes a child of this program once its parents have ended. On other
systems, only the command's process group is known.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from tui_agent.processes.table import (
    PROC,
    any_left,
    children_of,
    command_line,
    mark_of,
    reap,
    session_of,
    start_of,
    zombies_among,
)
from tui_agent.processes.watcher import WatchedCommand, end

_SET_CHILD_SUBREAPER = 36
_FORGOTTEN = 2.0
"""If a child has ended and the code that started it has not reaped it for this many seconds, it is
reaped here."""

_RECHECK_SECONDS = 0.05
"""Seconds after which a process without a mark is checked again. By then a starting process has its
mark, and an ending one has ended."""

_POLL = 1.0
"""Seconds between two checks on systems that don't report the end of a process."""

_NAME_CHARS = 60
_ROUNDS = 5
_ended: dict[int, float] = {}
"""Ids of ended children not yet reaped, and when (`time.monotonic`) each was first seen."""

_claimed: set[int] = set()
"""Ids of processes that were already attributed to a command. A process without a mark is
attributed to the first command that ends after its start."""


@lru_cache(maxsize=1)
def adopt_orphans() -> bool:
    """Make this program adopt the orphaned processes among its descendants.

    Returns False if the system can't do that. Only the first call has an effect.
    """
    if sys.platform != "linux":
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


class Leftovers:
    """The processes that one command left running."""

    def __init__(self, leader: int, mark: str, pids: Sequence[int]) -> None:
        """Create the object for the processes ``pids`` found so far; more may be found later.

        ``leader`` is the id of the command's own process, which led their session; ``mark`` is the
        command's id in their environment.
        """
        self._leader = leader
        self._mark = mark
        self.known = {pid: start_of(pid) for pid in pids}
        """Ids of the processes, each with its start time (see `start_of`). Ended processes are
        removed."""

    def names(self, most: int = 5) -> str:
        names: list[str] = []
        for pid in islice(self.known, most):
            name = command_line(pid)[:_NAME_CHARS] or "process"
            names.append(f"{name} ({pid})")
        text = ", ".join(names)
        if len(self.known) > most:
            return f"{text} and {len(self.known) - most} more"
        return text

    async def wait(self) -> None:
        loop = asyncio.get_running_loop()
        while living := self._living():
            # If the system reports the end of a process, no polling is needed.
            ended = asyncio.Event()
            opened = list[int]()
            try:
                for pid in living:
                    opened.append(os.pidfd_open(pid))  # type: ignore[attr-defined, unused-ignore]
                    loop.add_reader(opened[-1], ended.set)
                await ended.wait()
            except ProcessLookupError:
                continue
            except (OSError, AttributeError):
                await asyncio.sleep(_POLL)
            finally:
                for descriptor in opened:
                    loop.remove_reader(descriptor)
                    os.close(descriptor)

    async def end(self) -> None:
        for _ in range(_ROUNDS):
            if not self._living():
                return
            await asyncio.to_thread(
                end, {self._mark: WatchedCommand(self._leader, tuple(self.known.items()))}
            )

    def _living(self) -> list[int]:
        if not PROC.is_dir():
            if any_left(self._leader, ()):
                return [self._leader]
            return []
        for pid in _look(self._leader, self._mark, children_of(os.getpid()))[0]:
            self.known.setdefault(pid, start_of(pid))
        ended: list[int] = []
        for pid, start in self.known.items():
            if start_of(pid) != start or zombies_among([pid]):
                ended.append(pid)
        for pid in ended:
            del self.known[pid]
        reap(ended)
        return list(self.known)


async def left_behind(leader: int, mark: str) -> Leftovers:
    """Return the processes that a command left running, possibly none.

    Call it after the command's own process, ``leader``, has ended. ``mark`` is the command's id.
    Takes about a millisecond if there are none.
    """
    if not PROC.is_dir():
        return Leftovers(leader, mark, [leader] if any_left(leader, ()) else [])
    found = list[int]()
    strangers = list[int]()
    children = list[int]()
    for _ in range(_ROUNDS):
        # A listed process may have ended and left another one, so repeat until nothing changes.
        before = children
        children = children_of(os.getpid())
        if children == before:
            break
        found, strangers = _look(leader, mark, children)
    if strangers:
        await asyncio.sleep(_RECHECK_SECONDS)
        found, still = _look(leader, mark, children_of(os.getpid()))
        for pid in still:
            if pid in strangers and pid not in _claimed and mark_of(pid) is None:
                found.append(pid)
    _claimed.update(found)
    return Leftovers(leader, mark, found)


def _look(leader: int, mark: str, children: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return those ``children`` of this program that belong to a command, and those that may.

    A child may belong to it if it has no mark and isn't in this program's session. Also reaps
    children that ended some time ago.
    """
    # Adopted orphans are reaped here; other children are reaped by the code that started them.
    now = time.monotonic()
    since = {pid: _ended.get(pid, now) for pid in zombies_among(children)}
    _ended.clear()
    _ended.update(since)
    reap(pid for pid, seen in since.items() if now - seen > _FORGOTTEN)
    _claimed.intersection_update(children)
    own = os.getsid(0)
    found = list[int]()
    strangers = list[int]()
    for pid in children:
        # A process that is just starting another program, or ending, shows no mark for a moment, so
        # the mark is read only once.
        its_mark = mark_of(pid)
        session = session_of(pid)
        if pid != leader and (its_mark == mark or session == leader):
            found.append(pid)
        elif not its_mark and session not in {own, 0}:
            strangers.append(pid)
    return found, strangers
