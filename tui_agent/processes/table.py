"""Finds the processes that belong to a command, in ``/proc`` where there is one, and signals them.

Imports little, because the watcher must start quickly.
"""

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from tui_agent.processes.environment import MARK

PROC = Path("/proc")


def members(leader: int, mark: str) -> list[int]:
    """Return the living processes of a call that can be found: in its session, or with its mark."""
    return [pid for pid in _processes() if session_of(pid) == leader or mark_of(pid) == mark]


def left_over(mark: str, known: Iterable[tuple[int, int]]) -> list[int]:
    """Return the processes that a command left running, and all their descendants.

    They are found by their mark, or by process id and start time, since an id may be used again.
    """
    found = [pid for pid in _processes() if mark_of(pid) == mark and _status(pid)]
    for pid, start in known:
        if start and start_of(pid) == start and _status(pid):
            found.append(pid)
    return list(dict.fromkeys([*found, *descendants(found)]))


def children_of(pid: int) -> list[int]:
    """Return the children of a process, including zombies."""
    found = list[int]()
    tasks = PROC / str(pid) / "task"
    try:
        for task in os.listdir(tasks):  # noqa: PTH208 - paths are slow to make
            found += map(int, (tasks / task / "children").read_bytes().split())
    except OSError:
        # Not every kernel has these lists, and a thread may end meanwhile.
        parent = [str(pid).encode()]
        return [other for other in _processes() if _fields(other)[1:2] == parent]
    return found


def descendants(pids: Iterable[int]) -> list[int]:
    found: dict[int, None] = {}
    pending = list(pids)
    while pending:
        for child in children_of(pending.pop()):
            if child not in found:
                found[child] = None
                pending.append(child)
    return list(found)


def start_of(pid: int) -> int:
    """Return the start time of a process in clock ticks since boot; 0 if it is gone."""
    fields = _fields(pid)
    if len(fields) > 19:
        return int(fields[19])
    return 0


def session_of(pid: int) -> int:
    """Return the session id of a living process; 0 if it is gone."""
    status = _status(pid)
    if status:
        return int(status[3])
    return 0


def mark_of(pid: int) -> str | None:
    """Return the mark in a process's environment; None if it has none, "" if it can't be read."""
    try:
        variables = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    for row in variables:
        name, _, value = row.partition(b"=")
        if name == MARK.encode():
            return value.decode("ascii", "replace")
    return None


def command_line(pid: int) -> str:
    return " ".join(_read(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace").split())


def state_of(pid: int) -> str:
    """Return a process's state as the letter of proc(5): R, S, D, T, t, Z, …; "" if it is gone."""
    fields = _fields(pid)
    if fields:
        return fields[0].decode("ascii", "replace")
    return ""


def zombies_among(pids: Iterable[int]) -> list[int]:
    """Return the processes that are zombies."""
    return [pid for pid in pids if _fields(pid)[:1] == [b"Z"]]


def reap(pids: Iterable[int]) -> None:
    """Reap the zombies that are children of this program; others are left to their parents."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def any_left(leader: int, found: Iterable[int]) -> bool:
    """Return True if any of the processes still runs (zombies excluded where detectable)."""
    if PROC.is_dir():
        return any(_status(pid) for pid in found)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if leader:
            os.killpg(leader, 0)
            return True
    return False


def signal_each(number: signal.Signals, pids: Iterable[int], group: int | None = None) -> None:
    """Send a signal to processes, and to a group if given; skips those that are gone."""
    if group is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - paths are slow to make
    except OSError:
        return []


def _read(pid: int, name: str) -> bytes:
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def _fields(pid: int) -> list[bytes]:
    # The fields after the name, which may hold anything.
    return _read(pid, "stat").rpartition(b")")[2].split()


def _status(pid: int) -> list[bytes]:
    """Return state, parent, group and session of a process; empty if it is gone or a zombie."""
    fields = _fields(pid)[:4]
    if len(fields) == 4 and fields[0] not in {b"Z", b"X"}:
        return fields
    return []
