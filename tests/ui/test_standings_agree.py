"""After whatever changes the context, margin, tree, map and gauge say the same of every entry, and it is true."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.fake_agent import FakeAgent
from tests.support.thoroughness import examples
from tests.support.transcript import Shown, shown
from tui_agent.agent.agent import Agent
from tui_agent.context.compaction import with_summary
from tui_agent.context.context_status import Standing, together
from tui_agent.context.context_status_cache import standings
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.view import resolve
from tui_agent.session.entries import (
    KINDS,
    AssistantEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    PruneEntry,
    ShellEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.ui.widgets.gauge import parts_of
from tui_agent.ui.widgets.transcript.cards import CardBlock
from tui_agent.ui.widgets.tree.outline import Outline, TreeOptions
from tui_agent.ui.widgets.tree.segments import TreeIndex
from tui_agent.ui.widgets.tree.session_tree import standing_of

MODEL = "anthropic/claude-sonnet-4-5"
ACTIONS = (
    "ask", "work", "shell", "hide", "fail", "prune", "compact", "keep nothing", "edit",
    "pin", "mask", "drop", "restore", "go back", "undo move", "reopen",
)  # fmt: skip

actions = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 30)), min_size=4, max_size=14)


class Actor:
    """Does to a session what people and agents do; ``number`` chooses among the entries there are."""

    def __init__(self, agent: FakeAgent) -> None:
        self.agent = agent
        self.calls = 0

    def path(self) -> list[Entry]:
        return self.agent.session.entries(self.agent.session.path_outline().ids)

    def one(self, number: int, *kinds: type[Entry]) -> int | None:
        found = [entry.id for entry in self.path() if isinstance(entry, kinds)]
        return found[number % len(found)] if found else None

    async def act(self, action: str, number: int) -> None:
        match action:
            case "ask":
                self.agent.append(UserEntry(parts=(TextPart(text=f"question {number}"),)))
            case "work":
                self.work(1 + number % 4)
            case "shell" | "hide":
                self.agent.append(
                    ShellEntry(command="ls", output="x", exit_code=0, excluded=action == "hide")
                )
            case "fail":
                self.agent.append(
                    AssistantEntry(parts=(), model=MODEL, error="overloaded", finish="error")
                )
            case "go back" | "undo move":
                await self.move(action, number)
            case "reopen":
                pass
            case _:
                self.change(action, number)

    def work(self, count: int) -> None:
        calls = [
            ToolCallPart(call_id=f"c{self.calls + n}", tool="read", arguments='{"path": "a.py"}')
            for n in range(count)
        ]
        self.calls += count
        self.agent.append(AssistantEntry(parts=(TextPart(text="Now this."), *calls), model=MODEL))
        for call in calls:
            self.agent.append(
                ToolResultEntry(
                    call_id=call.call_id,
                    tool="read",
                    status=ToolStatus.COMPLETED,
                    output="line\n" * 40,
                    title="a.py",
                )
            )

    def change(self, action: str, number: int) -> None:
        target = self.one(number, UserEntry, AssistantEntry, ToolResultEntry)
        match action:
            case "prune":
                result = self.one(number, ToolResultEntry)
                if result is not None:
                    self.agent.append(PruneEntry(targets=(result,), tokens_freed=9, reason="old"))
            case "compact" | "keep nothing":
                kept = (
                    self.one(number, UserEntry, AssistantEntry, ShellEntry)
                    if action == "compact"
                    else None
                )
                self.agent.append(
                    CompactionEntry(
                        summary="They asked.",
                        first_kept_id=kept,
                        tokens_before=90,
                        tokens_after=9,
                        trigger="manual",
                    )
                )
            case "edit" if self.agent.inspector.standings().compaction:
                self.agent.append(
                    with_summary(
                        resolve(self.path()), f"Edited {number}.", self.agent.counter.entry
                    )
                )
            case "pin" | "mask" | "drop" | "restore" if target is not None:
                self.agent.edit_context(target, action)
            case _:
                pass

    async def move(self, action: str, number: int) -> None:
        path = self.path()
        if action == "undo move" and self.agent.session.history.newest():
            await self.agent.navigator.undo()
        elif action == "go back" and path:
            await self.agent.navigator.go(path[number % len(path)].id)


def check_truth(agent: FakeAgent) -> None:
    """What is said to be in the request is in it, and nothing else is."""
    path = agent.session.active_path()
    found = agent.inspector.standings()
    fresh = standings(path)
    ids = [(row.id, row.kind) for row in agent.session.path_outline()]
    said = {entry_id: found.of(entry_id, kind) for entry_id, kind in ids}
    assert said == {entry_id: fresh.of(entry_id, kind) for entry_id, kind in ids}
    request = project(path, ModelTraits(MODEL))
    sent = {origin for message in request.messages for origin in message.origin}
    as_it_is = {
        one
        for one, standing in said.items()
        if standing in {Standing.SENT, Standing.PINNED, Standing.CLEARED}
    }
    assert as_it_is - set(_carried(path)) == sent - {found.compaction}


def _carried(path: list[Entry]) -> list[int]:
    return [
        pin.id
        for entry in path
        if isinstance(entry, CompactionEntry)
        for pin in entry.details.pinned
    ]


def check_margin(view: Shown, agent: FakeAgent) -> None:
    """Every block of the conversation stands as its entry does."""
    found, model = agent.inspector.standings(), view.pane.model
    for index in range(len(model)):
        model.measured_height(index)
        item = model.item(index)
        for block in item.blocks:
            entry_id, kind = block.entry or (item.id, item.kind)
            if hasattr(block, "cards"):
                expected = together(card.standing for card in block.cards)
            else:
                expected = found.of(entry_id, kind) if block.is_sendable else Standing.UNSENT
            assert block.standing is expected, (entry_id, kind, block.key)
            if isinstance(block, CardBlock) and block.entry:
                assert block.tokens == agent.counter.entry(agent.session.entry(entry_id))
                assert ("restore" in block.actions) == (
                    entry_id in found.edited and expected is not Standing.PINNED
                )
    key = f"compaction:{found.compaction}"
    rules = [
        index
        for index in range(len(model))
        for block in model.item(index).blocks
        if block.key == key
    ]
    assert len(rules) == bool(found.compaction)
    kept = [entry_id for entry_id in model.ids if found.boundary <= entry_id]
    for index in rules:
        before = [at for at in range(index) if model.ids[at] >= found.boundary]
        assert not kept or all(not model.item(at).shown for at in before)


def check_tree(agent: FakeAgent) -> None:
    """Every row of the tree stands as its entries do; what is beside the path is not sent."""
    session, found = agent.session, agent.inspector.standings()
    index = TreeIndex(session.skeleton(), session.leaf, calibrated=agent.counter.calibrated)
    entries = session.entries([header.id for header in index.headers])
    assert abs(
        sum(root.tokens for root in index.roots) - sum(map(agent.counter.entry, entries))
    ) <= len(entries)
    outline = Outline(index, TreeOptions())
    on_path = {row.id: row.kind for row in session.path_outline()}
    for y in range(outline.total):
        line = outline.line(y)
        assert line is not None
        ids = line.segment.headers.ids[line.row.first : line.row.last + 1]
        told = [entry_id for entry_id in ids if entry_id in on_path]
        results = [entry_id for entry_id in told if on_path[entry_id] == "tool_result"]
        shown_ids = (results or told) if line.row.is_group else told[-1:]
        expected = together(found.of(entry_id, on_path[entry_id]) for entry_id in shown_ids)
        assert standing_of(line, found) is (expected if line.active else Standing.UNSENT)


def check_map_and_gauge(agent: FakeAgent) -> None:
    """Every block of the map stands as its entry does, and the gauge has the map's sums."""
    found = agent.inspector.standings()
    shown_map = agent.inspector.map()
    for block in shown_map.blocks:
        if not block.is_head:
            assert block.standing is found.of(block.origin[0], block.kind)
            assert KINDS[block.kind].is_message is not False
            if block.kind == "tool_result" and block.standing in {Standing.SENT, Standing.PINNED}:
                assert (
                    abs(block.tokens - agent.counter.entry(agent.session.entry(block.origin[0])))
                    <= 1
                )
    shares = agent.inspector.shares()
    for standing in (Standing.SUMMARISED, Standing.CLEARED, Standing.PINNED):
        of_map = shown_map.shares.get(standing, 0)
        assert abs(shares.get(standing, 0) - of_map) <= len(shown_map.blocks)
    parts = parts_of(shown_map.size, shares)
    assert sum(parts.values()) == shown_map.size.history


