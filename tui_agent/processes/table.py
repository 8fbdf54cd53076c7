"""Which processes belong to a command, read from ``/proc`` where there is one, and signals to them.

Imports little: the watcher must be up in a moment.
"""

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from tui_agent.processes.environment import MARK

PROC = Path("/proc")


def members(leader: int, mark: str) -> list[int]:
    """Return the living processes of a call, as far as known: of its session, or with its mark."""
    return [pid for pid in _processes() if session_of(pid) == leader or mark_of(pid) == mark]


def left_over(mark: str, known: Iterable[tuple[int, int]]) -> list[int]:
    """Return the processes a command left, by mark or by number and start, and all below them.

    A number that is used again is another process's: it was started at another time.
    """
    found = [pid for pid in _processes() if mark_of(pid) == mark and _status(pid)]
    for pid, start in known:
        if start and start_of(pid) == start and _status(pid):
            found.append(pid)
    return list(dict.fromkeys([*found, *descendants(found)]))


def children_of(pid: int) -> list[int]:
    """Return the children of a process, those that have ended and were not waited for included."""
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
    """Return when a process was started, in ticks of the system's clock; 0 when it is gone."""
    fields = _fields(pid)
    if len(fields) > 19:
        return int(fields[19])
    return 0


def session_of(pid: int) -> int:
    """Return the session of a living process, 0 when it is gone."""
    status = _status(pid)
    if status:
        return int(status[3])
    return 0


def mark_of(pid: int) -> str | None:
    """Return the mark a process was started with, None where it has none; "" where nobody may look."""
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
    """Return what a process does, by the letter of proc(5): R, S, D, T, t, Z, …; "" for one that is gone."""
    fields = _fields(pid)
    if fields:
        return fields[0].decode("ascii", "replace")
    return ""


def zombies_among(pids: Iterable[int]) -> list[int]:
    """Return those that have ended and nobody has waited for."""
    return [pid for pid in pids if _fields(pid)[:1] == [b"Z"]]


def reap(pids: Iterable[int]) -> None:
    """Reap ended processes that are this program's orphans; others are their parents' to reap."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def any_left(leader: int, found: Iterable[int]) -> bool:
    """Whether a process still runs; zombies don't count where they can be told."""
    if PROC.is_dir():
        return any(_status(pid) for pid in found)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if leader:
            os.killpg(leader, 0)
            return True
    return False


def signal_each(number: signal.Signals, pids: Iterable[int], group: int | None = None) -> None:
    """Send a signal to processes, and to a group of them; those that are gone are passed over."""
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
    """Return state, parent, group and session of a process; nothing for one that is gone or a zombie."""
    fields = _fields(pid)[:4]
    if len(fields) == 4 and fields[0] not in {b"Z", b"X"}:
        return fields
    return []
