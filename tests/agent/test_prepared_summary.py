"""A summary that is written while the work goes on: nobody waits for it, and what it costs is shown."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from tests.agent.test_room import (
    SUMMARY,
    Worker,
    assert_a_step_between_compactions,
    is_summary_call,
)
from tests.support.agents import Harness, make_agent
from tests.support.request_validator import validate
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.compaction_drafts import CompactionOrder
from tui_agent.agent.events import CompactionEnded, CompactionProgress, CompactionStarted, Notice
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.prepared_summary import PreparedSummary
from tui_agent.context.request import ModelRequest
from tui_agent.context.settings import CompactionSettings, ContextSettings, PruneSettings
from tui_agent.model.protocol import ModelEvent
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    PruneEntry,
)

SUMMARISED = Reply(SUMMARY, cost=0.02)
STEPS = 3
"""Steps that go on while a summary is written, at least."""


class Slow(ScriptedClient):
    """Answers at once, but for summaries: each waits until it is let go.

    A step waits until the summary that was begun has been asked for: what is measured is how long the summariser takes,
    not how busy the machine is that plans it.
    """

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker)
        self.worker = worker
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()
        self.beside: list[int] = []
        self.summaries: list[ModelRequest] = []
        self.begun = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if is_summary_call(request):
            self.summaries.append(request)
            self.asked.set()
            begun = self.worker.step
            await self.let_go.wait()
            self.beside.append(self.worker.step - begun)
        else:
            async with asyncio.timeout(60):
                while len(self.summaries) < self.begun:
                    await asyncio.sleep(0.001)
        async for event in super().stream(request):
            yield event


class Steady(Worker):
    """Takes many small steps of the same size."""

    def __call__(self, request: ModelRequest) -> Reply:
        reply = super().__call__(request)
        if reply.calls:
            call = Call("bash", json.dumps({"command": f"seq {self.step}000 {self.step}120"}))
            reply = Reply(f"Step {self.step}.", calls=(call,), usage=reply.usage, cost=0.001)
        return reply


class Mixed(Worker):
    """Takes steps of very different sizes."""

    def __call__(self, request: ModelRequest) -> Reply:
        reply = super().__call__(request)
        if reply.calls:
            lines = (100, 200, 900, 2_600)[self.step % 4] + self.step
            call = Call("bash", json.dumps({"command": f"seq 1 {lines}"}))
            reply = Reply(f"Step {self.step}.", calls=(call,), usage=reply.usage, cost=0.001)
        return reply


class Writer(Worker):
    """Writes a file in each step, some of them long."""

    def __call__(self, request: ModelRequest) -> Reply:
        reply = super().__call__(request)
        if reply.calls:
            lines = (10, 20, 600, 30)[self.step % 4]
            content = "".join(f"line {line} of step {self.step}\n" for line in range(lines))
            call = Call("write", json.dumps({"path": f"new{self.step}.txt", "content": content}))
            reply = Reply(f"Step {self.step}.", calls=(call,), usage=reply.usage, cost=0.001)
        return reply


def count_begun(client: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the client know of each summary that is begun."""
    begin = PreparedSummary.begin

    def count(
        self: PreparedSummary, order: CompactionOrder, needless: Callable[[], Awaitable[bool]]
    ) -> None:
        client.begun += 1
        begin(self, order, needless)

    monkeypatch.setattr(PreparedSummary, "begin", count)


def a_harness(tmp_path: Path, client: ScriptedClient, **more: Any) -> Harness:
    settings = ContextSettings(
        compaction=CompactionSettings(keep_recent_share=0.5, keep_recent=9_000),
        prune=PruneSettings(when="off"),
    )
    given = {
        "window": 32_000,
        "max_steps": 999,
        "rules": (Rule("*", "*", Action.ALLOW, "flag"),),
        "settings": settings,
    }
    return make_agent(tmp_path, client, **given | more)