def test_the_gauge_follows_another_text_of_a_pinned_entry(tmp_path: Path) -> None:
    store = Store(tmp_path / "sessions.db")
    session = Session(store, store.create_session(tmp_path).id, estimate=TokenCounter(MODEL).entry)
    agent = FakeAgent(session, MODEL)
    agent.size = Agent.context_size(agent)
    agent.append(UserEntry(parts=(TextPart(text="a question"),)))
    agent.edit_context(session.leaf, "pin")
    check_map_and_gauge(agent)
    agent.append(ContextEditEntry(target=1, action="edit", text="another question " * 50))
    agent.size = Agent.context_size(agent)
    check_map_and_gauge(agent)
    store.close()


async def play(steps: list[tuple[str, int]], directory: Path) -> None:
    store = Store(directory / "sessions.db")
    try:
        session = Session(
            store, store.create_session(directory).id, estimate=TokenCounter(MODEL).entry
        )
        agent = FakeAgent(session, MODEL)
        agent.size = Agent.context_size(agent)
        async with shown(None, (80, 24)) as view:
            agent.channel.subscribe(view.pane.apply)
            view.pane.open(agent)
            actor = Actor(agent)
            for action, number in steps:
                await actor.act(action, number)
                if action == "reopen":
                    view.pane.reopen()
                await view.pilot.pause()
                check_truth(agent)
                check_margin(view, agent)
                check_tree(agent)
                check_map_and_gauge(agent)
    finally:
        store.close()


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=actions)
def test_margin_tree_map_and_gauge_agree(steps: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as name:
        asyncio.run(play(steps, Path(name)))
