"""Runners of a race work at the same time, each on a branch of its own and in its own copy of the project."""

from pathlib import Path

from tests.support.races import RacingClient, begin, racing_agent, runs, state_of, writes
from tests.support.scripted_client import Reply
from tui_agent.agent.events import RaceEnded, RaceStarted
from tui_agent.session.entries import RaceEntry, RunnerState


def two(number: int, step: int) -> Reply:
    """Each writes a file of its own name, then says so."""
    if step == 0:
        return Reply(calls=(writes("answer.txt", f"from {number}\n"), runs(f"echo more >> f{number}.txt")), cost=0.01)
    return Reply("Done.", cost=0.02)


async def test_a_plain_race_leaves_the_project_alone_until_one_is_taken(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, RacingClient(two))
    before = state_of(tmp_path / "project")

    race = await begin(harness, check="test -f answer.txt")
    await race.wait()

    assert [runner.state for runner in race.runners] == [RunnerState.PASSED, RunnerState.PASSED]
    assert state_of(tmp_path / "project") == before
    assert [runner.record.files for runner in race.runners] == [2, 2]
    assert len(harness.of(RaceStarted)) == len(harness.of(RaceEnded)) == 1
    roots = {runner.record.root for runner in race.runners}
    assert len(roots) == 2
    assert {harness.session.entry(root).parent_id for root in roots if root} == {race.order.start}
    assert harness.session.leaf == race.order.start

    await race.finish(None)
    await harness.agent.aclose()
    assert isinstance(harness.path()[-1], RaceEntry)
    assert list((tmp_path / "races").iterdir()) == []
