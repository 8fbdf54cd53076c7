"""What nothing can be faster than on this machine, measured in the same run: other people's parts, doing only that."""

import sqlite3
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.support.terminal import Terminal

EMPTY_APP = Path(__file__).with_name("empty_app.py")
KEYS = 25

FIRST_TOKEN = """
import asyncio, sys, time, httpx

async def main():
    async with httpx.AsyncClient(timeout=60) as client:
        for _ in range(16):
            start = time.perf_counter()
            body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]}
            async with client.stream("POST", sys.argv[1] + "/chat/completions", json=body) as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("data:"):
                        print(time.perf_counter() - start)
                        break

asyncio.run(main())
"""


def empty_app(box_env: dict[str, str], cwd: Path, size: tuple[int, int]) -> Terminal:
    """Start an empty Textual app."""
    return Terminal([sys.executable, EMPTY_APP], size=size, env=box_env, cwd=cwd, echo=False)


@cache
def key_shown() -> float:
    """Return the seconds until an empty Textual app shows a key, the median."""
    with empty_app({}, Path.cwd(), (120, 40)) as terminal:
        terminal.wait_for("ready")
        terminal.wait_quiet(0.3)
        seconds = []
        for number in range(KEYS):
            letter, seen, start = chr(0x100 + number), len(terminal.raw), time.perf_counter()
            terminal.type(letter)
            terminal.wait_until(lambda: terminal.raw.find(letter.encode(), seen) >= 0, letter)  # noqa: B023 - awaited here
            seconds.append(time.perf_counter() - start)
            terminal.pump(0.03)
        return median(seconds)


@cache
def first_token(url: str) -> float:
    """Return the seconds from a request by plain httpx until the first event of its answer, the median."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_TOKEN, url],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return median(map(float, done.stdout.split()))


@cache
def commit() -> float:
    """Return the seconds of a commit of one row to a plain SQLite file in WAL mode, the median."""
    with TemporaryDirectory() as directory:
        connection = sqlite3.connect(f"{directory}/plain.db", isolation_level=None)
        connection.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE t (x TEXT)"
        )
        seconds = []
        for _ in range(50):
            start = time.perf_counter()
            connection.execute("INSERT INTO t VALUES (?)", ("x" * 500,))
            seconds.append(time.perf_counter() - start)
        connection.close()
        return median(seconds)
