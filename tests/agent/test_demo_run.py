"""The demo model on the real loop with the real tools: what a newcomer sees must really happen."""

from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked
from tui_agent.agent.race.race import Race, RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.model.demo import DEMO_WINDOW, DemoClient, create_demo_workspace
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    PruneEntry,
    RunnerState,
    TextPart,
)

YES, NO = PermissionAnswer(Decision.ONCE), PermissionAnswer(Decision.DENY)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    create_demo_workspace(directory)
    return directory


def last_text(harness) -> str:
    answer = harness.path()[-1]
    assert isinstance(answer, AssistantEntry)
    return answer.text


async def test_going_round_in_circles_asks_before_the_third_round(
    tmp_path: Path, project: Path
) -> None:
    harness = make_agent(tmp_path, DemoClient(pace=0), answer=NO)
    await harness.say("go round in circles")
    (asked,) = [event.request for event in harness.of(PermissionAsked)]
    assert asked.loop
    assert "You stopped me" in last_text(harness)


async def test_filling_the_window_clears_old_outputs(tmp_path: Path, project: Path) -> None:
    harness = make_agent(tmp_path, DemoClient(pace=0), window=DEMO_WINDOW)
    await harness.say("fill the window")
    assert all(result.metadata.truncation is None for result in harness.results())
    # Where a summary was ready first, it cleared them.
    assert harness.entries(PruneEntry) or harness.entries(CompactionEntry)


async def test_every_station_of_the_tour_exists(tmp_path: Path, project: Path) -> None:
    harness = make_agent(tmp_path, DemoClient(pace=0), answer=YES, window=DEMO_WINDOW)
    await harness.say("tour")
    told = {
        "fix the bug": "all tests pass",
        "go round in circles": "You let me",
        "fill the window": "**/compact**",
    }
    stations = [
        words for words in (*told, "the tree", "the race", "the map") if words in last_text(harness)
    ]
    assert len(stations) == 6
    for words in stations:
        await harness.say(words)
        assert "can't answer" not in last_text(harness)
        assert told.get(words, "") in last_text(harness)
    assert "item.price * item.quantity" in (project / "shop" / "cart.py").read_text(
        encoding="utf-8"
    )


async def test_of_three_runners_two_fail_their_check_and_one_is_picked(
    tmp_path: Path, project: Path
) -> None:
    copies = tmp_path / "races"
    harness = make_agent(
        tmp_path,
        DemoClient(pace=0),
        answer=YES,
        window=DEMO_WINDOW,
        keeps_files=True,
        copies=copies,
    )
    await harness.say("the race")
    check = "python3 -m unittest tests.discount"
    assert check in last_text(harness)
    before = (project / "shop" / "cart.py").read_bytes()
    parts, specs = (TextPart(text="give a discount"),), (RunnerSpec(),) * 3
    order = RaceOrder("give a discount", parts, specs, harness.session.leaf, check, "best")
    race = await Race.begin(harness.agent, order)
    await race.over.wait()
    states = [runner.state for runner in race.runners]
    assert sorted(states) == [RunnerState.FAILED, RunnerState.FAILED, RunnerState.PASSED]
    assert race.picked == states.index(RunnerState.PASSED) + 1
    assert (project / "shop" / "cart.py").read_bytes() == before
    await race.finish(race.picked)
