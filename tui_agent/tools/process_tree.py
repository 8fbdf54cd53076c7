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
    _signal(leader, signal.SIGTERM, await asyncio.to_thread(members, leader, mark))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GRACE
    while loop.time() < deadline and _group_alive(leader):  # noqa: ASYNC110 - nothing tells of others' children
        await asyncio.sleep(_POLL)
    for _ in range(_ROUNDS):
        left = await asyncio.to_thread(members, leader, mark)
        if not left and not _group_alive(leader):
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


def _alive(pid: int, session: int) -> bool:
    """Whether the process is of the session and not a zombie."""
    try:
        # After the name, which may hold anything: state, parent, group, session.
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return len(fields) > 3 and fields[0] not in {b"Z", b"X"} and int(fields[3]) == session


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
