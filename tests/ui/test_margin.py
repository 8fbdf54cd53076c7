"""The context in the conversation: the margin, the rule of a summary, what the model sees, and a calm screen."""

import calendar
from dataclasses import replace
from typing import Any

import pytest
from textual.geometry import Region
from textual.pilot import Pilot

from tests.support.transcript import HeldTimers, shown
from tests.support.ui_app import Stage, emit, press, press_at_once, screen_text, until
from tests.support.ui_scenes import conversation
from tests.ui.transcript.samples import GeneratedSource, list_source
from tui_agent.agent.events import (
    AnswerDelta,
    EntryAppended,
    LeafMoved,
    PermissionAsked,
    PermissionRequest,
    RequestStarted,
    RunEnded,
    RunStarted,
)
from tui_agent.app.services import OpenRequest
from tui_agent.context.budget import ContextSize, Meter, ModelLimits
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    PruneEntry,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.ui.widgets.gauge import GaugeReading
from tui_agent.ui.widgets.prompt_lines import NewChip
from tui_agent.ui.widgets.question_prompt import QuestionPrompt

MODEL = "m"


def asked(text: str) -> UserEntry:
    return UserEntry(parts=(TextPart(text=text),))


def said(text: str, *calls: ToolCallPart, **fields: Any) -> AssistantEntry:
    return AssistantEntry(
        parts=(TextPart(text=text), *calls) if text else calls, model=MODEL, **fields
    )


def read(number: int, text: str = "") -> list[Entry]:
    call = ToolCallPart(call_id=f"c{number}", tool="read", arguments="{}")
    result = ToolResultEntry(
        call_id=call.call_id, tool="read", status=ToolStatus.COMPLETED, output="line\n" * 59,
        title=f"orders/{number}.csv", metadata=ToolMetadata(count=59), tokens=760,
    )  # fmt: skip
    return [said(text, call), result]


def compacted(kept: int | None) -> CompactionEntry:
    return CompactionEntry(
        summary="## Goal\n\nShip it.",
        first_kept_id=kept,
        tokens_before=6_000,
        tokens_after=2_400,
        trigger="manual",
    )


def rows(stage: Any) -> list[str]:
    return [row for row in screen_text(stage).split("\n")[1:] if row.strip()]


async def test_after_a_compaction_the_margin_shows_what_is_summarised_and_a_rule_where_it_ends(
    stage: Stage,
) -> None:
    async with stage.run((90, 24)) as pilot:
        stage.agent.append(asked("first"), *read(1), said("one"), asked("second"), said("two"))
        await pilot.pause()
        assert all(row.startswith("▏") for row in rows(stage) if "You" in row or "two" in row)
        kept = stage.agent.session.path_outline().ids[-2]
        stage.agent.append(compacted(kept))
        await pilot.pause()
        shown_rows = [row for row in rows(stage) if row[0] in "▏▒"]
        assert [row.split()[1] for row in shown_rows[:3]] == ["You", "▸", "one"]
        assert [row[0] for row in shown_rows] == ["▒", "▒", "▒", "▒", "▏", "▏", "▒"]
        assert "── 4 entries summarised · 6k → 2.4k ──" in shown_rows[3]
        assert shown_rows[3].rstrip().endswith("read · edit · undo ──")
        assert "↑ compacted · 6k → 2.4k · jump · undo" in shown_rows[6]


async def edit_summary(stage: Stage, pilot: Pilot[int]) -> None:
    """Compact a conversation of three messages, and open its summary for editing."""
    stage.agent.append(asked("first"), said("one"), asked("second"))
    stage.agent.append(compacted(3))
    await pilot.pause()
    stage.view.transcript.focus()
    assert stage.view.transcript.jump_to(4)
    await press(pilot, "e")


