"""Ending a command and everything it started, however that was done."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable

from tui_agent.processes.table import any_left, members, signal_all

TERM_GRACE_SECONDS = 0.3
"""Seconds between the request to end and the end."""

_KILL_SECONDS = 3.0
"""Seconds in which what was killed has to be gone; a busy machine takes its time with it."""
_POLL = 0.01


async def end_tree(leader: int, mark: str) -> None:
    """End a session of processes: ask, wait ``TERM_GRACE_SECONDS`` seconds, then kill, until none is left.

    Finds members by session, and those that left the session by the mark in their environment (Linux only;
    elsewhere the process group has to do).

    Args:
        leader: the process that was started in its own session.
        mark: the value of ``MARK`` it was started with.
    """
    known = await asyncio.to_thread(members, leader, mark)
    signal_all(leader, signal.SIGTERM, known)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + TERM_GRACE_SECONDS
    while loop.time() < deadline and any_left(leader, known):  # noqa: ASYNC110 - nothing tells of others' children
        await asyncio.sleep(_POLL)
    deadline = loop.time() + _KILL_SECONDS
    while loop.time() < deadline:
        left = await asyncio.to_thread(members, leader, mark)
        if not any_left(leader, left):
            _reap([*known, *left], leader)
            return
        signal_all(leader, signal.SIGKILL, left)
        await asyncio.sleep(_POLL)


def _reap(pids: Iterable[int], leader: int) -> None:
    """Wait for the orphans among them that this program adopted; the leader is waited for by who started it."""
    for pid in set(pids) - {leader}:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
