"""Runs of small tool calls are one row that opens, wherever they were loaded from and however they came."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.transcript import HeldTimers, shown
from tests.ui.transcript.samples import GeneratedSource, list_source
from tui_agent.agent.events import EntryAppended, ToolFinished, ToolStarted
from tui_agent.context.context_status import Standing
from tui_agent.context.context_status_cache import Standings
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.ui.widgets.transcript import messages
from tui_agent.ui.widgets.transcript.blocks import Fold
from tui_agent.ui.widgets.transcript.cards import CardBlock
from tui_agent.ui.widgets.transcript.feed import LiveFeed
from tui_agent.ui.widgets.transcript.groups import GroupBlock
from tui_agent.ui.widgets.transcript.model import HeightIndex, Position, TranscriptModel


def steps(*tools: str, failed: int = 0, text: str = "", start: int = 1) -> list[Entry]:
    """Return a question, one answer with one call and its result for each tool, and a last answer."""
    entries: list[Entry] = [UserEntry(id=start, parts=(TextPart(text="Look around."),))]
    for number, tool in enumerate(tools, 1):
        call = ToolCallPart(call_id=f"c{start}-{number}", tool=tool, arguments="{}")
        entries.append(AssistantEntry(id=start + number * 2 - 1, parts=(call,), model="m"))
        about = {
            "tool": tool,
            "status": ToolStatus.ERROR if number == failed else ToolStatus.COMPLETED,
        }
        told = {"output": f"out {number}", "title": f"file{number}.py"}
        entries.append(
            ToolResultEntry(id=start + number * 2, call_id=call.call_id, **about, **told)
        )
    if text:
        entries.append(
            AssistantEntry(id=start + len(tools) * 2 + 1, parts=(TextPart(text=text),), model="m")
        )
    return entries


def drawn(model: TranscriptModel) -> list[str]:
    lines = [row.line for row in model.rows(Position(0), 10_000)]
    return ["".join(text for text, _ in (*line.prefix, *line.content())).rstrip() for line in lines]


def model_of(entries: list[Entry], width: int = 78) -> TranscriptModel:
    model = TranscriptModel(width)
    model.open(list_source(entries))
    return model


def test_one_thing_asked_for_again_and_again_is_counted_by_calls() -> None:
    entries = steps("read", "read", "read", "grep", text="Done.")
    same = [
        entry.model_copy(update={"title": "a.py"}) if entry.kind == "tool_result" else entry
        for entry in entries
    ]
    assert drawn(model_of(same))[2] == "● read 3 times, grep 1 pattern  a.py"


def test_two_calls_and_calls_that_do_something_stand_for_themselves() -> None:
    shown_rows = drawn(model_of(steps("read", "grep", "bash", "read", "ls", text="Done.")))
    assert [row for row in shown_rows if row.startswith("●")] == [
        "● read file1.py", "● grep file2.py", "● bash file3.py", "● read file4.py", "● ls file5.py",
    ]  # fmt: skip


def test_a_failed_call_is_not_hidden() -> None:
    rows = drawn(
        model_of(
            steps("read", "read", "read", "grep", "read", "read", "ls", failed=4, text="Done.")
        )
    )
    assert rows[2] == "● read 3 files  file1.py, file2.py, file3.py"
    assert "✗ grep file4.py" in rows
    assert "● read 2 files, ls 1 folder  file5.py, file6.py, file7.py" in rows


def test_it_does_not_matter_where_one_begins_to_look() -> None:
    entries = [
        *steps(*["read"] * 90, text="One."),
        *steps("grep", "ls", "ls", text="Two.", start=300),
    ]
    whole = drawn(model_of(entries))
    for first in (0, 7, 63, 64, 100, len(entries) - 2):
        model = model_of(entries)
        for index in range(first, -1, -1):
            model.measured_height(index)
        assert drawn(model) == whole
    assert sum(row.startswith("● read") for row in whole) == 3


def test_calls_come_into_the_row_one_by_one_as_they_are_made() -> None:
    model = TranscriptModel(78)
    feed = LiveFeed(model)
    for entry in steps("read", "read", "read", "ls", text="Done."):
        feed.append(entry)
        for index in sorted(feed.changed):
            model.remeasure(index)
        feed.changed.clear()
        assert model.heights.total == len(drawn(model))
    assert drawn(model) == drawn(model_of(steps("read", "read", "read", "ls", text="Done.")))


async def test_the_row_opens_closes_and_copies_with_keys() -> None:
    async with shown(list_source(steps("read", "grep", "ls", text="Done."))) as view:
        before = view.screen()
        await view.press("home", "j", "j", "enter")
        row = view.row_of("read 1 file, grep 1")
        assert [line.split()[1:3] for line in view.screen()[row + 1 : row + 4]] == [
            ["read", "file1.py"], ["grep", "file2.py"], ["ls", "file3.py"],
        ]  # fmt: skip
        assert view.screen()[row + 1].startswith("    ● read")
        assert view.screen()[row].endswith("▾")
        await view.press("j", "enter")
        assert "out 1" in view.text()
        await view.press("k", "enter")
        assert [line.lstrip("▎ ") for line in view.screen()] == [line.lstrip() for line in before]
        await view.press("y")
        assert (
            view.sent(messages.CopyRequested)[-1].text
            == "read file1.py\ngrep file2.py\nls file3.py"
        )


async def test_going_to_a_call_in_a_closed_row_opens_it() -> None:
    async with shown(list_source(steps("read", "grep", "ls", text="Done."))) as view:
        assert view.pane.jump_to(5)
        await view.settled()
        _, block = view.pane.focused_target() or (0, None)
        assert isinstance(block, CardBlock)
        assert block.tool == "grep"
        assert "  ● grep file2.py" in view.text()


async def test_the_row_tells_what_runs_and_for_how_long() -> None:
    now = 100.0
    async with shown(list_source(steps("read", "grep")), clock=lambda: now) as view:
        timers = HeldTimers(view.pane)
        call = ToolCallPart(call_id="live", tool="ls", arguments="{}")
        view.pane.apply(EntryAppended(AssistantEntry(id=50, parts=(call,), model="m")))
        view.pane.apply(ToolStarted("live", "ls", "src", "{}"))
        now = 112.4
        timers.go_off()
        await view.settled()
        row = view.screen()[view.row_of("read 1 file")]
        assert row.startswith(
            "  ◐ read 1 file, grep 1 pattern, ls 1 folder  file1.py, file2.py, src"
        )
        assert row.endswith("12 s  ▸")
        await view.play(ToolFinished("live", "bash", "error", ToolMetadata(), 13.0))
        assert " ✗ ls src" in view.text()
        assert " ● grep file2.py" in view.text()


def test_what_is_not_in_context_is_told_on_the_row() -> None:
    model = model_of(steps("read", "grep", "ls"))
    drawn(model)
    known = {3: Standing.CLEARED, 5: Standing.PINNED}
    model.set_standings(Standings(known=known, edited=frozenset(known)))
    group = next(
        block
        for _, item in model.loaded()
        for block in item.blocks
        if isinstance(block, GroupBlock)
    )
    assert ("1 cleared", "standing-label") in group.lines(78)[0].tail
    assert group.standing is Standing.CLEARED
    assert group.fold is Fold.CLOSED


HEIGHTS = st.lists(st.integers(0, 9), max_size=1_500)


@given(
    HEIGHTS,
    st.lists(st.tuples(st.integers(0, 1_499), st.integers(0, 9)), max_size=10),
    st.integers(-5, 9_000),
)
def test_offsets_and_places_agree_with_a_plain_sum(
    heights: list[int], changes: list[tuple[int, int]], line: int
) -> None:
    index = HeightIndex(heights[: len(heights) // 2])
    for height in heights[len(heights) // 2 :]:
        index.append(height)
    for place, height in changes:
        if place < len(heights):
            heights[place] = index[place] = height
    assert index.total == sum(heights)
    assert len(index) == len(heights)
    place, within = index.find(line)
    if sum(heights):
        assert index.offset(place) == sum(heights[:place])
        assert 0 <= within < heights[place]
        assert index.offset(place) + within == min(max(line, 0), sum(heights) - 1)
    while len(index):
        index.pop()
    assert index.total == 0


def test_estimates_are_near_the_truth_and_a_walk_through_a_long_session_keeps_few_items() -> None:
    model = TranscriptModel(100)
    model.open(GeneratedSource(4_000))
    estimated = model.heights.total
    for index in range(len(model)):
        model.measured_height(index)
    assert 0.5 < estimated / model.heights.total < 2
    assert len(model.loaded()) <= 410
