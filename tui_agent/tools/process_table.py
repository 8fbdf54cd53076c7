"""Which processes belong to a command, read from ``/proc`` where there is one, and signals to them.

Imports little: the watcher must be up in a moment.
"""

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

MARK = "TUI_AGENT_CALL"
"""Environment variable that tells which call a process belongs to; children inherit it."""

PROC = Path("/proc")


def members(leader: int, mark: str) -> list[int]:
    """Return the living processes of a call, as far as they can be told: of its session, or with its mark."""
    return [pid for pid in _processes() if _alive(pid, leader) or _marked(pid, mark)]


def marked_in_session(leader: int, mark: str) -> list[int]:
    """Return the living processes of a session that carry a mark: certainly those, even if the number is used again."""
    return [pid for pid in _processes() if _alive(pid, leader) and _marked(pid, mark)]


def in_session(leader: int) -> list[int]:
    """Return the living processes of a session, its leader excluded."""
    return [pid for pid in _processes() if pid != leader and _alive(pid, leader)]


def any_left(leader: int, found: Iterable[int]) -> bool:
    """Whether one still runs; zombies that nobody has collected do not count where they can be told."""
    if PROC.is_dir():
        return any(_status(pid) for pid in found)
    return _group_alive(leader)


def signal_all(leader: int, number: signal.Signals, others: Iterable[int]) -> None:
    """Send a signal to a process group and to processes; those that are gone are passed over."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    signal_each(number, others)


def signal_each(number: signal.Signals, pids: Iterable[int]) -> None:
    """Send a signal to processes; those that are gone are passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


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


def _status(pid: int) -> list[bytes]:
    """Return state, parent, group and session of a process; nothing for one that is gone or a zombie."""
    # What comes after the name, which may hold anything.
    fields = _read(pid, "stat").rpartition(b")")[2].split()[:4]
    return fields if len(fields) == 4 and fields[0] not in {b"Z", b"X"} else []


def _alive(pid: int, session: int) -> bool:
    status = _status(pid)
    return bool(status) and int(status[3]) == session


def _marked(pid: int, mark: str) -> bool:
    return f"{MARK}={mark}".encode() in _read(pid, "environ").split(b"\0")


def _group_alive(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
