"""Watching commands for what they change in a project of 10,000 files, and taking it back."""

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from benchmarks.report import Row, milliseconds
from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.checkpoints.manifest import manifest_of
from tui_agent.agent.checkpoints.recorder import Recorder, SnapshotStore
from tui_agent.session.store import Store

NAME = "files"
FILES = 10_000
CHANGED = 100


def run() -> Iterator[Row]:
    """Measure with git and without; takes about half a minute, most of it to write the files."""
    for repository in (True, False):
        with tempfile.TemporaryDirectory() as directory:
            yield from asyncio.run(_measured(Path(directory), repository=repository))


async def _measured(directory: Path, *, repository: bool) -> list[Row]:
    root = directory / "project"
    await asyncio.to_thread(_fill, root, repository)
    where = "git" if repository else "no git"
    rows: list[Row] = []
    store = Store(directory / "images.db")
    recorder = Recorder(root, SnapshotStore(store.put_blob, store.blob), _refuse)
    rows.append(
        Row(
            NAME,
            f"get ready, {where}",
            await _timed(recorder.warm) * 1000,
            "ms",
            2_000,
            "beside the model",
        )
    )
    listed = [await _timed(lambda: manifest_of(root)) for _ in range(9)]
    rows.append(Row(NAME, f"list {FILES:,} files, {where}", milliseconds(listed), "ms", 150))

    async def nothing() -> None:
        async with recorder.around(None):
            pass

    stalls = _Stalls()
    async with asyncio.TaskGroup() as group:
        watch = group.create_task(stalls.watch())
        around = [await _timed(nothing) for _ in range(9)]
        watch.cancel()
    note = f"before and after; the loop stood still {max(stalls.seen) * 1000:.0f} ms at most"
    rows.append(Row(NAME, f"around a command, {where}", milliseconds(around), "ms", 300, note))
    await recorder.aclose()
    store.close()
    rows += await _restored(directory, where)
    return rows


async def _restored(directory: Path, where: str) -> list[Row]:
    """Measure a command that changes files, and taking it back."""
    harness = make_agent(directory, ScriptedClient([Reply("Done.")]), keeps_files=True)
    await harness.say("hello")
    start = harness.session.leaf
    size = _size(harness)
    names = " ".join(f"d{number}/f{number}.txt" for number in range(CHANGED))
    seconds = await _timed(
        lambda: harness.agent.run_shell(f"for f in {names}; do echo more >> $f; done")
    )
    bytes_each = (_size(harness) - size) / CHANGED
    plan = await harness.agent.files.plan(start)
    assert len(plan.steps) == CHANGED, plan
    planned = await _timed(lambda: harness.agent.files.plan(start))
    restored = await _timed(lambda: harness.agent.files.restore(plan))
    await harness.agent.aclose()
    harness.store.close()
    return [
        Row(
            NAME,
            f"a command that changes {CHANGED} files, {where}",
            seconds * 1000,
            "ms",
            1_500,
            "all of it",
        ),
        Row(
            NAME,
            f"disk per changed file, {where}",
            bytes_each / 1024,
            "KiB",
            16,
            "files of 2 KiB, before and after",
        ),
        Row(NAME, f"plan to restore {CHANGED} files, {where}", planned * 1000, "ms", 200),
        Row(NAME, f"restore {CHANGED} files, {where}", restored * 1000, "ms", 1_000),
    ]


class _Stalls:
    """How long the event loop did not turn."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    async def watch(self) -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            self.seen.append(time.perf_counter() - start - 0.001)


async def _timed(act: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await act()
    return time.perf_counter() - start


def _fill(root: Path, repository: bool) -> None:  # noqa: FBT001 - for a thread
    for number in range(FILES):
        path = root / f"d{number % 500}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"{number}\n".encode() + os.urandom(1_000).hex().encode() + b"\n")
    (root / ".gitignore").write_text("build/\n*.pyc\n")
    if repository:
        known = ["-c", "user.name=n", "-c", "user.email=e@x"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
            subprocess.run(["git", *known, *words], cwd=root, check=True)


def _size(harness: Harness) -> int:
    with harness.store.reader() as connection:
        size: int = connection.execute(
            "SELECT coalesce(sum(length(content)), 0) FROM blobs"
        ).fetchone()[0]
    return size


def _refuse(sentence: str) -> None:
    raise AssertionError(sentence)
