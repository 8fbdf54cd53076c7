"""The widget under streams and resizes: nothing jumps, nothing is lost, nothing ticks when idle."""

from types import SimpleNamespace

import pytest
from textual import events

from tests.support.transcript import HeldTimers, answer, shown, user
from tests.ui.transcript.samples import ANSWER, GeneratedSource, every_kind, list_source
from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    EntryAppended,
    LiveAnswer,
    RequestStarted,
    RetryScheduled,
    RunEnded,
    RunStarted,
    ToolCallProgress,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from tui_agent.context.pruning import Occasion
from tui_agent.context.tokens import TokenCounter
from tui_agent.session.entries import (
    ALL_TEXT,
    AssistantEntry,
    Entry,
    PruneEntry,
    ShellEntry,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
)
from tui_agent.ui.widgets.transcript.transcript import (
    ELAPSED_SECONDS,
    FLUSH_SECONDS,
    SPINNER_SECONDS,
)


def result(number: int, call: ToolCallPart, output: str = "done") -> ToolResultEntry:
    about = {"call_id": call.call_id, "tool": call.tool, "title": "make" if call is BASH else "x"}
    return ToolResultEntry(id=number, status=ToolStatus.COMPLETED, output=output, **about)


BASH = ToolCallPart(call_id="c1", tool="bash", arguments='{"command": "make"}')
GREP = ToolCallPart(call_id="c2", tool="grep", arguments='{"pattern": "x"}')
BASH_DONE = ToolFinished("c1", "bash", "completed", ToolMetadata(exit_code=0), 0.2)


async def test_it_opens_at_the_end_and_loads_only_what_is_near() -> None:
    source = GeneratedSource(100_000)
    async with shown(source, (80, 30)) as view:
        assert view.pane.following
        assert "callers do" in view.text()
        assert source.loads < 100
        assert len(list(view.app.screen.walk_children(with_self=True))) < 10


async def test_it_follows_what_is_added_until_the_user_scrolls_up() -> None:
    async with shown(list_source([answer(n, f"answer {n}") for n in range(1, 40)])) as view:
        await view.play(EntryAppended(answer(40, "the newest")))
        assert view.screen()[-1].split() == ["the", "newest"]
        view.pane.post_message(events.MouseScrollUp(view.pane, 5, 5, 0, -1, 0, False, False, False))
        await view.settled()
        before = view.screen()
        assert not before[-1].startswith("  the newest")
        await view.play(EntryAppended(answer(41, "unseen")))
        assert view.screen() == before
        assert view.pane.has_new
        await view.press("end")
        assert view.screen()[-1].split() == ["unseen"]
        assert not view.pane.has_new


async def test_every_line_is_seen_once_on_the_way_up_through_estimates() -> None:
    async with shown(GeneratedSource(40), (70, 20)) as view:
        seen = view.screen()
        while view.pane.scroll_y > 0:
            top = view.screen()[:2]
            view.pane.action_move(-1)
            assert view.screen()[1:3] == top
            seen.insert(0, view.screen()[0])
        assert seen[0].startswith("  You  Question 1:")
        assert sum(row.startswith("  You  ") for row in seen) == 10
        assert len(seen) == view.pane.model.heights.total


@pytest.mark.parametrize("size", [(10, 3), (1, 1), (60, 20), (200, 60)])
async def test_any_size_of_terminal_will_do(size: tuple[int, int]) -> None:
    async with shown(list_source(every_kind()), size) as view:
        await view.pilot.press("home", "pagedown", "end")
        for y in range(view.pane.size.height):
            assert view.pane.render_line(y).cell_length == view.pane.scrollable_content_region.width
        await view.pilot.resize_terminal(10, 3)
        await view.pilot.resize_terminal(80, 24)
        await view.settled()
        assert "9,999" in view.text()


@pytest.mark.parametrize("size", [(133, 20), (200, 20)])
async def test_a_wide_window_made_narrow_wraps_the_words_anew(size: tuple[int, int]) -> None:
    words = [f"word{number:02}" for number in range(24)]
    async with shown(list_source([answer(1, " ".join(words))]), size) as view:
        for width in (77, size[0], 52):
            await view.pilot.resize_terminal(width, 20)
            await view.settled()
            if width < size[0]:
                assert [word for word in words if word in view.text()] == words


