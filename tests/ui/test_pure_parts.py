"""The rules of the interface that need no screen."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual._xterm_parser import XTermParser
from textual.content import Content
from textual.events import Key

from tests.support.fake_agent import SIZE
from tui_agent.agent.events import (
    AnswerDelta,
    CompactionEnded,
    CompactionStarted,
    Decision,
    EntryAppended,
    HookAnswered,
    HookAwaited,
    LiveAnswer,
    PermissionAsked,
    PermissionRequest,
    PermissionSettled,
    PromptProgress,
    RequestStarted,
    RetryScheduled,
    RunEnded,
    RunStarted,
    ToolCallProgress,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from tui_agent.app import format as shown
from tui_agent.app.commands import Command, command_table
from tui_agent.app.intent import CommandIntent, MessageIntent, ShellIntent, parse
from tui_agent.app.run_progress import next_state
from tui_agent.app.run_state import RunState, describe, describe_run
from tui_agent.app.strip_markdown import plain, plain_preview
from tui_agent.context.budget import WINDOW_ORIGINS, ContextSize
from tui_agent.model.catalog import Origin
from tui_agent.plot import FREE, Series, columns, stacked
from tui_agent.session.entries import AssistantEntry, ToolMetadata
from tui_agent.ui.gauge_reading import with_live
from tui_agent.ui.inbox import Inbox
from tui_agent.ui.prompting.completion import (
    Candidate,
    Token,
    merged,
    rank_files,
    rank_labels,
    rank_names,
    token_at,
    with_directories,
)
from tui_agent.ui.prompting.paste import FOLD_LINES, PasteStore, is_large
from tui_agent.ui.screens.picker import matching
from tui_agent.ui.terminal import title_sequence
from tui_agent.ui.widgets.gauge import GaugeReading, bar, extras, numbers
from tui_agent.ui.widgets.key_line import fit_hints, read_hints
from tui_agent.ui.widgets.transcript.blocks import SPINNER, ActivityBlock
from tui_agent.ui.widgets.two_columns import wrap_columns


def test_tokens_are_short() -> None:
    counts = 0, 812, 1_000, 84_249, 999_999, 1_048_576
    assert [shown.tokens(count) for count in counts] == ["0", "812", "1k", "84.2k", "1M", "1.05M"]


def test_nouns_are_counted() -> None:
    found = [
        shown.plural(count, noun)
        for count, noun in ((1, "entry"), (2, "entry"), (3, "day"), (12, "match"))
    ]
    assert found == ["1 entry", "2 entries", "3 days", "12 matches"]


@given(st.text(st.characters()))
def test_one_line_is_one_harmless_line(text: str) -> None:
    line = shown.one_line(text, 40)
    assert len(line) <= 40
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in line)
    line.encode()
    assert not any(
        character in line
        for character in "\u200d\ufe0f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("  ", None),
        ("hello\nworld ", MessageIntent("hello\nworld")),
        ("/help", CommandIntent("help", "")),
        ("/Model  openai/x ", CommandIntent("model", "openai/x")),
        ("/compact keep\nthe names", CommandIntent("compact", "keep\nthe names")),
        ("/octest\nz", CommandIntent("octest", "z")),
        ("/usr/lib is full", MessageIntent("/usr/lib is full")),
        (" /help", MessageIntent("/help")),
        ("!ls", ShellIntent("ls", excluded=False)),
        ("!! env ", ShellIntent("env", excluded=True)),
        ("!", None),
        (" ? ", CommandIntent("help", "")),
        ("?!", MessageIntent("?!")),
    ],
)
def test_what_a_prompt_means(text: str, intent: object) -> None:
    assert parse(text) == intent


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_chips_give_back_exactly_what_was_pasted(texts: list[str]) -> None:
    pastes = PasteStore()
    chips = [pastes.fold(text) for text in texts]
    assert pastes.expand(" ".join(chips)) == " ".join(texts)


def test_a_chip_the_user_typed_stays_text() -> None:
    assert PasteStore().expand("[pasted 20 lines]") == "[pasted 20 lines]"


NAMES = st.text("abchi-", min_size=1, max_size=4)


@given(st.lists(NAMES, min_size=1, max_size=8, unique=True), st.data())
def test_a_command_that_is_typed_in_full_is_first(names: list[str], data: st.DataObject) -> None:
    commands = [Command(name, "help") for name in names]
    commands += [*command_table(), Command("hi", "a command file")]
    typed = data.draw(st.sampled_from([command.name for command in commands]))
    assert rank_names(typed, commands)[0].label == f"/{typed}"


def test_a_skill_is_completed_as_codex_names_it() -> None:
    commands = [
        *command_table(),
        Command("skill:release", "writes notes"),
        Command("skill:rev", ""),
    ]
    token = token_at(["$rel"], 0, 4)
    assert token == Token("command", "skill:rel", 0, 0, 4)
    assert [found.insert for found in rank_names(token.query, commands)] == ["/skill:release "]
    every = token_at(["$"], 0, 1)
    assert every is not None
    assert len(rank_names(every.query, commands)) == 2
    for text in ("$5 is", "cost: $rel", "$rel now"):
        assert token_at([text], 0, len(text)) is None
    home = token_at(["$HOME"], 0, 5)
    assert home is not None
    assert rank_names(home.query, commands) == []


def test_files_rank_by_name_before_directory() -> None:
    assert token_at(['see @"my no'], 0, 11) == Token("mention", "my no", 0, 4, 11)
    assert token_at(['see @"a ""q'], 0, 11) == Token("mention", 'a "q', 0, 4, 11)
    paths = ["views/deep/other.py", "src/auth/views.py", "a/v/i/e/w/s.txt", "tests/test_views.py"]
    assert [found.label for found in rank_files("views", paths)][:2] == [
        "src/auth/views.py",
        "tests/test_views.py",
    ]


def test_a_name_with_a_line_break_is_offered_on_one_line() -> None:
    found = merged([rank_files("a", ["a\nb.txt", "a.txt"])])
    assert [row.label for row in found] == ["a.txt", r"a\nb.txt"]
    assert not any("\n" in row.insert for row in found)


def test_directories_are_offered_and_said_to_be_some() -> None:
    paths = with_directories(["src/auth/views.py", "src/auth/logo.png", "README.md"])
    assert [(found.insert, found.help) for found in rank_files("", paths)][:2] == [
        ("@README.md ", "file"),
        ("@src/ ", "directory"),
    ]
    assert rank_files("auth", paths)[0].label == "src/auth/"
    assert rank_files("logo", paths)[0].help == "image"


def test_candidates_of_several_sources_are_one_list() -> None:
    files = rank_files("rev", [f"old/revision{number}.txt" for number in range(60)])
    agents = [Candidate("@reviewer ", "reviewer", "agent"), Candidate("@scout ", "scout", "agent")]
    together = merged([files, rank_labels("rev", agents)])
    assert "reviewer" in [candidate.label for candidate in together[:2]]
    assert len(together) == 50
    unasked = merged(
        [rank_files("", [f"{number}.txt" for number in range(60)]), rank_labels("", agents)]
    )
    assert [candidate.label for candidate in unasked[-2:]] == ["reviewer", "scout"]


sizes = st.builds(
    ContextSize,
    fixed=st.integers(0, 300_000),
    history=st.integers(0, 300_000),
    total=st.integers(0, 900_000),
    window=st.integers(0, 1_000_000),
    reserve=st.integers(0, 300_000),
    threshold=st.none() | st.integers(-10, 1_000_000),
    exact_until=st.none(),
    estimated=st.booleans(),
)


@given(sizes, st.integers(0, 200))
def test_the_bar_has_exactly_the_width_it_is_given(size: ContextSize, width: int) -> None:
    cells = sum(count for _part, count in bar(size, width))
    assert cells == (width if size.window and width >= 4 else 0)


def test_numbers_say_when_they_are_estimated_and_high() -> None:
    assert numbers(SIZE) == "~84.2k / 200k 42%"
    exact = ContextSize(1_000, 180_000, 181_000, 200_000, 0, None, 7, estimated=False)
    assert numbers(exact) == "181k / 200k ‼ 90%"
    assert (
        numbers(ContextSize(0, 0, 150_000, 200_000, 0, None, 7, estimated=False))
        == "150k / 200k ▲ 75%"
    )


def test_words_beside_the_gauge() -> None:
    size = ContextSize(0, 0, 10, 32_768, 0, None, None, estimated=True, window_origin="assumed")
    assert extras(GaugeReading(size, 0.92, 0.004), 0) == ["window assumed"]
    assert extras(GaugeReading(size, 0.12), 0) == ["cache 12%", "window assumed"]
    over = replace(size, total=40_000)
    assert extras(GaugeReading(over), 0) == ["window assumed"]
    assert extras(GaugeReading(replace(over, window_origin="catalog")), 0) == ["estimated"]
    assert extras(GaugeReading(replace(over, window_origin="catalog", estimated=False)), 0) == [
        "full"
    ]
    learnt = replace(size, window_origin="learnt")
    assert extras(GaugeReading(learnt), 0) == ["window learnt"]
    told = [extras(GaugeReading(size, warm_until=left), 0.0)[0] for left in (300, 61, 60, 0)]
    assert told == ["window assumed", "window assumed", "cache warm 1m", "cache cold"]


def test_the_status_follows_a_run() -> None:
    request = PermissionRequest("1", "bash", "", (), "", ())
    steps = [
        (RunStarted(), "waiting 0 s"),
        (RequestStarted(1, "m"), "waiting 0 s"),
        (RetryScheduled(2, 4, 12.0, "busy"), "retry in 12 s, attempt 2 of 4: busy"),
        (
            RetryScheduled(2, 4, 2.0, "It is loading the model.", loading=40.0),
            "It is loading the model, 40 s",
        ),
        (RequestStarted(1, "m"), "waiting 0 s"),
        (PromptProgress(1_200, 1_981), "reading 1,200 of 1,981 tokens"),
        (AnswerDelta("x"), "streaming 0 s"),
        (PermissionAsked(request), "asks about bash"),
        (PermissionSettled("1", Decision.ONCE), "waiting 0 s"),
        (ToolStarted("1", "bash", "", ""), "running bash 0 s"),
        (ToolStarted("2", "grep", "", ""), "running bash + grep 0 s"),
        (ToolFinished("1", "bash", "completed", ToolMetadata(), 1.0), "running grep 0 s"),
        (ToolFinished("2", "grep", "completed", ToolMetadata(), 1.0), "waiting 0 s"),
        (RunEnded("done"), ""),
    ]
    state = RunState()
    for event, text in steps:
        state = next_state(state, event, 100.0)
        assert describe(state, 100.0) == text


def test_a_model_that_says_nothing_yet_is_told_of() -> None:
    state = next_state(next_state(RunState(), RunStarted(), 90.0), RequestStarted(1, "m"), 100.0)
    assert describe_run(state, 102.0, 0) == "working 12 s · esc stops it"
    assert (
        describe_run(state, 136.0, 0)
        == "working 46 s · no word from the model yet, 36 s · esc stops it"
    )
    assert describe_run(state, 102.0, 4) == "working 12 s · ~1 token · esc stops it"
    assert describe_run(state, 102.0, 9) == "working 12 s · ~2 tokens · esc stops it"
    reading = next_state(state, PromptProgress(1_200, 1_981), 110.0)
    assert (
        describe_run(reading, 110.0, 0)
        == "working 20 s · reading 1,200 of 1,981 tokens · esc stops it"
    )


def test_a_hook_that_the_agent_waits_for_is_shown() -> None:
    awaited, answered = HookAwaited("x", "guard", 1.0), HookAnswered("x", "guard")
    idle = RunState()
    waiting = next_state(idle, awaited, 101.0)
    assert describe_run(waiting, 103.0, 0) == "hook “guard” 3 s · esc stops it"
    assert not next_state(waiting, answered, 103.0).active
    summed = next_state(next_state(waiting, CompactionStarted("manual", 9), 101.0), answered, 102.0)
    assert describe(summed, 103.0) == "compacting 2 s"
    assert not next_state(summed, CompactionEnded(), 104.0).active
    run = next_state(next_state(idle, RunStarted(), 90.0), awaited, 101.0)
    assert describe_run(run, 103.0, 0) == "working 13 s · hook “guard” 3 s · esc stops it"
    # Another call begins beside the one whose hook runs.
    beside = next_state(run, ToolStarted("1", "bash", "", ""), 102.0)
    assert describe_run(beside, 103.0, 0) == "working 13 s · hook “guard” 3 s · esc stops it"
    assert describe(next_state(beside, answered, 104.0), 104.0) == "running bash 2 s"
    assert not next_state(beside, RunEnded("interrupted"), 104.0).active


def test_the_key_for_the_background_fits_into_80_columns() -> None:
    running = next_state(
        next_state(RunState(), RunStarted(), 90.0), ToolStarted("1", "bash", "", ""), 100.0
    )
    text = describe_run(running, 199.0, 4_000, background_key="ctrl+x ctrl+b")
    assert text == "working 1:49 · running bash 1:39 · esc stops it · ctrl+x ctrl+b: background"


def test_the_activity_line_leaves_out_what_does_not_fit() -> None:
    block = ActivityBlock(
        lambda: "working 12 s · running bash 12 s · esc stops it · ^x: background"
    )
    shown = "".join(text for text, _ in block.lines(60)[0].prefix)
    assert shown == f"{SPINNER[0]} working 12 s · running bash 12 s · esc stops it"


def test_the_gauge_grows_with_the_answer_that_is_streamed() -> None:
    grown = with_live(GaugeReading(SIZE), LiveAnswer("x" * 8_000, "y" * 4_000))
    assert numbers(grown.size) == "~87.2k / 200k 44%"


def test_the_status_counts_seconds() -> None:
    state = next_state(RunState(), RequestStarted(1, "m"), 100.0)
    assert describe(state, 103.9) == "waiting 3 s"
    assert describe(state, 227.0) == "waiting 2:07"
    retry = next_state(state, RetryScheduled(1, 3, 12.0, ""), 100.0)
    assert describe(retry, 105.0) == "retry in 7 s, attempt 1 of 3"


class Receiver:
    """A screen that counts what it is told, and when it would be: its timers go off when the test says so."""

    def __init__(self) -> None:
        self.posted = 0
        self.timers: list[Callable[[], None]] = []

    def post_message(self, _message: object) -> None:
        self.posted += 1

    def set_timer(self, _delay: float, callback: Callable[[], None]) -> Mock:
        self.timers.append(callback)
        timer = Mock()
        timer.stop.side_effect = self.timers.clear
        return timer


def test_a_burst_of_deltas_is_one_event_and_keeps_its_order() -> None:
    receiver = Receiver()
    inbox = Inbox(receiver)  # type: ignore[arg-type]
    for event in (
        AnswerDelta("a"),
        AnswerDelta("b"),
        ToolOutput("1", "x"),
        ToolOutput("1", "y"),
        ToolOutput("2", "z"),
    ):
        inbox.put(event)
    assert receiver.posted == 1
    assert inbox.take() == [AnswerDelta("ab"), ToolOutput("1", "xy"), ToolOutput("2", "z")]
    assert inbox.take() == []


def test_the_first_word_of_an_answer_waits_for_nothing_and_comes_after_what_was_before_it() -> None:
    receiver = Receiver()
    inbox = Inbox(receiver)  # type: ignore[arg-type]
    for event in (RunStarted(), RequestStarted(1, "m"), AnswerDelta("a"), RunEnded("done")):
        inbox.put(event)
    assert (receiver.posted, receiver.timers) == (1, [])
    assert inbox.take() == [
        RunStarted(),
        RequestStarted(1, "m"),
        AnswerDelta("a"),
        RunEnded("done"),
    ]
    inbox.put(RunStarted())
    assert (receiver.posted, len(receiver.timers)) == (1, 1)


def test_a_call_is_shown_with_what_follows_it_while_that_comes_at_once() -> None:
    receiver = Receiver()
    inbox = Inbox(receiver)  # type: ignore[arg-type]
    events = [
        ToolCallProgress("1", "bash", '{"command": "echo'),
        ToolCallProgress("1", "bash", '{"command": "echo"}'),
        ToolStarted("1", "bash", "echo", '{"command": "echo"}'),
        ToolFinished("1", "bash", "completed", ToolMetadata(), 0.0),
        RequestStarted(2, "m"),
    ]
    for event in events:
        inbox.put(event)
    assert (receiver.posted, len(receiver.timers)) == (0, 1)
    receiver.timers[0]()
    assert (receiver.posted, receiver.timers) == (1, [])
    assert inbox.take() == events[1:]


def test_what_is_streamed_waits_for_more_of_it_and_nothing_else_waits() -> None:
    receiver, pause = Receiver(), 0.0
    inbox = Inbox(receiver, pause=lambda: pause)  # type: ignore[arg-type]
    inbox.put(AnswerDelta("a"))
    assert (receiver.posted, receiver.timers) == (1, []), "the first word is shown at once"
    inbox.take()

    pause = 0.1
    inbox.put(AnswerDelta("b"))
    inbox.put(AnswerDelta("c"))
    assert (receiver.posted, len(receiver.timers)) == (1, 1)
    receiver.timers[0]()
    assert (receiver.posted, inbox.take()) == (2, [AnswerDelta("bc")])

    inbox.put(AnswerDelta("d"))
    inbox.put(RunEnded("done"))
    assert (receiver.posted, inbox.take()) == (3, [AnswerDelta("d"), RunEnded("done")])

    ending = EntryAppended(AssistantEntry(parts=(), model="m")), RunEnded("done")
    for event in ending:
        inbox.put(event)
    assert (receiver.posted, len(receiver.timers)) == (3, 1), (
        "the words are drawn before what their end changes"
    )
    receiver.timers[0]()
    assert (receiver.posted, inbox.take()) == (4, list(ending))

    pause = 0.0
    inbox.put(AnswerDelta("e"))
    assert (receiver.posted, receiver.timers) == (5, [])


@pytest.mark.parametrize(
    ("sequence", "key"), [("\x1b\r", "alt+enter"), ("\x1b[13;3u", "alt+enter"), ("\r", "enter")]
)
def test_enter_with_modifiers_is_known_from_every_kind_of_terminal(sequence: str, key: str) -> None:
    events = list(XTermParser().feed(sequence))
    assert [event.key for event in events if isinstance(event, Key)] == [key]


def test_a_title_cannot_end_its_sequence() -> None:
    assert title_sequence("a\x07\x1b]52;c;x\x9c\nb") == "\x1b]2;a␇␛]52;c;x⟨U+009C⟩ b\x07"


def test_home_is_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    assert shown.short_path("/home/ada/src") == "~/src"
    assert shown.short_path("/home/adam") == "/home/adam"


def test_a_list_can_be_imported_before_the_conversation() -> None:
    program = (
        "from tui_agent.ui.widgets.line_list import LineList; from "
        "tui_agent.ui.screens.context import ContextScreen"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_the_letters_of_a_long_query_are_looked_for_in_bounded_time() -> None:
    text = "a list of all that is there, again and again " * 8
    rows = [text, "nothing of it"]

    (found,) = matching(rows, "aaa ttt aaa iii ttt sss aaa nnn", str)

    assert found[0] == text
    assert matching(rows, "zzz aaa", str) == []


@pytest.mark.parametrize(
    ("markdown", "read"),
    [
        ("**Hello!** I am *here* and ~~not~~ __there__.", "Hello! I am here and not there."),
        ("## Goal Find it ## Next Steps 1. Test", "Goal Find it Next Steps 1. Test"),
        ("- a `list_of_items` with **`bold`** code", "a list_of_items with bold code"),
        (
            "See [the docs](https://example.com/a_b_c) and ![a picture](x.png)",
            "See the docs and a picture",
        ),
        ("`**kwargs` and `a_b_c` stay", "**kwargs and a_b_c stay"),
        ("```python x = 1 ```", "x = 1"),
        ("**A beginning that was cut o", "A beginning that was cut o"),
        (
            "2 * 3 * 4, snake_case_name, *.py and **/*.py, C# #3",
            "2 * 3 * 4, snake_case_name, *.py and **/*.py, C# #3",
        ),
        (
            "Done. | | before | after | |---|:--:| | `a|b` | 1 | 2 |",
            "Done. · before · after · a|b · 1 · 2",
        ),
        ("Done. | before | after | |---|--", "Done. · before · after"),
        ("cat x | grep y || true", "cat x | grep y || true"),
        (r"| a | b | |---|---| | pipes \| escaped | R&amp;D |", "a · b · pipes | escaped · R&D"),
        ("2 \\* 3 &lt; 7 &#27;[2J &nothing;", "2 * 3 < 7 &#27;[2J &nothing;"),
        ("", ""),
    ],
)
def test_marks_go_and_everything_else_stays(markdown: str, read: str) -> None:
    assert plain(markdown) == read


def test_calls_are_told_by_their_first_argument() -> None:
    calls = 'read {"path": "src/a.py", "offset": 3} · bash {"command": "echo \\"x\\""} · ls {}'
    assert plain_preview("assistant", calls) == 'read src/a.py · bash echo "x" · ls'
    assert plain_preview("assistant", 'grep {"pattern": "a very long one that was c') == (
        "grep a very long one that was c"
    )


def test_what_the_user_wrote_is_as_they_wrote_it() -> None:
    assert plain_preview("user", "**why** {x}") == "**why** {x}"


HINTS = read_hints("↑↓ move  enter remove or keep  ctrl+z take it back  esc back")


def test_hints_are_keys_with_what_they_do_and_a_click() -> None:
    assert HINTS == (
        ("↑↓", "move", ""),
        ("enter", "remove or keep", "app.simulate_key('enter')"),
        ("ctrl+z", "take it back", "app.simulate_key('ctrl+z')"),
        ("esc", "back", "app.simulate_key('escape')"),
    )


@pytest.mark.parametrize(
    ("room", "keys"),
    [
        (80, ["↑↓", "enter", "ctrl+z", "esc"]),
        (57, ["enter", "ctrl+z", "esc"]),
        (30, ["enter", "esc"]),
        (5, ["esc"]),
    ],
)
def test_what_does_not_fit_is_left_out_whole_and_the_way_back_stays(
    room: int, keys: list[str]
) -> None:
    assert [key for key, _, _ in fit_hints(HINTS, room)] == keys


def test_a_second_column_goes_on_under_itself() -> None:
    text = Content("Title\n  /undo      take back the last turn or move\nshort")
    assert wrap_columns(text, 30).plain.split("\n") == [
        "Title",
        "  /undo      take back the",
        "             last turn or move",
        "short",
    ]
    assert wrap_columns(text, 20).plain.split("\n")[1:4] == [
        "  /undo",
        "  take back the",
        "  last turn or move",
    ]


@given(
    heights=st.lists(st.floats(0, 1e6), max_size=300),
    width=st.integers(1, 250),
    marked=st.sets(st.integers(0, 299), max_size=20),
)
def test_every_step_is_in_one_column_and_every_mark_is_under_its_step(
    heights: list[float], width: int, marked: set[int]
) -> None:
    marks = {at: "×" for at in marked if at < len(heights)}
    found = columns(Series((heights,), 100.0, marks), width)
    assert sum(column.cells for column in found) <= width
    assert [at for column in found for at in range(column.first, column.end)] == list(
        range(len(heights))
    )
    assert {
        at for at in marks if not any(one.mark and one.first <= at < one.end for one in found)
    } == set()
    assert all(heights[one.peak] == max(heights[one.first : one.end]) for one in found)


def test_a_width_is_used_up_and_few_steps_stay_narrow() -> None:
    heights = [1.0] * 30
    assert sum(column.cells for column in columns(Series((heights,), 1), 100)) == 100
    assert sum(column.cells for column in columns(Series((heights[:2],), 1), 100)) == 12


@given(st.lists(st.floats(0, 100), min_size=1, max_size=3), st.integers(1, 12))
def test_what_is_not_nothing_shows_and_nothing_is_higher_than_the_plot(
    levels: list[float], height: int
) -> None:
    levels = sorted(levels)
    cells = stacked(levels, 100.0, height)
    assert len(cells) == height
    filled = [cell.glyph for cell in cells if cell.part != FREE]
    assert bool(filled) is (levels[-1] > 0)
    assert " " not in filled


def test_parts_differ_without_colour() -> None:
    render_hints = [stacked(levels, 100, 4) for levels in ([25, 50], [25, 100])]
    assert ["".join(cell.glyph for cell in cells) for cells in render_hints] == ["  █▓", "███▓"]


def test_of_two_marks_in_a_column_the_weightier_is_shown() -> None:
    series = Series(([1.0] * 10,), 1, {2: "×", 3: "◆"}, {"◆": 2, "×": 1})
    assert [one.mark for one in columns(series, 2)] == ["◆", ""]


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_paste_becomes_a_chip_of_lines_exactly_if_it_has_many(end: str) -> None:
    for lines in (FOLD_LINES, FOLD_LINES + 1):
        text = "\n".join(["a"] * lines) + end
        assert is_large(text) is (lines > FOLD_LINES)
        assert PasteStore().fold(text).endswith("lines]") is (lines > FOLD_LINES)


@pytest.mark.parametrize(
    ("wait", "text"),
    [(0.0, "now"), (0.4, "now"), (0.6, "in 1 s"), (12.3, "in 12 s")],
)
def test_a_retry_says_when(wait: float, text: str) -> None:
    assert shown.retry_text("It broke.", wait) == f"It broke. Trying again {text}."


@pytest.mark.parametrize("origin", get_args(Origin))
def test_a_windows_source_has_the_same_word_everywhere(origin: str) -> None:
    size = ContextSize(0, 0, 10, 8_192, 0, None, None, estimated=True, window_origin=origin)
    if extras(GaugeReading(size), 0):
        assert extras(GaugeReading(size), 0) == [f"window {origin}"]
        assert WINDOW_ORIGINS[origin].startswith(origin)
    over = extras(GaugeReading(replace(size, total=9_000)), 0)
    assert over in (["estimated"], [f"window {origin}"], [f"window {WINDOW_ORIGINS[origin]}"])
