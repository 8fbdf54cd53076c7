"""The product's rules keep more of what is used again than its models do, and the measure itself can be trusted."""

import pytest

from benchmarks.fidelity.gauge import errors
from benchmarks.fidelity.loops import loop_table
from benchmarks.fidelity.product import Ours
from benchmarks.fidelity.report import differences, results
from benchmarks.fidelity.rivals import RIVALS, PiLike
from benchmarks.fidelity.traces import Story, Trace, numbered

WINDOW = 16_384


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return [
        Trace("features", numbered(Story(11, files=40).features(tasks=10))),
        Trace("one run", numbered(Story(12, files=40).one_run(steps=80))),
    ]


@pytest.fixture(scope="module")
def found(traces):
    return list(results((WINDOW,), traces=traces, jobs=1))


def of(found, policy):
    return [result for result in found if result.policy == policy.name]


def test_more_is_there_at_no_more_tokens_than_any_rival_keeps(found):
    compared = {(one.rival, one.share): one for one in differences(found)}
    for rival in RIVALS:
        far = compared[rival.name, "far"]
        assert (far.traces, far.left_out) == (2, 0)
        assert far.ours > far.theirs


def test_no_compaction_misses_its_goal_or_follows_another_at_once(found):
    assert any(ours.health.compactions for ours in of(found, Ours))
    for ours in of(found, Ours):
        assert (ours.health.violations, ours.health.no_progress, ours.health.over_window) == (
            0,
            0,
            0,
        )
    ours, pi = (sum(result.price for result in of(found, policy)) for policy in (Ours, PiLike))
    assert ours < pi * 1.1


def test_the_gauge_is_within_three_percent_and_two_once_it_has_learnt(traces):
    for error in errors(traces):
        assert error.known <= 0.03, error
        assert error.learnt <= 0.02, error
        assert error.learnt < error.by_characters


def test_loops_are_found_and_honest_work_is_left_alone(traces):
    assert loop_table(traces).startswith("Loops: precision 100.0%, recall 100.0%")
