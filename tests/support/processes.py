"""Waiting for processes, and looking after the ones that a test started."""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import psutil

Result = TypeVar("Result")

STEP = 0.02
PATIENCE = 60.0


async def eventually(condition: Callable[[], object], what: str) -> None:
    """Wait until a condition holds; fail when it does not within a bounded time."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(STEP)


async def limited(
    run: Callable[[float], Awaitable[Result]], reached: Callable[[Result], object]
) -> tuple[float, Result]:
    """Run something with a time limit, a longer one each time until it got as far as it has to.

    Returns the last limit, in seconds, and what ``run`` returned for it.
    """
    for seconds in (0.3, 3.0, 30.0):
        result = await run(seconds)
        if reached(result):
            return seconds, result
    raise AssertionError("it does not get there in half a minute")


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not, and a thread that was given its number is none."""
    try:
        return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pids_in(path: Path) -> list[int]:
    """Return the process ids that commands wrote to a file."""
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def kill_all(path: Path) -> None:
    """End what is left of the processes named in a file."""
    for pid in pids_in(path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def git(place: Path, *arguments: str) -> str:
    """Run git as somebody without settings does, and return what it says."""
    identity = (
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "maintenance.auto=false",  # works on in the background, and leaves its lock in pictures of the tree
    )
    done = subprocess.run(
        ["git", *identity, "-c", "protocol.file.allow=always", *arguments],
        cwd=place, check=True, capture_output=True, text=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip
    return done.stdout
