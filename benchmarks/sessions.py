"""Long sessions: what they weigh, how fast they open, how they take focus and resizing."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

import psutil

from benchmarks.program import MODEL, Sandbox, cpu_seconds, pss, sandbox, wait_written
from benchmarks.report import Row
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
_TIMES = 6
"""How often what takes a moment is done."""


def run() -> Iterator[Row]:
    """Measure a session of 2,000 and one of 100,000 entries."""
    with sandbox() as box:
        session = fill_session(box, 2_000)
        with box.warm("-r", session) as terminal:
            memory = pss(psutil.Process(terminal.process.pid))
            yield Row(
                "memory", "UI in a session of 2,000 entries", memory, "MB", 110, "PSS after a turn"
            )
            yield Row(NAME, "DOM nodes on screen", _nodes(box, session), "nodes", 300)
            yield _resized(terminal)
            yield _refocused(terminal)
    with sandbox() as box:
        entries = 100_000
        # Both in one file, so that only the session's length differs.
        short, long = fill_session(box, 8), fill_session(box, entries)
        opened = [(_opened(box, short), _opened(box, long)) for _ in range(5)]
        seconds, used = (min(one[part] for _, one in opened) for part in (0, 1))
        least = [min(one[part] for one, _ in opened) for part in (0, 1)]
        extra = f"{(seconds - least[0]) * 1000:.0f} ms, CPU {(used - least[1]) * 1000:.0f} ms more than 8 entries"
        yield Row(
            NAME,
            f"open {entries:,} entries",
            seconds * 1000,
            "ms",
            500,
            f"best of 5 starts; {extra}",
        )
        with box.warm("-r", long) as terminal:
            process = psutil.Process(terminal.process.pid)
            note = f"PSS after a turn, {pss(process) - memory:+.0f} MB to 2,000"
            yield Row(
                "memory", f"UI in a session of {entries:,} entries", pss(process), "MB", None, note
            )
            terminal.type("/tree\r")
            terminal.wait_for("Session tree")
            terminal.wait_quiet(1)
            yield Row(
                "memory",
                f"UI with the tree of {entries:,} entries",
                pss(process),
                "MB",
                None,
                "PSS",
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
                yield UserEntry(
                    parts=(TextPart(text=f"Question {number}: why does the cart lose an item?"),)
                )
            case 1 | 3 | 5:
                yield AssistantEntry(
                    parts=(
                        ToolCallPart(
                            call_id=f"call{number}", tool="grep", arguments='{"pattern": "cart"}'
                        ),
                    ),
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
                    f"Answer {number}: it is in **src/cart.py**.\n\n```python\ntotal = "
                    f"{number}\n```\n\n- one\n- two\n"
                )
                yield AssistantEntry(
                    parts=(TextPart(text=text * 2),), model=MODEL, usage=Usage(input=900, output=90)
                )


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


def _opened(box: Sandbox, session: str) -> tuple[float, float]:
    """Return the seconds until the newest entry of a session is shown, and the CPU seconds they took."""
    start = time.perf_counter()
    with box.terminal("-r", session) as terminal:
        shown = wait_written(terminal, LAST, 0)
        return shown - start, cpu_seconds(psutil.Process(terminal.process.pid))


def _resized(terminal: Terminal) -> Row:
    sizes = cycle(((90, 30), (120, 40)))
    return _until_rest(
        terminal, lambda: terminal.resize(*next(sizes)), "resize with 2,000 entries", 300
    )


def _refocused(terminal: Terminal) -> Row:
    def refocus() -> None:
        terminal.type("\x1b[O")
        terminal.type("\x1b[I")

    return _until_rest(terminal, refocus, "terminal focus out and in", 50)


def _until_rest(terminal: Terminal, action: Callable[[], None], what: str, target: float) -> Row:
    """Measure from an action until the last byte that the program writes because of it."""
    process = psutil.Process(terminal.process.pid)
    rested = []
    used = cpu_seconds(process)
    for _ in range(_TIMES):
        terminal.wait_quiet(0.5)
        start = last = time.perf_counter()
        action()
        while terminal.pump(0.4):
            last = time.perf_counter()
        rested.append(last - start)
    used = (cpu_seconds(process) - used) / _TIMES
    note = f"until it rests, best of {_TIMES}; CPU {used * 1000:.0f} ms"
    return Row(NAME, what, min(rested) * 1000, "ms", target, note)
