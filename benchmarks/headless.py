"""One-shot runs without a screen, against a server that answers at once: the first of a user's, and later ones."""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from benchmarks.program import Sandbox, sandbox
from benchmarks.report import Row, milliseconds

NAME = "headless"
ROUNDS = 5
MODEL = "openai/gpt-4.1-mini"
"""A model the catalog knows, as most are that people use."""
BASE = "import asyncio, httpx, pydantic"
SHARE_OF_BASE = 0.6 / 0.25
"""CPU a run may take where the imports of ``BASE`` take one: 0.6 s where they take 0.25 s."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process took, in seconds."""

    wall: float
    cpu: float
    said: str = ""


def run() -> Iterator[Row]:
    """Measure `-p` beside a bare import of what any such program needs."""
    base = import_cpu()
    with sandbox() as box:
        first = _one_shot(box)
        later = [_one_shot(box) for _ in range(ROUNDS)]
    note = f"`{BASE}`: {base:.0f} ms"
    cpu = _median_cpu(later)
    yield Row(
        NAME,
        "-p, CPU, first run",
        first.cpu * 1000,
        "ms",
        base * SHARE_OF_BASE,
        note,
        first.cpu * 1000 / base,
    )
    yield Row(NAME, "-p, CPU", cpu, "ms", base * SHARE_OF_BASE, note, cpu / base)
    yield Row(NAME, "-p", milliseconds(spent.wall for spent in later), "ms")


@cache
def import_cpu() -> float:
    """Return the milliseconds of CPU that the imports of ``BASE`` take, the median."""
    return _median_cpu([spent([sys.executable, "-c", BASE], {}) for _ in range(ROUNDS)])


def _median_cpu(runs: Iterator[Spent] | list[Spent]) -> float:
    return median(spent.cpu for spent in runs) * 1000


def _one_shot(box: Sandbox) -> Spent:
    command = [
        sys.executable,
        "-m",
        "tui_agent",
        "-p",
        "hello",
        "-m",
        MODEL,
        "--cwd",
        str(box.project),
    ]
    return spent(
        command, {**box.env, "OPENAI_BASE_URL": box.server.openai_url, "OPENAI_API_KEY": "none"}
    )


def spent(command: list[str], env: Mapping[str, str], cwd: Path | None = None) -> Spent:
    """Run a command and return what it and its children took."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command,
        env={"PATH": "/usr/bin:/bin", **env},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(
        wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout
    )