async def test_steps_go_on_while_a_summary_is_written_and_none_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Slow(Steady(120, summary=SUMMARISED))
    harness = a_harness(tmp_path, client)
    count_begun(client, monkeypatch)
    during: list[int] = []

    def watch(event: object) -> None:
        # However long the summariser takes, it is done a few steps later.
        if client.asked.is_set() and isinstance(event, CompactionStarted):
            during.append(len(client.summaries) - len(client.beside))
        if client.summaries and len(client.summaries) > len(client.beside):
            begun.setdefault(len(client.summaries), client.worker.step)
            if client.worker.step - begun[len(client.summaries)] >= STEPS:
                client.let_go.set()
        else:
            client.let_go.clear()

    begun: dict[int, int] = {}
    harness.agent.channel.subscribe(watch)
    ended = await harness.say("Read everything. Never stop early.")
    assert ended.reason == "done"
    compactions = harness.entries(CompactionEntry)
    assert len(compactions) >= 2
    assert during == [0] * len(compactions), "a compaction began before its summary was there"
    assert min(client.beside) >= STEPS
    assert_a_step_between_compactions(harness)
    for request in client.worker.requests:
        validate(request)
    assert not harness.of(CompactionProgress)
    assert [event.error for event in harness.of(CompactionEnded)] == [None] * len(compactions)
    # What came while it was written stands as it was said.
    whole = harness.path()
    for entry in compactions:
        kept = [
            e
            for e in whole
            if entry.first_kept_id <= e.id < entry.id and isinstance(e, AssistantEntry)
        ]
        assert len(kept) > STEPS
    # It is read from the provider's cache: the beginning of a request that was sent.
    first = client.summaries[0].messages[:-1]
    assert any(request.messages[: len(first)] == first for request in client.worker.requests)
    assert client.summaries[0].tools == client.worker.requests[0].tools
    spent = sum(
        entry.cost or 0 for entry in whole if isinstance(entry, AssistantEntry | CompactionEntry)
    )
    assert harness.agent.session_cost() == pytest.approx(spent)


class Connecting(Slow):
    """Takes some turns of the event loop until a step's request is sent, and tells of it."""

    def __init__(self, worker: Worker, happened: list[str]) -> None:
        super().__init__(worker)
        self.let_go.set()
        self.happened = happened

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if not is_summary_call(request):
            for _ in range(20):
                await asyncio.sleep(0)
            self.happened.append("sent")
        async for event in super().stream(request):
            yield event


async def test_a_step_s_request_is_sent_before_work_on_a_summary_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.agent.prepared_summary.HEAD_START", 60)
    happened: list[str] = []
    client = Connecting(Steady(999, summary=SUMMARISED), happened)
    harness = a_harness(tmp_path, client)
    begin = PreparedSummary.begin
    wanted = harness.agent.ports.hooks.wanted

    def begun(self: PreparedSummary, order: CompactionOrder, needless: Any) -> None:
        happened.append("begun")
        begin(self, order, needless)

    async def work(event: str, tool: str = "") -> bool:
        if event == "before_compact":
            happened.append("work")
            client.worker.steps = 0
        return await wanted(event, tool)

    monkeypatch.setattr(PreparedSummary, "begin", begun)
    monkeypatch.setattr(harness.agent.ports.hooks, "wanted", work)
    assert (await harness.say("Read everything. Never stop early.")).reason == "done"
    at = happened.index("begun")
    assert happened[at : at + 3] == ["begun", "sent", "work"]


@pytest.mark.parametrize("worker", [Mixed, Writer])
async def test_a_summary_that_is_ready_is_used_where_kept_texts_must_be_cleared_or_cut(
    tmp_path: Path, worker: type[Worker]
) -> None:
    client = Slow(worker(60, summary=SUMMARISED))
    client.let_go.set()
    harness = a_harness(tmp_path, client, window=12_000)
    assert (await harness.say("Read everything. Never stop early.")).reason == "done"
    ended = harness.of(CompactionEnded)
    assert any(event.steps for event in ended)
    assert not [notice for notice in harness.of(Notice) if "dropped" in notice.message]
    for request in client.worker.requests:
        validate(request)


