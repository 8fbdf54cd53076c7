"""The session tree, in a headless app with a real agent on a real store. CPU seconds of this process, threads too."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.strip import Strip

from benchmarks.report import Row, milliseconds
from tests.support.big_session import fill
from tests.support.tree_stage import TreeStage, tree_stage
from tui_agent.session.session import Session
from tui_agent.ui.widgets.tree.session_tree import SessionTree

NAME = "tree"
SIZE = (120, 40)
SIZES = (50_000, 100_000)
QUERIES = ("l", "lo", "log", "logi", "login", "login r", "login re", "redirect", "n412", "zzz")


def run() -> Iterator[Row]:
    """Measure trees of 50,000 and 100,000 entries; takes about a minute, most of it to fill them."""
    for entries in SIZES:
        yield from asyncio.run(_measured(entries))


async def _measured(entries: int) -> list[Row]:
    rows: list[Row] = []
    async with _running(entries) as stage:
        opening = [await _opened(stage) for _ in range(5)]
        first, again = opening[0] * 1000, milliseconds(opening[1:])
        rows.append(
            Row(
                NAME,
                f"open {entries:,} entries",
                first,
                "ms",
                300,
                f"to painted; {again:.0f} ms again",
            )
        )
        await stage.open()
        tree = stage.tree
        moving = [await _painted(stage, lambda: tree.action_move(-1)) for _ in range(31)]
        rows.append(
            Row(
                NAME,
                f"move the cursor, {entries:,} entries",
                milliseconds(moving),
                "ms",
                20,
                "to painted",
            )
        )
        paging = [await _painted(stage, lambda: tree.action_move(0, -1)) for _ in range(11)]
        rows.append(
            Row(NAME, f"page up, {entries:,} entries", milliseconds(paging), "ms", 50, "to painted")
        )
        folding = [await _painted(stage, tree.action_close) for _ in range(5)]
        rows.append(
            Row(
                NAME,
                f"fold or jump, {entries:,} entries",
                milliseconds(folding),
                "ms",
                50,
                "to painted",
            )
        )
        filtering = [await _painted(stage, stage.screen.action_filter) for _ in range(5)]
        rows.append(
            Row(NAME, f"change the filter, {entries:,} entries", milliseconds(filtering), "ms", 300)
        )
        leaving = [await _left(stage) for _ in range(5)]
        rows.append(
            Row(
                NAME,
                f"leave {entries:,} entries",
                milliseconds(leaving),
                "ms",
                100,
                "until the move is made",
            )
        )
        searching = [await _searched(stage, query) for query in QUERIES]
        note = f"slowest {max(searching) * 1000:.0f} ms; key to hits marked"
        rows.append(
            Row(
                NAME,
                f"a key in search, {entries:,} entries",
                milliseconds(searching),
                "ms",
                50,
                note,
            )
        )
    return rows


@asynccontextmanager
async def _running(entries: int) -> AsyncIterator[TreeStage]:
    def plant(session: Session) -> dict[str, int]:
        fill(session, entries, branch_every=5_000, compact_every=2_000)
        return {}

    with tempfile.TemporaryDirectory() as directory:
        stage = tree_stage(Path(directory), planting=plant)
        async with stage.run(SIZE):
            yield stage


async def _opened(stage: TreeStage) -> float:
    """Return the seconds from the command until the tree is painted; then close it."""
    painted = asyncio.Event()
    ended = start = time.process_time()
    draw = SessionTree.render_line

    def render_line(tree: SessionTree, y: int) -> Strip:
        nonlocal ended
        strip = draw(tree, y)
        if tree.outline.total and y == tree.size.height - 1 and not painted.is_set():
            ended = time.process_time()
            painted.set()
        return strip

    SessionTree.render_line = render_line  # type: ignore[method-assign, assignment]
    try:
        await stage.stage.main.controller.run("tree", "")
        await asyncio.wait_for(painted.wait(), 60)
    finally:
        SessionTree.render_line = draw  # type: ignore[method-assign]
    await stage.pilot.pause()
    stage.screen.dismiss()
    await stage.pilot.pause()
    return ended - start


async def _painted(stage: TreeStage, action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    await _refreshed(stage)
    return time.process_time() - start


async def _left(stage: TreeStage) -> float:
    """Return the seconds a move to the first message takes, without a summary; then go back."""
    first = next(header.id for header in stage.session.skeleton() if header.kind == "user")
    start = time.process_time()
    await stage.agent.navigator.move(stage.agent.navigator.plan(first, continue_from_here=True))
    await _refreshed(stage)
    taken = time.process_time() - start
    await stage.agent.navigator.undo()
    # Both moves are shown together a little later; what is measured next begins after that.
    async with asyncio.timeout(60):
        while stage.screen.refreshing.is_waiting:
            await asyncio.sleep(0.01)
    await _refreshed(stage)
    return taken


async def _searched(stage: TreeStage, query: str) -> float:
    """Return the seconds from a changed query until its hits are marked."""
    screen = stage.screen
    if not screen.entry.display:
        screen.action_search()
        await _refreshed(stage)
    before = screen.session_tree.hits
    start = time.process_time()
    screen.field.value = query
    async with asyncio.timeout(60):
        while screen.session_tree.hits is before:
            await asyncio.sleep(0.002)
    await _refreshed(stage)
    return time.process_time() - start


async def _refreshed(stage: TreeStage) -> None:
    done = asyncio.Event()
    stage.tree.call_after_refresh(done.set)
    await done.wait()
