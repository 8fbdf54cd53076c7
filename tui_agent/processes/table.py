"""Finds the processes that belong to a command, and sends them signals.

Reads ``/proc``; on systems without it, only the process group is known. Imports little, because the
watcher must start quickly.
"""

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from tui_agent.processes.environment import MARK

PROC = Path("/proc")


def members(leader: int, mark: str) -> list[int]:
    """Return the ids of living processes that are in the session ``leader`` or have the mark."""
    return [pid for pid in _processes() if session_of(pid) == leader or mark_of(pid) == mark]


def left_over(mark: str, known: Iterable[tuple[int, int]]) -> list[int]:
    """Return the ids of the processes that a command left running, and of all their descendants.

    They are found by the command's mark, or in ``known`` by id and start time, because an id may
    have been reused.
    """
    found = [pid for pid in _processes() if mark_of(pid) == mark and _status(pid)]
    for pid, start in known:
        if start and start_of(pid) == start and _status(pid):
            found.append(pid)
    return list(dict.fromkeys([*found, *descendants(found)]))


def children_of(pid: int) -> list[int]:
    """Return the ids of the children of a process, including zombies."""
    found = list[int]()
    tasks = PROC / str(pid) / "task"
    try:
        for task in os.listdir(tasks):  # noqa: PTH208 - paths are slow to make
            found += map(int, (tasks / task / "children").read_bytes().split())
    except OSError:
        # Not every kernel provides these lists of children, and a thread may end meanwhile.
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
    """Return the start time of a process in clock ticks since boot; 0 if it doesn't exist."""
    fields = _fields(pid)
    if len(fields) > 19:
        return int(fields[19])
    return 0


def session_of(pid: int) -> int:
    """Return the session id of a process; 0 if the process has ended.

    A zombie counts as ended.
    """
    status = _status(pid)
    if status:
        return int(status[3])
    return 0


def mark_of(pid: int) -> str | None:
    """Return the value of ``MARK`` in a process's environment.

    Returns None if the environment has no mark, "" if it can't be read.
    """
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
    """Return the letter for a process's state, as in proc(5): R, S, D, T, …; "" if it has ended."""
    fields = _fields(pid)
    if fields:
        return fields[0].decode("ascii", "replace")
    return ""


def zombies_among(pids: Iterable[int]) -> list[int]:
    """Return those of the processes that are zombies (ended but not reaped)."""
    return [pid for pid in pids if _fields(pid)[:1] == [b"Z"]]


def reap(pids: Iterable[int]) -> None:
    """Reap those of the processes that are ended children of this program."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def any_left(leader: int, found: Iterable[int]) -> bool:
    """Return True if any of the processes in ``found`` is still running. Zombies don't count.

    Without ``/proc``, return True if the process group ``leader`` still exists.
    """
    if PROC.is_dir():
        return any(_status(pid) for pid in found)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if leader:
            os.killpg(leader, 0)
            return True
    return False


def signal_each(number: signal.Signals, pids: Iterable[int], group: int | None = None) -> None:
    """Send a signal to a process group, if one is given, and then to each of the processes.

    Processes that have ended or belong to others are skipped.
    """
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
    # Split after the name in brackets, which may contain spaces and brackets.
    return _read(pid, "stat").rpartition(b")")[2].split()


def _status(pid: int) -> list[bytes]:
    """Return state, parent, group and session of a process; [] if it has ended or is a zombie."""
    fields = _fields(pid)[:4]
    if len(fields) == 4 and fields[0] not in {b"Z", b"X"}:
        return fields
    return []