async def test_the_summary_in_force_is_edited_and_the_former_comes_back(stage: Stage) -> None:
    async with stage.run((90, 30)) as pilot:
        await edit_summary(stage, pilot)
        assert "Summary of the earlier history, as the model sees it" in screen_text(stage)
        assert stage.app.screen.query_one("TextArea").styles.scrollbar_size_vertical == 1
        stage.app.screen.query_one("TextArea").text = "Only this counts."  # type: ignore[attr-defined]
        await press(pilot, "ctrl+s")
        newest = stage.agent.session.active_path()[-1]
        assert isinstance(newest, CompactionEntry)
        assert (newest.summary, newest.first_kept_id) == ("Only this counts.", 3)
        assert screen_text(stage).count("summarised ·") == 1
        await stage.main.controller.run("undo", "")
        await pilot.pause()
        assert stage.agent.inspector.standings().compaction == 4


async def test_a_summary_that_is_saved_as_it_was_makes_no_new_one(stage: Stage) -> None:
    async with stage.run((90, 30)) as pilot:
        stage.agent.append(asked("first"), said("one"), asked("second"))
        stage.agent.append(compacted(3).model_copy(update={"summary": "All of it.\n"}))
        await pilot.pause()
        stage.view.transcript.focus()
        assert stage.view.transcript.jump_to(4)
        await press(pilot, "e", "ctrl+s")
        assert stage.agent.inspector.standings().compaction == 4


async def test_an_edited_summary_is_not_lost_if_a_run_begins_or_it_is_summarised_again(
    stage: Stage,
) -> None:
    async with stage.run((90, 30)) as pilot:
        await edit_summary(stage, pilot)
        stage.app.screen.query_one("TextArea").text = "Only this counts."  # type: ignore[attr-defined]
        stage.agent.emit(RunStarted())
        await press(pilot, "ctrl+s")
        assert "Your text stays here." in stage.toasts[-1]
        assert stage.app.screen.query_one("TextArea").text == "Only this counts."  # type: ignore[attr-defined]
        stage.agent.emit(RunEnded("done"))
        stage.agent.append(compacted(3))
        await press(pilot, "ctrl+s")
        assert stage.main.prompt.text == "Only this counts."
        assert "Your text is in the prompt." in stage.main.notice.message
        assert stage.agent.inspector.standings().compaction == 5


async def test_with_the_focus_on_a_block_the_last_line_says_how_the_model_has_it(
    stage: Stage,
) -> None:
    async with stage.run((120, 30)) as pilot:
        stage.agent.append(asked("first"), *read(1), said("one"), asked("second"))
        stage.agent.append(PruneEntry(targets=(3,), tokens_freed=700, reason="old"))
        await pilot.pause()
        transcript = stage.view.transcript
        transcript.focus()
        assert transcript.jump_to(3)
        await pilot.pause()
        assert "#3 · " in rows(stage)[-1]
        assert "cleared for 1 answer · not cached" in rows(stage)[-1]
        lines = screen_text(stage).split("\n")[:-1]
        y = next(y for y, row in enumerate(lines) if "orders/1.csv" in row and "#3" in row)
        drawn = transcript.render_lines(Region(0, y - transcript.region.y - 2, 100, 3))
        focused, other = (
            {part.style.bgcolor for part in strip if part.style} for strip in (drawn[2], drawn[0])
        )
        assert focused.isdisjoint(other)
        stage.agent.append(compacted(5))
        assert transcript.jump_to(1)
        await pilot.pause()
        assert "#1 · summarised by #7" in rows(stage)[-1]
        await press(pilot, "escape")
        assert "summarised by" not in rows(stage)[-1]


async def test_a_key_shows_exactly_what_the_model_sees_and_the_whole_again(stage: Stage) -> None:
    async with stage.run((100, 40)) as pilot:
        stage.agent.append(asked("first"), said("one"), asked("second"), *read(1), said("two"))
        stage.agent.append(PruneEntry(targets=(5,), tokens_freed=700, reason="old"), compacted(3))
        await pilot.pause()
        whole = screen_text(stage)
        await press(pilot, "ctrl+o")
        text = screen_text(stage)
        assert "You  first" not in text
        assert "Ship it." in text
        assert "Cleared" not in text
        assert "[Old tool result content cleared: read orders/1.csv" in text
        assert "Showing what the model sees" in text
        assert stage.view.transcript.lines_with(5, "tool result content"), "it is found, too"
        assert stage.view.transcript.lines_with(5, "no such words") == []
        stage.agent.append(asked("third"))
        await pilot.pause()
        assert "third" in screen_text(stage)
        await stage.agent.navigator.go(8)
        await pilot.pause()
        assert "You  first" not in screen_text(stage)
        await press(pilot, "ctrl+o")
        assert [row for row in screen_text(stage).split("\n") if row[:1] in "▏▒┊"] == [
            row for row in whole.split("\n") if row[:1] in "▏▒┊"
        ]


