"""Long sessions: what they weigh, how fast they open, how they take focus and resizing."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from benchmarks.program import MODEL, PROMPT_HINT, Sandbox, pss, sandbox
from benchmarks.report import Row, milliseconds
from tests.support.terminal import Terminal
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    Usage,
    UserEntry,
)
from tui_agent.session.session import Session
from tui_agent.session.store import Store

NAME = "sessions"
LAST = "THE-LAST-ANSWER"
COMPACTED_EVERY = 1_000


def run() -> Iterator[Row]:
    """Measure a session of 2,000 and one of 100,000 entries."""
    with sandbox() as box:
        session = fill_session(box, 2_000)
        with box.ready("-r", session) as terminal:
            process = psutil.Process(terminal.process.pid)
            yield Row("memory", "UI in a session of 2,000 entries", pss(process), "MB", 110, "PSS")
            yield Row(NAME, "DOM nodes on screen", _nodes(box, session), "nodes", 300)
            yield Row(NAME, "resize with 2,000 entries", _resized(terminal), "ms", 300, "until it rests")
            yield Row(NAME, "terminal focus out and in", _refocused(terminal), "ms", 50, "until it rests")
    with sandbox() as box:
        entries = 100_000
        session = fill_session(box, entries)
        opened = [_open_seconds(box, session) for _ in range(3)]
        empty = [_open_seconds(box, None) for _ in range(3)]
        extra = milliseconds(opened) - milliseconds(empty)
        yield Row(
            NAME, f"open {entries:,} entries", milliseconds(opened), "ms", 500, f"{extra:.0f} more than an empty one"
        )


def fill_session(box: Sandbox, entries: int) -> str:
    """Write a session of that many entries into the sandbox's database and return its id.

    It was compacted every 1,000 entries, as a session of that length has to be to fit any window.
    """
    store = Store(box.database / "sessions.db")
    try:
        info = store.create_session(box.project)
        # As when it is really counted, every entry takes some tokens.
        session = Session(store, info.id, estimate=lambda entry: 8 + len(entry.preview) // 4)
        for start in range(0, entries, COMPACTED_EVERY):
            added = session.append_many(exchange(start, min(COMPACTED_EVERY, entries - start)))
            session.append(_compaction(added))
        session.append(AssistantEntry(parts=(TextPart(text=LAST),), model=MODEL))
        return info.id
    finally:
        store.close()


def _compaction(entries: Sequence[Entry]) -> CompactionEntry:
    return CompactionEntry(
        summary="## Goal\nFind out why the cart loses an item.\n\n## Progress\n- [x] read `src/cart.py`",
        first_kept_id=entries[-16 * (len(entries) // 32)].id,
        tokens_before=150_000,
        tokens_after=20_000,
        trigger="threshold",
    )


def exchange(start: int, count: int) -> Iterator[Entry]:
    """Yield ``count`` entries of a believable conversation: a question, calls with results, an answer."""
    for number in range(start, start + count):
        match number % 8:
            case 0:
                yield UserEntry(parts=(TextPart(text=f"Question {number}: why does the cart lose an item?"),))
            case 1 | 3 | 5:
                yield AssistantEntry(
                    parts=(ToolCallPart(call_id=f"call{number}", tool="grep", arguments='{"pattern": "cart"}'),),
                    model=MODEL,
                    finish="tool_calls",
                )
            case 2 | 4 | 6:
                yield ToolResultEntry(
                    call_id=f"call{number - 1}",
                    tool="grep",
                    status=ToolStatus.COMPLETED,
                    output="\n".join(f"src/cart.py:{line}: item {number}" for line in range(12)),
                    title='"cart"',
                )
            case _:
                text = (
                    f"Answer {number}: it is in **src/cart.py**.\n\n```python\ntotal = {number}\n```\n\n- one\n- two\n"
                )
                yield AssistantEntry(parts=(TextPart(text=text * 2),), model=MODEL, usage=Usage(input=900, output=90))


def _nodes(box: Sandbox, session: str) -> int:
    """Count the widgets in a process of its own, on a copy of the session that nobody holds."""
    store = Store(box.database / "sessions.db")
    copy = store.fork(session, store.session(session).leaf).id
    store.close()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.count_nodes", copy],
        cwd=Path(__file__).parent.parent,
        env={"PATH": os.environ["PATH"], **box.env},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return int(done.stdout)


def _open_seconds(box: Sandbox, session: str | None) -> float:
    start = time.perf_counter()
    with box.terminal(*(("-r", session) if session else ())) as terminal:
        terminal.wait_for(LAST if session else PROMPT_HINT)
        return time.perf_counter() - start


def _resized(terminal: Terminal) -> float:
    return _until_rest(terminal, lambda: terminal.resize(90, 30))


def _refocused(terminal: Terminal) -> float:
    def refocus() -> None:
        terminal.type("\x1b[O")
        terminal.type("\x1b[I")

    return _until_rest(terminal, refocus)


def _until_rest(terminal: Terminal, action: Callable[[], None]) -> float:
    """Return the milliseconds from an action until the last byte that the program wrote because of it."""
    terminal.wait_quiet(0.5)
    start = last = time.perf_counter()
    action()
    while terminal.pump(0.4):
        last = time.perf_counter()
    return (last - start) * 1000
