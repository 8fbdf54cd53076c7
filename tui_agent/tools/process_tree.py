"""Ending a command and everything it started, however that was done."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

MARK = "TUI_AGENT_CALL"
"""Environment variable that tells which call a process belongs to; children inherit it."""

GRACE = 0.3
"""Seconds between the request to end and the end."""

_ROUNDS = 20
_POLL = 0.01
_PROC = Path("/proc")


async def end_tree(leader: int, mark: str) -> None:
    """End a session of processes: ask, wait ``GRACE`` seconds, then kill, until none is left.

    Finds members by session, and those that left the session by the mark in their environment (Linux only;
    elsewhere the process group has to do).

    Args:
        leader: the process that was started in its own session.
        mark: the value of ``MARK`` it was started with.
    """
    known = await asyncio.to_thread(members, leader, mark)
    _signal(leader, signal.SIGTERM, known)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GRACE
    while loop.time() < deadline and _any_left(leader, known):  # noqa: ASYNC110 - nothing tells of others' children
        await asyncio.sleep(_POLL)
    for _ in range(_ROUNDS):
        left = await asyncio.to_thread(members, leader, mark)
        if not _any_left(leader, left):
            return
        _signal(leader, signal.SIGKILL, left)
        await asyncio.sleep(_POLL)


def members(leader: int, mark: str) -> list[int]:
    """Return the living processes of a call, as far as they can be told."""
    found = []
    wanted = f"{MARK}={mark}".encode()
    for pid in _processes():
        try:
            if _alive(pid, leader) or wanted in _environment(pid):
                found.append(pid)
        except OSError:
            continue
    return found


def in_session(leader: int) -> list[int]:
    """Return the living processes of a session, its leader excluded."""
    return [pid for pid in _processes() if pid != leader and _alive(pid, leader)]


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def _status(pid: int) -> list[bytes]:
    """Return state, parent, group and session of a process; nothing for one that is gone or a zombie."""
    try:
        # What comes after the name, which may hold anything.
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[:4]
    except OSError:
        return []
    return fields if len(fields) == 4 and fields[0] not in {b"Z", b"X"} else []


def _alive(pid: int, session: int) -> bool:
    status = _status(pid)
    return bool(status) and int(status[3]) == session


def _any_left(leader: int, found: list[int]) -> bool:
    """Whether one still runs; zombies that nobody has collected do not count where they can be told."""
    if _PROC.is_dir():
        return any(_status(pid) for pid in found)
    return _group_alive(leader)


def _environment(pid: int) -> list[bytes]:
    return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")


def _group_alive(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal(leader: int, number: signal.Signals, others: Iterable[int]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    for pid in others:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
