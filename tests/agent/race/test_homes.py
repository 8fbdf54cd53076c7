"""The copies of a race have an owner, or are found and removed; its branches stay in any case."""

import os
from pathlib import Path

from tests.support.races import RacingClient, begin, racing_agent, writes
from tests.support.scripted_client import Reply
from tui_agent.agent.race.copies import abandoned_homes, remove_left
from tui_agent.session.entries import RaceEntry, RunnerState


def hanging(number: int, step: int) -> Reply:
    if step == 0:
        return Reply(calls=(writes("n.txt", f"{number}\n"),))
    return Reply("Half a sentence", hang=number == 1)


def leave(home: Path) -> None:
    """Make it as old as one that a killed program left."""
    os.utime(home, (1, 1))


async def test_a_race_that_ends_with_its_session_is_written_down(tmp_path: Path) -> None:
    client = RacingClient(hanging)
    harness = racing_agent(tmp_path, client)
    race = await begin(harness)
    await harness.until(lambda: RunnerState.DONE in [row.state for row in race.runners] and client.hanging.is_set())
    leave(race.home.path)
    assert abandoned_homes(tmp_path / "races") == []
    assert not remove_left(race.home.path)

    await race.aclose()
    entry = harness.path()[-1]
    assert isinstance(entry, RaceEntry)
    assert sorted(row.state for row in entry.runners) == [RunnerState.DONE, RunnerState.STOPPED]
    for row in entry.runners:
        plan = await harness.agent.files.plan(row.leaf)
        assert [(step.path, step.what) for step in plan.steps] == [("n.txt", "create")]
    assert list((tmp_path / "races").iterdir()) == []
    await harness.agent.aclose()


async def test_of_a_race_that_was_killed_the_branches_stay_and_the_copies_go(tmp_path: Path) -> None:
    client = RacingClient(hanging)
    harness = racing_agent(tmp_path, client)
    killed = await begin(harness)
    await harness.until(lambda: [row.figures.steps for row in killed.runners] == [2, 2] and client.hanging.is_set())
    left = killed.home.path
    (left / "1" / "sub").mkdir()
    (left / "1" / "sub").chmod(0o500)
    killed.home.release()
    leave(left)
    assert abandoned_homes(tmp_path / "races") == [left]

    client.replies = lambda number, step: Reply("Done.")
    race = await begin(harness)
    await race.wait()
    assert not left.exists()
    roots = {header.parent_id for header in harness.session.skeleton() if header.kind == "user"}
    assert roots == {race.order.start}
    plan = await harness.agent.files.plan(killed.runners[0].record.leaf)
    assert [step.path for step in plan.steps] == ["n.txt"]
    await race.finish(None)
    await killed.end_runners()
    await harness.agent.aclose()