async def test_twelve_reads_with_a_line_each_are_one_row_that_opens() -> None:
    entries: list[Entry] = [asked("read them")]
    for number, name in enumerate(calendar.month_name[1:], 1):
        entries += read(number, f"Now {name}.")
    entries = [
        entry.model_copy(update={"id": at}) for at, entry in enumerate([*entries, said("Done.")], 1)
    ]
    async with shown(list_source(entries), (200, 50)) as view:
        text = [row for row in view.screen() if row]
        assert len(text) == 4
        assert text[2].lstrip().startswith("● read 12 files  orders/1.csv, orders/2.csv")
        assert "708 lines · 9.1k tokens" in text[2]
        assert len(text[2].strip()) <= 103
        await view.press("home", "j", "j", "j", "enter")
        assert "    Now March." in view.text()
        assert "    ● read orders/12.csv" in view.text()


async def test_the_place_of_the_reader_stays_while_an_answer_streams() -> None:
    now = 0.0
    async with shown(GeneratedSource(400), (80, 20), clock=lambda: now) as view:
        view.pane.action_move(-37)
        await view.settled()
        before = view.screen()
        view.pane.show_activity(lambda written: f"working · {written}")
        for number in range(30):
            now += 1  # the pause between two looks is over
            view.pane.apply(AnswerDelta(f"# Part {number}\n\n- item\n- item\n\n"))
            assert view.screen() == before
        view.pane.apply(EntryAppended(said("all of it").model_copy(update={"id": 401})))
        rule = compacted(view.pane.model.ids[view.pane.top.index]).model_copy(update={"id": 402})
        view.pane.apply(EntryAppended(rule))
        view.pane.show_activity(None)
        await view.settled()
        assert [row[2:] for row in view.screen()] == [row[2:] for row in before]


async def test_the_sign_of_life_stands_at_the_text_and_in_the_corner_only_when_that_is_out_of_sight(
    stage: Stage,
) -> None:
    async with stage.run() as pilot:
        stage.agent.append(*(asked(f"question {number}") for number in range(30)))
        stage.agent.emit(RunStarted(), RequestStarted(1, "m"), AnswerDelta("x" * 1_360))
        await pilot.pause()
        assert "◐ working 0 s · ~340 tokens · esc stops it" in screen_text(stage)
        assert "streaming" not in rows(stage)[-1]
        stage.view.transcript.action_go_to("home")
        await pilot.pause()
        assert "streaming 0 s" in rows(stage)[-1]
        stage.agent.append(asked("unseen"))
        stage.agent.emit(PermissionAsked(PermissionRequest("1", "bash", "ls", (), "why", ())))
        await pilot.pause()
        chip, question = stage.view.query_one(NewChip), stage.view.query_one(QuestionPrompt)
        assert chip.display
        assert not chip.region.overlaps(question.region), "that something is new covers no answer"
        assert not chip.region.overlaps(stage.view.transcript.region)


async def test_an_overflow_that_was_mended_is_no_failure_any_more() -> None:
    failed = said("", finish="error", error="prompt is too long").model_copy(update={"id": 2})
    async with shown(list_source([asked("go").model_copy(update={"id": 1})])) as view:
        await view.play(RunStarted(), EntryAppended(failed))
        assert "· prompt is too long" in view.text(), (
            "an overflow that is mended does not look like a failure"
        )
        assert "retry" not in view.text()
        await view.play(EntryAppended(said("done").model_copy(update={"id": 3})), RunEnded("done"))
        assert "· Retried after an error: prompt is too long" in view.text()
        assert "retry" not in view.text()
    async with shown(list_source([asked("go").model_copy(update={"id": 1})])) as view:
        await view.play(
            RunStarted(), EntryAppended(failed), RunEnded("error", "prompt is too long")
        )
        assert "✗ prompt is too long · f8 retry" in view.text()
        again, done = (
            asked("again").model_copy(update={"id": 3}),
            said("done").model_copy(update={"id": 4}),
        )
        await view.play(RunStarted(), EntryAppended(again), EntryAppended(done), RunEnded("done"))
        assert "✗ prompt is too long" in view.text(), (
            "another request was answered, and that one never"
        )
        assert "Retried" not in view.text()


