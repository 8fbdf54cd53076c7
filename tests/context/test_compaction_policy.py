"""When a summary is prepared, by the size and the time of the newest steps."""

from typing import Any

import pytest

from tests.support.texts import said
from tui_agent.context.budget import ContextSize
from tui_agent.context.compaction_policy import kept_ahead, missing_meanwhile, step_sizes
from tui_agent.context.settings import CompactionSettings
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    ToolResultEntry,
    ToolStatus,
)


@pytest.mark.parametrize(
    ("total", "step", "seconds", "threshold", "kept"),
    [
        (50_000, 1_000, 5, 90_000, None),
        (83_000, 1_000, 5, 90_000, None),  # 20 s are five steps of 5 s
        (85_500, 1_000, 5, 90_000, 15_500),
        (83_500, 1_000, 2, 90_000, None),  # 6 at most
        (84_500, 1_000, 2, 90_000, 14_500),
        (85_500, 1_000, 60, 90_000, None),  # 2 at least
        (88_500, 1_000, 60, 90_000, 18_500),
        # 20,000 tokens are kept when the threshold is passed; what is to come is part of them.
        (62_000, 15_000, 5, 90_000, 5_000),  # a quarter of it at least, and no step is jumped over
        (84_000, 0, 5, 90_000, None),  # no step has told how much it brings
        (90_001, 1_000, 5, 90_000, 20_000),  # it is due: written while the work goes on
        (84_000, 1_000, 5, None, None),
    ],
)
def test_it_is_time_as_many_steps_before_the_threshold_as_it_takes(
    total: int, step: int, seconds: int, threshold: int | None, kept: int | None
) -> None:
    size = ContextSize(
        10_000, total - 10_000, total, 100_000, 10_000, threshold, None, estimated=True
    )
    path = [answered(at, at * seconds, after=seconds, tokens=step) for at in range(1, 10)]
    steps = step_sizes(path)
    assert (steps.mean, steps.largest) == (step, step)
    assert kept_ahead(size, steps, CompactionSettings()) == kept


def answered(at: int, ended_at: int, *, after: int, tokens: int = 100) -> AssistantEntry:
    """Return an answer that came ``after`` seconds, at ``ended_at`` seconds."""
    return AssistantEntry(
        id=at, parts=(), model="m", tokens=tokens, started_at=(ended_at - after) * 1_000, created_at=ended_at * 1_000
    )  # fmt: skip


def returned(started_at: int, ended_at: int, **more: Any) -> ToolResultEntry:
    """Return a call's result with the seconds between which it ran."""
    result = ToolResultEntry(call_id="c", tool="bash", status=ToolStatus.COMPLETED, output="")
    times = {"started_at": started_at * 1_000, "ended_at": ended_at * 1_000}
    return result.model_copy(update={**times, "created_at": ended_at * 1_000, **more})


@pytest.mark.parametrize(
    ("path", "seconds"),
    [
        # The user's pauses are no work: an hour before a message, and one before a permission.
        ([answered(1, 10, after=5), answered(2, 20, after=5), said("Go on."), answered(3, 3_625, after=5)], 5),
        ([answered(1, 10, after=5), returned(3_610, 3_612)], 7),
        ([answered(1, 10, after=5), returned(10, 3_610, status=ToolStatus.DENIED)], 5),
        # Calls beside each other take the time of the longest.
        ([answered(1, 10, after=5), returned(10, 20), returned(11, 18), returned(15, 25)], 20),
        # One long step among short ones is no reason to prepare late.
        ([answered(1, 10, after=5), returned(10, 3_610), answered(2, 3_620, after=5), answered(3, 3_630, after=5)], 5),
        # An imported session has no times.
        ([AssistantEntry(id=1, parts=(), model="m", tokens=1, created_at=5_000)], 0),
    ],
)  # fmt: skip
def test_a_step_takes_as_long_as_its_answer_and_its_calls(
    path: list[Entry], seconds: float
) -> None:
    assert step_sizes(path).seconds == seconds


def test_small_steps_after_a_compaction_do_not_hide_the_large_ones_before() -> None:
    sizes = [2_000] * 8 + [100, 300]
    path: list[Entry] = [
        AssistantEntry(id=at, parts=(), model="m", tokens=size, created_at=at * 1_000)
        for at, size in enumerate(sizes, 1)
    ]
    summary = CompactionEntry(
        id=90,
        tokens=9_000,
        summary="Done.",
        first_kept_id=1,
        tokens_before=1,
        tokens_after=1,
        trigger="threshold",
    )
    path.insert(8, summary)
    steps = step_sizes(path)
    assert (steps.mean, steps.largest) == (1_640, 2_000)


@pytest.mark.parametrize(("total", "missing"), [(92_000, 0), (95_000, 0), (96_500, 1_500)])
def test_work_goes_on_over_the_threshold_as_long_as_an_answer_fits(
    total: int, missing: int
) -> None:
    size = ContextSize(10_000, total - 10_000, total, 100_000, 10_000, 90_000, None, estimated=True)
    assert missing_meanwhile(size) == missing
