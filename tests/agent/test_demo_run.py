"""The demo model on the real loop with the real tools: what a newcomer sees must really happen."""

from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked
from tui_agent.agent.race.race import Race, RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.model.demo import DEMO_WINDOW, DemoClient, create_demo_workspace
from tui_agent.session.entries import AssistantEntry, PruneEntry, RunnerState, TextPart, ToolResultEntry, ToolStatus

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


def tools_run(harness) -> list[tuple[str, ToolStatus]]:
    return [(entry.tool, entry.status) for entry in harness.path() if isinstance(entry, ToolResultEntry)]


async def test_the_bug_is_really_fixed(tmp_path: Path, project: Path) -> None:
    harness = make_agent(tmp_path, DemoClient(pace=0), answer=YES)
    ended = await harness.say("fix the bug")
    assert ended.reason == "done"
    done = ToolStatus.COMPLETED
    failed = ToolStatus.ERROR
    statuses = dict(tools_run(harness)[4:6])
    tools = [tool for tool, _ in tools_run(harness)]
    # Both look at the same time, and either may be first.
    assert (sorted(tools[:2]), tools[2:]) == (["grep", "ls"], ["read", "read", "bash", "edit", "bash"])
    assert statuses["bash"] in {done, failed}
    assert statuses["edit"] is done
    assert "all tests pass" in last_text(harness)
    assert "item.price * item.quantity" in (project / "shop" / "cart.py").read_text(encoding="utf-8")


async def test_going_round_in_circles_asks_before_the_third_round(tmp_path: Path, project: Path) -> None:
    harness = make_agent(tmp_path, DemoClient(pace=0), answer=NO)
    await harness.say("go round in circles")
    (asked,) = [event.request for event in harness.of(PermissionAsked)]
    assert asked.loop
    assert "You stopped me" in last_text(harness)
    allowed = make_agent(tmp_path, DemoClient(pace=0), answer=YES)
    await allowed.say("go round in circles")
    assert "You let me" in last_text(allowed)


async def test_filling_the_window_prunes_what_is_old_and_compacting_can_be_undone(
    tmp_path: Path, project: Path
) -> None:
    harness = make_agent(tmp_path, DemoClient(pace=0), window=DEMO_WINDOW)
    ended = await harness.say("fill the window")
    assert ended.reason == "done"
    assert all(entry.metadata.truncation is None for entry in harness.path() if isinstance(entry, ToolResultEntry))
    assert any(isinstance(entry, PruneEntry) for entry in harness.path())
    assert "**/compact**" in last_text(harness)
    leaf = harness.session.leaf
    before = harness.agent.context_size().total
    assert (await harness.agent.compact()).problem is None
    assert harness.agent.context_size().total < before
    await harness.agent.navigator.go(leaf)
    assert harness.agent.context_size().total == pytest.approx(before, rel=0.2)


async def test_every_station_of_the_tour_exists(tmp_path: Path, project: Path) -> None:
    harness = make_agent(tmp_path, DemoClient(pace=0), answer=YES, window=DEMO_WINDOW)
    await harness.say("tour")
    stations = [
        words
        for words in ("fix the bug", "go round in circles", "fill the window", "the tree", "the race", "the map")
        if words in last_text(harness)
    ]
    assert len(stations) == 6
    for words in stations:
        await harness.say(words)
        assert "can't answer" not in last_text(harness)


async def test_of_three_runners_two_fail_their_check_and_one_is_picked(tmp_path: Path, project: Path) -> None:
    copies = tmp_path / "races"
    harness = make_agent(tmp_path, DemoClient(pace=0), answer=YES, window=DEMO_WINDOW, keeps_files=True, copies=copies)
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