async def test_opening_another_path_keeps_the_place_if_it_is_there() -> None:
    entries: list[Entry] = [answer(n, f"answer {n}") for n in range(1, 60)]
    async with shown(list_source(entries)) as view:
        view.pane.jump_to(20)
        view.pane.set_entries(list_source(entries[:40]))
        await view.settled()
        assert "answer 20" in "\n".join(view.screen()[:2])
        view.pane.set_entries(list_source(entries[:10]))
        await view.settled()
        assert view.pane.following


async def test_a_finished_answer_looks_as_it_did_while_it_came() -> None:
    async with shown(list_source([user(1)]), (80, 60)) as view:
        for place in range(0, len(ANSWER), 11):
            await view.play(AnswerDelta(ANSWER[place : place + 11]), RunEnded("done"))
        before = view.screen()
        await view.play(EntryAppended(answer(2, ANSWER)))
        assert view.screen() == before
        view.pane.set_entries(list_source([user(1), answer(2, ANSWER)]))
        await view.settled()
        assert view.screen() == before


async def test_a_thousand_chunks_are_a_few_looks() -> None:
    now = 1.0
    async with shown(list_source([user(1)]), clock=lambda: now) as view:
        timers = HeldTimers(view.pane)
        for _ in range(500):
            await view.play(AnswerDelta("word "))
        assert view.text().count("word") == 1
        assert [timer.seconds for timer in timers.waiting] == [pytest.approx(FLUSH_SECONDS)]
        now += FLUSH_SECONDS
        timers.go_off()
        assert timers.waiting == []
        await view.settled()
        assert view.text().count("word") > 100
        for _ in range(500):
            view.pane.apply(AnswerDelta("word "))
        assert len(timers.waiting) == 1
        await view.play(EntryAppended(answer(2, "word " * 1_000)))
        assert view.text().count("word") > 100


async def test_nothing_turns_when_motion_is_not_wanted_and_nothing_ticks_out_of_sight() -> None:
    now = 0.0
    async with shown(GeneratedSource(400), clock=lambda: now) as view:
        timers = HeldTimers(view.pane)
        view.pane.set_entries(list_source(every_kind()))
        await view.settled()
        assert timers.waiting == []
        await view.play(ToolStarted("c1", "bash", "make", "{}"))
        assert [timer.seconds for timer in timers.waiting] == [ELAPSED_SECONDS]
        now = 71.0
        timers.go_off()
        await view.settled()
        assert view.screen()[view.row_of("bash make")].startswith("  ◐ bash make")
        assert "1:11" in view.screen()[view.row_of("bash make")]
        await view.pilot.press("home")
        timers.go_off()
        await view.settled()
        assert timers.waiting == []
        view.app.animation_level = "full"
        await view.press("end")
        assert [timer.seconds for timer in timers.waiting] == [SPINNER_SECONDS]
        await view.play(ToolFinished("c1", "bash", "completed", ToolMetadata(), 1.0))
        assert timers.waiting == []


@pytest.mark.parametrize(
    ("kept", "left"),
    [(None, []), (2, ["    half of the answer", "  ✗ Cut off after 4 words · in the tree as #2"])],
)
async def test_an_attempt_that_is_made_again_leaves_its_words_only_where_they_are_kept(
    kept: int | None, left: list[str]
) -> None:
    async with shown(list_source([user(1)])) as view:
        await view.play(AnswerDelta("half of the answer"), ToolCallProgress("c1", "bash", "{"))
        await view.play(
            RetryScheduled(1, 5, 2.0, "The connection broke.", kept=kept), RequestStarted(1, "m")
        )
        assert [row for row in view.screen() if row] == ["  You  question", *left]
        await view.play(AnswerDelta("whole"), EntryAppended(answer(3, "whole")))
        shown_rows = [row for row in view.screen() if row]
        assert shown_rows == ["  You  question", *left, "  whole"]


async def test_thousands_of_results_at_once_are_laid_out_once() -> None:
    calls = [
        ToolCallPart(call_id=f"c{number}", tool="ls", arguments="{}") for number in range(3_000)
    ]
    measured: list[int] = []
    async with shown(list_source([user(1)])) as view:
        model = view.pane.model
        measure, model.measure = (
            model.measure,
            lambda index: measured.append(index) or measure(index),
        )  # type: ignore[method-assign]
        with view.pane.together():
            view.pane.apply(EntryAppended(answer(2, "", *calls)))
            for number, call in enumerate(calls, 3):
                await view.play(EntryAppended(result(number, call)))
        assert "ls 3,000" in view.text()
    assert len(measured) < 20


