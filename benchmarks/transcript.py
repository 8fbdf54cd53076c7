"""The conversation pane alone, in a headless app: long sessions, long blocks, streams. CPU seconds of this process."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial

import psutil
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from benchmarks.report import Row, milliseconds
from tests.ui.transcript.samples import ANSWER, GeneratedSource
from tui_agent.agent.events import AnswerDelta, EntryAppended
from tui_agent.context.context_status_cache import Standings
from tui_agent.resources import style_path
from tui_agent.session.entries import AssistantEntry, TextPart
from tui_agent.ui.contrast import readable_variables
from tui_agent.ui.widgets.transcript.source import EntrySource
from tui_agent.ui.widgets.transcript.transcript import Transcript

NAME = "transcript"
CHUNKS = 2_000
SIZE = (120, 40)
LONG, LONGEST, RESIZED = 5_000, 100_000, 2_000

PARAGRAPH = (
    "The quick brown fox jumps over the lazy dog, and `code` with **bold** words in it too. " * 930
)
ITEMS = "".join(
    f"- item {number} with *some* text and `code`, long enough to be real\n"
    for number in range(1_000)
)
FENCE = (
    "```python\n"
    + 'def function(argument):  # a line\n    return {"key": [1, 2.5, argument]}\n' * 2_500
    + "```\n"
)
REPLY = ANSWER * 70
"""About 20,000 tokens."""


class Host(App[None]):
    """Nothing but a transcript."""

    CSS_PATH = [style_path("standing.tcss"), style_path("transcript.tcss")]  # noqa: RUF012 - as inherited

    def get_css_variables(self) -> dict[str, str]:
        return readable_variables(super().get_css_variables())

    def compose(self) -> ComposeResult:
        yield Transcript()


def run() -> Iterator[Row]:
    """Measure everything; takes about 40 seconds."""
    yield from asyncio.run(measure())


async def measure() -> list[Row]:
    """Return one row per number; for callers that have a loop already."""
    rows = [*await _sessions(), *await _resizing(), *await _streams()]
    for what, text in (("paragraph", PARAGRAPH), ("list", ITEMS), ("fence", FENCE)):
        rows.append(
            await _rate(f"{what} of {len(text):,} characters in 5 s, 100 chunks/s", text, 5)
        )
    return [*rows, await _rate("20,000 tokens in 10 s, 100 chunks/s", REPLY, 10)]


async def _sessions() -> list[Row]:
    rows: list[Row] = []
    async with _shown(GeneratedSource(LONG)) as (app, pane, _):
        adding = [await _cpu(app, partial(_append, pane, number)) for number in range(9)]
        rows.append(
            Row(NAME, f"append a message, {LONG:,} entries", milliseconds(adding), "ms", 15)
        )
        pane.action_go_to("home")
        await _painted(app)
        paging = [await _cpu(app, lambda: pane.action_move(0, 1)) for _ in range(21)]
        rows.append(Row(NAME, f"page down, {LONG:,} entries", milliseconds(paging), "ms", 10))
        nodes = len(list(pane.walk_children(with_self=True)))
        rows.append(Row(NAME, "DOM nodes", nodes, "nodes", 3, "with its scroll bar"))
    memory = psutil.Process().memory_info().rss
    source = GeneratedSource(LONGEST)
    async with _shown(None) as (app, pane, _):
        opening = await _cpu(app, lambda: pane.set_entries(source))
        loaded = f"{source.loads} entries loaded"
        rows.append(Row(NAME, f"open {LONGEST:,} entries", opening * 1000, "ms", 200, loaded))
        places = [LONGEST * step // 23 + 1 for step in range(23)]
        jumping = [await _cpu(app, partial(pane.jump_to, place)) for place in places]
        rows.append(Row(NAME, f"jump to an entry of {LONGEST:,}", milliseconds(jumping), "ms", 50))
        for place in range(1, LONGEST, LONGEST // 400):
            pane.jump_to(place)
        await _painted(app)
        grown = (psutil.Process().memory_info().rss - memory) / 1e6
        rows.append(
            Row(NAME, f"memory after 400 jumps in {LONGEST:,}", grown, "MB", 60, "grown by")
        )
    return rows


async def _resizing() -> list[Row]:
    async with _shown(GeneratedSource(RESIZED)) as (app, _, pilot):
        times = []
        for width in (80, 140, 100):
            start = time.process_time()
            await pilot.resize_terminal(width, SIZE[1])
            await _painted(app)
            times.append(time.process_time() - start)
        return [Row(NAME, f"resize, {RESIZED:,} entries", milliseconds(times), "ms", 300)]


async def _streams() -> list[Row]:
    rows: list[Row] = []
    for what, text in (
        ("80,000-character paragraph", PARAGRAPH),
        ("1,000-item list", ITEMS),
        ("5,000-line fence", FENCE),
        ("20,000-token reply", REPLY),
    ):
        async with _shown(GeneratedSource(200)) as (app, pane, _):
            size = len(text) // CHUNKS + 1
            start, cpu = time.perf_counter(), time.process_time()
            for place in range(0, len(text), size):
                pane.apply(AnswerDelta(text[place : place + size]))
                await asyncio.sleep(0)
            sent = time.perf_counter()
            entry = AssistantEntry(id=LONGEST, parts=(TextPart(text=text),), model="demo")
            pane.apply(EntryAppended(entry))
            await _painted(app)
            after, used = time.perf_counter() - sent, time.process_time() - cpu
            note = f"{sent - start:.2f} s to send {CHUNKS:,} chunks; CPU {used:.2f} s in all"
            rows.append(Row(NAME, f"{what}: last byte to painted", after, "s", 0.5, note))
            rows.append(Row(NAME, f"{what}: CPU in all", used, "s", 1))
    return rows


async def _rate(what: str, text: str, seconds: int) -> Row:
    async with _shown(GeneratedSource(200)) as (app, pane, _):
        cpu, start = time.process_time(), time.perf_counter()
        size = len(text) // (seconds * 100) + 1
        for number, place in enumerate(range(0, len(text), size)):
            pane.apply(AnswerDelta(text[place : place + size]))
            await asyncio.sleep(max(start + (number + 1) / 100 - time.perf_counter(), 0))
        await _painted(app)
        share = (time.process_time() - cpu) / (time.perf_counter() - start) * 100
        return Row(NAME, what, share, "% CPU", 20)


def _append(pane: Transcript, number: int) -> None:
    pane.apply(
        EntryAppended(
            AssistantEntry(id=LONGEST + number, parts=(TextPart(text=ANSWER),), model="demo")
        )
    )


@asynccontextmanager
async def _shown(source: EntrySource | None) -> AsyncIterator[tuple[Host, Transcript, Pilot[None]]]:
    app = Host()
    async with app.run_test(size=SIZE) as pilot:
        pane = app.query_one(Transcript)
        pane.set_entries(source)
        pane.set_standings(Standings(boundary=LONG // 2, compaction=LONGEST + 1))
        await pilot.pause()
        yield app, pane, pilot


async def _cpu(app: Host, action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    await _painted(app)
    return time.process_time() - start


async def _painted(app: Host) -> None:
    """Wait until the screen has been painted with everything that was done so far."""
    for _ in range(2):
        done = asyncio.Event()
        app.query_one(Transcript).call_after_refresh(done.set)
        await done.wait()