@pytest.mark.parametrize("text", ["hello my friend", "the tree", "yes and no", "do not be eaten"])
async def test_a_burst_of_keys_after_escape_is_all_in_the_prompt(stage: Stage, text: str) -> None:
    async with stage.run() as pilot:
        stage.agent.append(asked("question"), said("answer"))
        await pilot.press("tab", "k", "k")
        assert stage.view.transcript.has_focus
        press_at_once(stage.app, "escape", *text)
        await pilot.pause()
        await pilot.pause()
        assert stage.main.prompt.text == text


async def test_the_gauge_keeps_its_length_says_nothing_before_it_knows_and_how_much_left(
    stage: Stage,
) -> None:
    async with stage.run((120, 24)):
        gauge = stage.main.gauge
        lengths = set()
        for total in (900, 84_200, 181_000):
            size = ContextSize(
                500, total - 500, total, 200_000, 20_000, 160_000, None, estimated=total < 1_000
            )
            for reading in (
                GaugeReading(size),
                GaugeReading(size, 0.92, 12.34, stage.services.clock() + 99),
            ):
                gauge.reading = reading
                bar = gauge.render().plain.split(" ")[0]
                lengths.add(len(bar))
        assert len(lengths) == 1
        gauge.reading = GaugeReading(
            Meter(ModelLimits("m", 200_000), ContextSettings(), TokenCounter("m")).measure([])
        )
        assert "… / 200k" in gauge.render().plain
        for total in (84_200, 76_400):
            size = ContextSize(
                500, total - 500, total, 200_000, 20_000, 160_000, None, estimated=False
            )
            gauge.measure(GaugeReading(size))
        assert "76.4k / 200k 38%  −7.8k" in gauge.render().plain
        for total, estimated in ((77_000, True), (70_000, False)):
            gauge.measure(GaugeReading(replace(size, total=total, estimated=estimated)))
        assert "−" not in gauge.render().plain


async def test_the_status_line_forgets_the_block_of_another_session(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.append(*conversation())
        await pilot.pause()
        await pilot.press("tab", "k")
        await until(lambda: stage.main.status.block, pilot)
        await stage.main.controller.open(OpenRequest())
        await pilot.pause()
        assert not stage.main.status.block


async def test_the_facts_of_a_block_are_not_looked_up_in_another_session(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.append(*conversation())
        await pilot.pause()
        timers = HeldTimers(stage.view)
        await pilot.press("tab", "k")
        assert timers.waiting
        await stage.main.controller.open(OpenRequest())
        timers.go_off()
        await pilot.pause()
        assert stage.toasts == [], "the session has no such entry"


async def test_the_status_line_forgets_a_block_that_was_undone(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.append(*conversation())
        await pilot.pause()
        await pilot.press("tab", "k")
        await until(lambda: stage.main.status.block, pilot)
        await emit(stage, pilot, LeafMoved(None))
        assert not stage.main.status.block


async def test_the_activity_counts_only_what_the_session_on_the_screen_wrote(stage: Stage) -> None:
    async with stage.run() as pilot:
        first = stage.agent.session.id
        await emit(stage, pilot, RunStarted())
        await stage.main.controller.open(OpenRequest())
        await emit(stage, pilot, RunStarted(), AnswerDelta("word " * 400))
        await until(lambda: "~500 tokens" in screen_text(stage), pilot)
        await emit(stage, pilot, LeafMoved(None))
        assert "~500 tokens" in screen_text(stage)
        await stage.main.controller.open(OpenRequest(first))
        await pilot.pause()
        assert "working" in screen_text(stage)
        assert "~500 tokens" not in screen_text(stage)
