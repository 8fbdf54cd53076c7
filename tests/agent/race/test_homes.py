"""The copies of a race have an owner, or are found and removed."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.races import RacingClient, begin, racing_agent, writes
from tests.support.scripted_client import Reply
from tui_agent.agent.race.race import Race
from tui_agent.agent.race.race_store import look_through, remove_left
from tui_agent.session.entries import RunnerState


def hanging(number: int, step: int) -> Reply:
    if step == 0:
        return Reply(calls=(writes("n.txt", f"{number}\n"),))
    return Reply("Half a sentence", hang=number == 1)


def states(race: Race) -> list[RunnerState]:
    return [runner.state for runner in race.runners]


async def test_a_race_that_is_let_go_is_found_again_and_can_be_continued(tmp_path: Path) -> None:
    client = RacingClient(hanging)
    harness = racing_agent(tmp_path, client)
    race = await begin(harness)
    await harness.until(lambda: RunnerState.DONE in states(race) and client.hanging.is_set())
    (state,) = look_through(tmp_path / "races")
    assert state.in_use
    assert not remove_left(state.path)
    assert Race.left_by_crash(harness.agent) == []

    await race.aclose()
    (again,) = Race.left_by_crash(harness.agent)
    assert sorted(states(again)) == [RunnerState.CUT_OFF, RunnerState.DONE]
    cut = states(again).index(RunnerState.CUT_OFF)
    client.replies = lambda number, step: Reply("Done.")
    again.resume(cut + 1)
    await again.wait()
    assert states(again) == [RunnerState.DONE] * 2
    assert again.runners[cut].record.files == 1
    await again.finish(None)
    assert list(look_through(tmp_path / "races")) == []
    await harness.agent.aclose()


def test_what_belongs_to_nobody_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "races" / "ab12" / "1"
    left.mkdir(parents=True)
    (left / "f.txt").write_text("x")
    left.chmod(0o500)
    (state,) = look_through(tmp_path / "races")
    assert not state.in_use
    assert state.record is None
    assert remove_left(state.path)


async def test_what_was_changed_just_before_a_kill_is_the_runners(tmp_path: Path) -> None:
    """A kill between a command and its checkpoint: the copy is further than the branch says."""
    client = RacingClient(hanging)
    harness = racing_agent(tmp_path, client)
    race = await begin(harness)
    await harness.until(lambda: RunnerState.DONE in states(race) and client.hanging.is_set())
    cut = 1 - states(race).index(RunnerState.DONE)
    copy = race.runners[cut].copy
    assert copy is not None
    await race.aclose()
    (copy.root / "f0.txt").write_text("changed unseen\n")
    (copy.root / "f2.txt").unlink()
    (again,) = Race.left_by_crash(harness.agent)
    client.replies = lambda number, step: Reply("Done.")
    again.resume(cut + 1)
    await again.wait()
    row = again.runners[cut].record
    assert (row.state, row.files) == (RunnerState.DONE, 3)
    await again.end_runners()
    leaf = again.runners[cut].record.leaf
    plan = await harness.agent.files.plan(leaf)
    assert {(step.path, step.what) for step in plan.steps} == {
        ("f0.txt", "change"),
        ("f2.txt", "delete"),
        ("n.txt", "create"),
    }
    await again.finish(None)
    await harness.agent.aclose()


async def test_a_copy_that_was_cut_short_is_made_anew(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, RacingClient(lambda _number, _step: Reply("Done.")))
    race = await begin(harness)
    await race.wait()
    await race.aclose()
    record = race.record.model_copy(update={"shared": {}})
    rows = [row.model_copy(update={"root": None, "leaf": None, "state": RunnerState.WAITING}) for row in record.runners]
    race.home.save(record.model_copy(update={"runners": tuple(rows)}))
    (race.home.path / "1" / "f0.txt").unlink()
    (again,) = Race.left_by_crash(harness.agent)
    again.resume(1)
    again.resume(2)
    await again.wait()
    assert states(again) == [RunnerState.DONE] * 2
    copy = again.runners[0].copy
    assert copy is not None
    assert (copy.root / "f0.txt").exists()
    await again.finish(None)
    await harness.agent.aclose()


async def test_what_a_killed_runner_had_used_is_read_from_its_branch_and_counts(tmp_path: Path) -> None:
    def paid(number: int, step: int) -> Reply:
        return replace(hanging(number, step), cost=0.04)

    client = RacingClient(paid)
    harness = racing_agent(tmp_path, client)
    race = await begin(harness, cost=0.05)
    await harness.until(lambda: RunnerState.DONE in states(race) and client.hanging.is_set())
    await race.aclose()
    record = race.record.model_copy(update={"cost": 0.03})
    unwritten = {"steps": 0, "tokens": 0, "cost": 0.0}
    rows = [row.model_copy(update={} if row.state.is_over else unwritten) for row in record.runners]
    race.home.save(record.model_copy(update={"runners": tuple(rows)}))

    (again,) = Race.left_by_crash(harness.agent)
    cut = states(again).index(RunnerState.CUT_OFF)
    used = again.runners[cut].record
    assert used.cost == pytest.approx(0.04)
    assert used.tokens > 0
    again.resume(cut + 1)
    await again.wait()
    now = again.runners[cut].record
    assert (now.state, now.cost) == (RunnerState.ERROR, pytest.approx(0.04))
    assert "$0.0400 of $0.0300 are spent" in now.problem
    await again.finish(None)
    await harness.agent.aclose()
