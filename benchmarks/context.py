"""The context engine alone: a long path, what the first request carries, a run in a window of 1M. CPU seconds."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from string import Template

from benchmarks.fidelity.product import Ours
from benchmarks.fidelity.traces import Story, numbered
from benchmarks.report import Row, milliseconds
from benchmarks.sessions import exchange
from tui_agent.context.budget import Meter, ModelLimits
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import request_bytes
from tui_agent.context.settings import ContextSettings
from tui_agent.context.templates import Templates
from tui_agent.context.tokens import TokenCounter
from tui_agent.resources import prompt
from tui_agent.session.entries import Entry, SystemEntry, TextPart, UserEntry
from tui_agent.session.previews import preview_of
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.task import TaskTool

NAME = "context"
ENTRIES = 2_000
STEPS = 2_000
"""Of the run in the largest window: about 1.5 million tokens."""
MODEL = "gpt-4o"


def run() -> Iterator[Row]:
    """Measure pure functions in this process."""
    counter = TokenCounter(MODEL)
    head = _head()
    path = _recorded((head, *exchange(0, ENTRIES)), counter)
    traits, templates = ModelTraits(model=MODEL), Templates.load(prompt)
    projected = milliseconds(_seconds(lambda: project(path, traits, templates)) for _ in range(9))
    size = len(request_bytes(project(path, traits, templates)))
    yield Row(
        NAME,
        f"project() on {ENTRIES:,} entries",
        projected,
        "ms",
        20,
        f"a request of {size / 1000:,.0f} kB",
    )
    limits, settings = ModelLimits(MODEL, 1_000_000), ContextSettings()
    # An agent keeps its meter from one measurement to the next.
    meter = Meter(limits, settings, counter)
    first = _seconds(partial(meter.measure, path))
    measured = []
    for number in range(9):
        added = UserEntry(parts=(TextPart(text=f"one more {number}"),))
        path = _recorded((*path, added), counter)
        measured.append(_seconds(partial(meter.measure, path)))
    yield Row(
        NAME,
        "measure() after one append",
        milliseconds(measured),
        "ms",
        2,
        f"{first * 1000:.0f} ms at first",
    )
    fixed = Meter(limits, settings, counter).measure([head]).fixed
    yield Row(NAME, "head and all tool schemas", fixed, "tokens", 1_600, f"{len(head.tools)} tools")
    yield _in_a_large_window()


def _in_a_large_window() -> Row:
    """Return what of each request the next one does not begin with, in a long run; nothing may be over the window."""
    ours = Ours(1_000_000)
    for entry in numbered(Story(1, files=400).one_run(STEPS)):
        if entry.kind == "assistant":
            ours.request(entry.created_at)
        ours.append(entry)
    health = ours.health
    assert (health.over_window, health.no_progress) == (0, 0)
    lost = 100 * (1 - health.kept_prefix / health.could_keep)
    what = f"{health.requests:,} requests, {health.prunes} prunes, {health.compactions} compactions"
    return Row(NAME, "prefix not kept, window of 1M", lost, "%", 4, what)


def _head() -> SystemEntry:
    known = (*builtin_tools(), TaskTool())
    tools = tuple(tool.schema() for tool in known if tool.offered_to(ModelTraits(MODEL)))
    place = {
        "cwd": "/home/me/project",
        "project": "/home/me/project",
        "git": "branch main",
        "date": "2026-01-01",
    }
    opening = Template(prompt("environment")).safe_substitute(
        model=MODEL, platform="Linux x86_64", **place
    )
    return SystemEntry(
        blocks=(prompt("system"),), opening=opening, tools=tools, model=MODEL, mode="build"
    )


def _recorded(entries: Sequence[Entry], counter: TokenCounter) -> list[Entry]:
    """Return entries as the store returns them: numbered, chained, with preview and tokens."""
    return [
        entry
        if entry.id
        else entry.model_copy(
            update={
                "id": number,
                "parent_id": number - 1 or None,
                "preview": preview_of(entry),
                "tokens": counter.entry(entry),
            }
        )
        for number, entry in enumerate(entries, start=1)
    ]


def _seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start