async def test_a_call_from_first_letter_to_result_stays_one_card() -> None:
    async with shown(list_source([user(1)])) as view:
        await view.play(
            RunStarted(),
            AnswerDelta("Building."),
            ToolCallProgress("c1", "bash", '{"command": "ma'),
        )
        await view.play(EntryAppended(answer(2, "Building.", BASH)))
        assert view.screen()[view.row_of("bash")].startswith("  ○ bash make")
        await view.play(
            ToolStarted("c1", "bash", "make", BASH.arguments),
            ToolOutput("c1", "one\r\ntwo\x1b[1m\n"),
        )
        assert view.screen()[view.row_of("bash")].startswith("  ◐ bash make")
        running = view.screen()
        await view.play(
            ToolFinished("c1", "bash", "completed", ToolMetadata(exit_code=0), 0.2),
            EntryAppended(result(3, BASH, "one\ntwo")),
            RunEnded("done"),
        )
        assert [row[3:60] for row in view.screen()] == [row[3:60] for row in running]
        assert view.screen()[view.row_of("bash")].startswith("  ● bash")
        assert view.text().count("bash") == 1


@pytest.mark.parametrize("late", [ToolOutput("c1", "late"), ToolOutput("gone", "late"), BASH_DONE])
async def test_what_a_call_prints_after_its_end_makes_no_card(late: AgentEvent) -> None:
    async with shown(list_source([user(1)])) as view:
        await view.play(RunStarted(), EntryAppended(answer(2, "", BASH)))
        await view.play(ToolStarted("c1", "bash", "make", BASH.arguments))
        await view.play(EntryAppended(result(3, BASH, "one")), late)
        before = view.text()
        assert "late" not in before
        await view.play(EntryAppended(user(4, "send now")), late, RunEnded("done"))
        assert view.text().count("●") == 1
        assert "tool" not in view.text()


async def test_parallel_calls_keep_their_order_whichever_ends_first() -> None:
    async with shown(list_source([user(1)])) as view:
        await view.play(EntryAppended(answer(2, "", BASH, GREP)))
        await view.play(EntryAppended(result(3, GREP, "a.py:1: x")), EntryAppended(result(4, BASH)))
        assert view.row_of("bash") < view.row_of("grep")
        assert view.pane.model.index_of(3) == view.pane.model.index_of(4) == 1


async def test_calls_without_a_result_are_interrupted_when_the_run_ends() -> None:
    async with shown(list_source([user(1)])) as view:
        timers = HeldTimers(view.pane)
        await view.play(RunStarted(), EntryAppended(answer(2, "", BASH)))
        await view.play(ToolStarted("c1", "bash", "make", BASH.arguments), RunEnded("interrupted"))
        assert view.screen()[view.row_of("bash")].startswith("  ◌ bash")
        assert timers.waiting == []


async def test_a_message_sent_in_between_stands_before_the_answer_that_is_coming_and_nothing_stands_twice() -> (
    None
):
    async with shown(list_source([user(1), answer(2, "only once")])) as view:
        await view.play(EntryAppended(answer(2, "only once")))
        await view.play(
            AnswerDelta("Coming"), EntryAppended(user(3, "wait")), AnswerDelta(" along")
        )
        await view.play(RunEnded("done"))
        assert view.row_of("wait") < view.row_of("Coming along")
        assert view.text().count("only once") == 1


async def test_an_agent_can_be_opened_in_the_middle_of_a_run() -> None:
    path = [user(1), answer(2, "", BASH)]
    source = list_source(path)
    session = SimpleNamespace(
        path_outline=lambda: source.headers, entries=source.load, active_path=lambda: path
    )
    live = LiveAnswer(text="so far", reasoning="hm")
    agent = SimpleNamespace(session=session, running=True, live=live, counter=TokenCounter("m"))
    async with shown() as view:
        view.pane.open(agent)  # type: ignore[arg-type]
        await view.play(AnswerDelta(" and on"), RunEnded("done"))
        assert view.screen()[view.row_of("bash")].startswith("▏ ○")
        assert "so far and on" in view.text()
        await view.play(ToolOutput("c1", "printed"), EntryAppended(result(3, BASH, "printed")))
        assert view.screen()[view.row_of("bash")].startswith("▏ ●")