async def test_outputs_are_cleared_so_that_work_goes_on_until_a_late_summary_is_there(
    tmp_path: Path,
) -> None:
    client = Slow(Mixed(60, summary=SUMMARISED))
    harness = a_harness(tmp_path, client, settings=ContextSettings())
    before: list[PruneEntry] = []
    cleared: list[int] = []

    def watch(_event: object) -> None:
        # The first summary takes so long that room has to be made for the work.
        pruned = harness.entries(PruneEntry)
        if not client.asked.is_set():
            before[:] = pruned
        elif len(pruned) > len(before) and not cleared:
            cleared.append(pruned[-1].id)
            client.let_go.set()

    harness.agent.channel.subscribe(watch)
    assert (await harness.say("Read everything. Never stop early.")).reason == "done"
    first = harness.entries(CompactionEntry)[0]
    assert cleared
    assert cleared[0] < first.id
    assert first.prepared, "the summary was written again"
    assert not [notice for notice in harness.of(Notice) if "dropped" in notice.message]
    for request in client.worker.requests:
        validate(request)


async def prepared(tmp_path: Path) -> tuple[Harness, Slow]:
    """Return an agent that has a summary ready and is idle."""
    client = Slow(Steady(999, summary=SUMMARISED))
    client.let_go.set()
    harness = a_harness(tmp_path, client)

    def stop(_event: object) -> None:
        if harness.agent.context.has_summary:
            client.worker.steps = 0

    harness.agent.channel.subscribe(stop)
    assert (await harness.say("Read everything.")).reason == "done"
    assert harness.agent.context.has_summary
    assert len(client.summaries) == 1
    return harness, client


@pytest.mark.parametrize(("focus", "summaries"), [(None, 1), ("the numbers", 2)])
async def test_what_is_ready_stays_for_a_compaction_by_hand_without_a_focus(
    tmp_path: Path, focus: str | None, summaries: int
) -> None:
    harness, client = await prepared(tmp_path)
    cost = harness.agent.session_cost()
    assert (await harness.agent.compact(focus)).problem is None
    assert len(client.summaries) == summaries
    assert not harness.agent.context.has_summary
    (compaction,) = harness.entries(CompactionEntry)
    assert (compaction.model, compaction.cost, compaction.trigger) == ("test/model", 0.02, "manual")
    assert harness.agent.session_cost() == pytest.approx(cost + 0.02 * (summaries - 1))


async def test_nothing_is_pruned_that_would_make_void_what_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, _client = await prepared(tmp_path)
    prune = AsyncMock()
    monkeypatch.setattr(harness.agent.context, "prune", prune)
    await harness.agent.context.make_room()
    prune.assert_not_awaited()


@pytest.mark.parametrize("change", ["edit", "move", "model"])
async def test_what_does_not_hold_any_more_is_dropped_and_its_cost_shown(
    tmp_path: Path, change: str
) -> None:
    harness, _client = await prepared(tmp_path)
    cost = harness.agent.session_cost()
    early = harness.entries(AssistantEntry)[0]
    match change:
        case "edit":
            harness.agent.edit_context(early.id, "mask")
        case "move":
            harness.session.move(early.id)
        case "model":
            harness.agent.change_model("test/other")
    assert not harness.agent.context.has_summary
    assert harness.session.info.side_cost == pytest.approx(0.02)
    await harness.say("Go on.")
    assert any(
        "prepared for $0.0200 was dropped" in notice.message for notice in harness.of(Notice)
    )
    assert harness.agent.session_cost() >= cost


async def test_escape_stops_it_and_leaves_the_path_alone(tmp_path: Path) -> None:
    client = Slow(Steady(999, summary=SUMMARISED))
    harness = a_harness(tmp_path, client)
    harness.agent.submit("Read everything.")
    await harness.until(client.asked.is_set)
    harness.agent.interrupt()
    assert (await harness.ended()).reason == "interrupted"
    await harness.until(lambda: harness.agent.context.prepared.task is None)
    assert not harness.agent.context.has_summary
    assert "compaction" not in harness.kinds()
    await harness.agent.aclose()
