"""A finished turn is its message, one line for the work and its answer, wherever it was loaded from."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.transcript import shown
from tests.support.ui_app import STILL, make_stage, press, screen_text
from tests.ui.transcript.samples import list_source
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    ModeChangeEntry,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.ui.widgets.transcript.blocks import Fold
from tui_agent.ui.widgets.transcript.feed import LiveFeed
from tui_agent.ui.widgets.transcript.model import Position, TranscriptModel
from tui_agent.ui.widgets.transcript.turns import KEY, FoldTurns


def asked(number: int, text: str, **fields: object) -> UserEntry:
    return UserEntry(id=number, parts=(TextPart(text=text),), created_at=number * 1_000, **fields)


def said(number: int, text: str) -> AssistantEntry:
    return AssistantEntry(
        id=number, parts=(TextPart(text=text),), model="m", created_at=number * 1_000
    )


def worked(number: int, tool: str, path: str) -> list[Entry]:
    call = ToolCallPart(call_id=f"c{number}", tool=tool, arguments="{}")
    result = ToolResultEntry(
        id=number + 1, call_id=call.call_id, tool=tool, status=ToolStatus.COMPLETED, output=f"out {number}",
        title=path, metadata=ToolMetadata(path=path),
    )  # fmt: skip
    return [AssistantEntry(id=number, parts=(call,), model="m", created_at=number * 1_000), result]


def finished() -> list[Entry]:
    return [
        asked(1, "fix the cart"),
        *worked(2, "read", "shop/cart.py"),
        *worked(4, "edit", "shop/cart.py"),
        *worked(6, "edit", "shop/view.py"),
        said(8, "It is fixed."),
        asked(20, "and now?"),
    ]


def model_of(entries: Sequence[Entry], how: FoldTurns = "work") -> TranscriptModel:
    model = TranscriptModel(78)
    model.fold_turns = how
    model.open(list_source(list(entries)))
    return model


def drawn(model: TranscriptModel) -> list[str]:
    lines = [row.line for row in model.rows(Position(0), 10_000)]
    texts = ["".join(text for text, _ in (*line.prefix, *line.content())).strip() for line in lines]
    return [text for text in texts if text]


def test_the_work_of_a_finished_turn_is_one_line_and_its_answer_stays() -> None:
    assert drawn(model_of(finished())) == [
        "You  fix the cart",
        "▸ changed cart.py, view.py · 3 calls · 7.0 s",
        "It is fixed.",
        "You  and now?",
    ]
    assert drawn(model_of(finished(), "all"))[2] == "You  and now?"
    assert len(drawn(model_of(finished(), "off"))) == 6


def test_the_line_of_a_turn_that_was_stopped_says_so() -> None:
    call, result = worked(2, "bash", "")
    stopped = result.model_copy(update={"status": ToolStatus.INTERRUPTED})
    assert drawn(model_of([asked(1, "wait"), call, stopped, asked(9, "go on")])) == [
        "You  wait",
        "▸ bash · 1 call · 1.0 s · interrupted",
        "You  go on",
    ]


@pytest.mark.parametrize(
    ("status", "words"), [(ToolStatus.DENIED, "1 denied"), (ToolStatus.ERROR, "1 failed")]
)
def test_the_line_of_a_turn_counts_the_calls_that_were_denied_or_failed(
    status: ToolStatus, words: str
) -> None:
    call, result = worked(2, "bash", "")
    ended = result.model_copy(update={"status": status})
    line = drawn(model_of([asked(1, "push it"), call, ended, asked(9, "go on")]))[1]
    assert line == f"▸ bash · 1 call · 1.0 s · {words}"


def test_the_newest_turn_and_one_without_calls_are_shown_as_they_are() -> None:
    entries = [asked(1, "hello"), said(2, "Hello."), *finished()[1:-1]]
    assert not [line for line in drawn(model_of(entries)) if line.startswith("▸")]
    assert drawn(model_of([asked(1, "hello"), said(2, "Hello."), asked(3, "bye")])) == [
        "You  hello",
        "Hello.",
        "You  bye",
    ]


def test_a_message_sent_in_between_and_the_rule_of_a_summary_stay_in_sight() -> None:
    steering = asked(5, "use pytest", mid_run=True)
    compaction = CompactionEntry(
        id=12,
        summary="s",
        first_kept_id=8,
        tokens_before=9_000,
        tokens_after=900,
        trigger="threshold",
        prepared=True,
    )
    entries = [
        asked(1, "fix it"), *worked(2, "read", "a.py"), steering, *worked(6, "edit", "a.py"), *worked(8, "bash", ""),
        ModeChangeEntry(id=10, mode="plan"), compaction, asked(13, "Go on.", synthetic="continue"),
        said(14, "Done."), asked(15, "thanks"),
    ]  # fmt: skip
    lines = drawn(model_of(entries))
    assert "You  sent while working · use pytest" in lines
    assert [line for line in lines if line.startswith("▸")] == ["▸ changed a.py · 3 calls · 13 s"]
    assert any("6 entries summarised · 9k → 900 · prepared" in line for line in lines)
    assert not [line for line in lines if "continue" in line or line[:4] == "read"]
    assert lines[-2:] == ["Done.", "You  thanks"]


def test_it_opens_and_folds_and_going_to_something_in_it_opens_it() -> None:
    model = model_of(finished())
    before = drawn(model)
    model.folds[1, KEY] = Fold.FULL
    model.refold_turn(0)
    opened = drawn(model)
    assert opened[0] == before[0]
    assert opened[1].startswith("▾ changed")
    assert [line for line in opened if "shop/view.py" in line]
    model.folds[1, KEY] = Fold.CLOSED
    model.refold_turn(0)
    assert drawn(model) == before
    model.reveal(4)
    assert drawn(model) == opened


TEXTS = st.sampled_from(["look", "fix it", "why?"])
STEPS = st.lists(st.sampled_from(["read", "edit", "bash", "steer", "note", "mode"]), max_size=6)


@given(st.lists(st.tuples(TEXTS, STEPS), min_size=1, max_size=5))
def test_live_and_loaded_it_looks_the_same_and_no_message_is_ever_hidden(
    turns: list[tuple[str, list[str]]],
) -> None:
    entries: list[Entry] = []
    for text, steps in turns:
        entries.append(asked(len(entries) + 1, text))
        for step in steps:
            number = len(entries) + 1
            match step:
                case "steer":
                    entries.append(asked(number, f"steer {number}", mid_run=True))
                case "note":
                    entries.append(asked(number, "note", synthetic="job ended"))
                case "mode":
                    entries.append(ModeChangeEntry(id=number, mode="plan"))
                case _:
                    entries += worked(number, step, f"f{number}.py")
        entries.append(said(len(entries) + 1, f"answer {len(entries) + 1}"))
    loaded = model_of(entries)
    live = model_of([])
    live.source = list_source(entries)
    feed = LiveFeed(live)
    for entry in entries:
        feed.append(entry)
        for index in sorted(feed.changed):
            live.remeasure(index)
        feed.changed.clear()
    assert drawn(live) == drawn(loaded)
    messages = [
        entry for entry in entries if isinstance(entry, UserEntry) and entry.synthetic is None
    ]
    assert len([line for line in drawn(loaded) if line.startswith("You  ")]) == len(messages)
    assert [line for line in drawn(loaded) if line.startswith("answer")] == [f"answer {entry.id}" for entry in entries
        if isinstance(entry, AssistantEntry) and isinstance(entry.parts[0], TextPart)]  # fmt: skip
    loaded.fold_finished("off")
    for place in range(len(loaded)):
        live.folds[live.ids[place], KEY] = Fold.FULL
    live.fold_finished("all")
    assert [line for line in drawn(live) if not line.startswith("▾")] == drawn(loaded)


async def test_a_click_opens_a_turn_and_what_is_read_does_not_fold_away() -> None:
    async with shown(list_source(finished())) as view:
        view.pane.fold_turns("work")
        await view.pilot.pause()
        row = view.row_of("▸ changed")
        await view.click(3, row)
        assert view.row_of("▾ changed") == row
        assert "shop/view.py" in "\n".join(view.screen())


async def test_ctrl_up_and_down_go_from_the_prompt_to_your_messages(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run((80, 20)) as pilot:
        for number in range(1, 4):
            stage.agent.append(asked(0, f"message {number}"), said(0, "word\n\n" * 30))
        await pilot.pause()
        await press(pilot, "ctrl+up")
        assert screen_text(stage).split("\n")[2].split() == ["▏", "You", "message", "3"]
        await press(pilot, "ctrl+up")
        assert "message 2" in screen_text(stage).split("\n")[2]
        await press(pilot, "ctrl+down")
        assert "message 3" in screen_text(stage).split("\n")[2]
        assert stage.main.prompt.has_focus
        await press(pilot, "ctrl+down")
        assert stage.view.transcript.following


@pytest.mark.parametrize("how", ["off", "work"])
async def test_the_setting_counts_at_once(tmp_path: Path, how: FoldTurns) -> None:
    stage = make_stage(tmp_path, settings=STILL.model_copy(update={"fold_turns": how}))
    async with stage.run((80, 30)) as pilot:
        stage.agent.append(*[entry.model_copy(update={"id": 0}) for entry in finished()])
        await pilot.pause()
        assert ("▸ changed cart.py" in screen_text(stage)) is (how == "work")