async def test_a_prune_of_images_says_that_it_took_images() -> None:
    prune = PruneEntry(
        id=2, targets=(1,), tokens_freed=10, reason=Occasion.IMAGES, keep_chars=ALL_TEXT
    )
    async with shown(list_source([user(1), prune])) as view:
        assert "Cleared the images of 1 entry · 10 tokens freed · too many images" in view.text()


async def test_only_the_newest_request_can_be_made_again() -> None:
    failed = AssistantEntry(id=2, parts=(), model="openai/x", finish="error", error="overloaded")
    later = [user(3), answer(4, "done")]
    async with shown(list_source([user(1), failed])) as view:
        assert "overloaded · f8 retry" in view.text()
        await view.play(EntryAppended(later[0]))
        assert "retry" not in view.text()
        assert "overloaded" in view.text()
    async with shown(list_source([user(1), failed, *later])) as view:
        assert "overloaded" in view.text()
        assert "retry" not in view.text()


async def test_a_notice_takes_the_place_of_the_one_before() -> None:
    async with shown(list_source([user(1)])) as view:
        view.pane.show_notice("Compacting [3]")
        view.pane.show_notice("Compacting [2]")
        await view.settled()
        assert ("[3]" in view.text(), "· Compacting [2]" in view.text()) == (False, True)
        view.pane.show_notice("")
        await view.settled()
        assert "Compacting" not in view.text()


async def test_jumping_shows_and_focuses_an_entry_and_a_resize_keeps_the_place() -> None:
    async with shown(GeneratedSource(100_000), (80, 20)) as view:
        assert view.pane.jump_to(50_001)
        await view.settled()
        assert view.screen()[0].startswith(" ▎You  Question 50001:")
        assert view.pane.jump_to(50_003)
        await view.settled()
        assert any(row.startswith(" ▎● grep") for row in view.screen()[:3])
        assert not view.pane.jump_to(200_000)
        view.pane.jump_to(201)
        for width in (40, 120, 80):
            await view.pilot.resize_terminal(width, 20)
            await view.settled()
            assert "You  Question 201:" in view.screen()[0]


async def test_a_command_of_the_user_is_one_block_while_it_runs_and_after() -> None:
    async with shown(list_source([user(1)])) as view:
        await view.play(
            ToolStarted("shell:7", "$", "make all", ""), ToolOutput("shell:7", "compiling\n")
        )
        assert "compiling" in view.text()
        view.pane.apply(
            ToolFinished("shell:7", "bash", "completed", ToolMetadata(exit_code=0), 0.1)
        )
        view.pane.apply(
            EntryAppended(ShellEntry(id=2, command="make all", output="compiled", exit_code=0))
        )
        await view.settled()
        assert view.text().count("make all") == 1
        assert "compiled" in view.text()


async def test_a_command_of_the_user_during_a_run_is_shown_once_and_below() -> None:
    entry = ShellEntry(id=4, command="make all", output="compiled", exit_code=0)
    async with shown(list_source([user(1)])) as view:
        await view.play(RunStarted(), AnswerDelta("An answer"))
        await view.play(
            ToolStarted("shell:7", "$", "make all", ""), ToolOutput("shell:7", "compiling\n")
        )
        await view.play(AnswerDelta(" that goes on."), ToolStarted("shell:8", "$", "ls", ""))
        await view.play(ToolOutput("shell:7", "linking\n"))
        text = view.text()
        assert text.index("An answer that goes on.") < text.index("linking") < text.index("$ ls")
        await view.play(ToolFinished("shell:7", "$", "completed", ToolMetadata(exit_code=0), 0.1))
        await view.play(EntryAppended(answer(2, "An answer that goes on.")))
        await view.play(EntryAppended(user(3, "Next.")), EntryAppended(entry), RunEnded("done"))
        text = view.text()
        assert text.count("make all") == 1
        assert text.index("Next.") < text.index("compiled") < text.index("$ ls")
        await view.play(ToolOutput("shell:8", "a.txt\n"))
        assert "a.txt" in view.text()
        view.pane.apply(EntryAppended(ShellEntry(id=5, command="ls", output="b.txt", exit_code=0)))
        await view.settled()
        assert view.text().count("ls") == 1
        assert "b.txt" in view.text()
