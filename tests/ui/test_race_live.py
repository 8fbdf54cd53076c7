"""A race of real agents on the real screen: begun, followed, entered, taken and looked at again."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.races import ALLOW, RacingClient, make_project, runs, writes
from tests.support.real_stage import RealStage, real_stage
from tests.support.scripted_client import Reply
from tests.support.ui_app import until
from tui_agent.session.entries import RaceEntry, RunnerState
from tui_agent.ui.screens.branch import BranchScreen
from tui_agent.ui.screens.dialogs import ChoiceScreen, LongTextScreen
from tui_agent.ui.screens.diff import DiffScreen
from tui_agent.ui.screens.race import RaceScreen
from tui_agent.ui.screens.tree import TreeScreen

CHECK = "test -f green.txt"
NOW = 1_790_000_000_000


def racing_stage(tmp_path: Path, replies: Any, *, check: str = CHECK) -> RealStage:
    make_project(tmp_path / "project")
    checks = {"check_command": lambda _project: check}
    copies = tmp_path / "races"
    script = RacingClient(replies)._reply
    return real_stage(
        tmp_path,
        script,
        services=checks,
        keeps_files=True,
        copies=copies,
        rules=ALLOW,
        clock=lambda: NOW,
    )


def one_green(number: int, step: int) -> Reply:
    """Two fail the check: only the second writes what it looks for."""
    if step == 0:
        name = "green.txt" if number == 2 else f"red{number}.txt"
        return Reply(
            "I write it.", (writes(name, f"by {number}\n"), runs("rm f2.txt")), cost=0.01 * number
        )
    return Reply("It is done.", cost=0.01)


def one_hangs(number: int, step: int) -> Reply:
    """The first waits in the middle of its answer, the second ends."""
    return (
        Reply("I think about it for long.", hang=True) if number == 1 else one_green(number, step)
    )


async def start(stage: RealStage, pilot: Any, *, runners: int = 3) -> None:
    await pilot.press("f7")
    await until(lambda: isinstance(stage.screen, LongTextScreen), pilot)
    # The task can wait: the form is shown without one, and asks for it before it starts.
    await pilot.press("ctrl+s")
    await stage.until_text("none yet", pilot)
    await pilot.press("enter")
    await until(lambda: isinstance(stage.screen, LongTextScreen), pilot)
    await pilot.press(*"make it green", "ctrl+s")
    for _ in range(3 - runners):
        await stage.until_text("Runner 3", pilot)
        await pilot.press("down", "down", "enter")
        await stage.until_text("Change runner 1", pilot)
        await pilot.press("end", "enter")
    await stage.until_text(f"{runners} attempts", pilot)
    await pilot.press("home", "enter")
    await until(lambda: isinstance(stage.screen, RaceScreen), pilot)


def states(stage: RealStage) -> list[RunnerState]:
    race = stage.main.controller.race
    return [] if race is None else [runner.state for runner in race.runners]


async def over(stage: RealStage, pilot: Any) -> None:
    await until(lambda: states(stage) and all(state.is_over for state in states(stage)), pilot)
    await stage.until_text("t take", pilot)


async def test_one_is_asked_for_followed_compared_taken_and_looked_at_again(tmp_path: Path) -> None:
    stage = racing_stage(tmp_path, one_green)
    project = tmp_path / "project"
    async with stage.run((100, 30)) as pilot:
        await start(stage, pilot)
        await over(stage, pilot)
        assert sorted(states(stage)) == [RunnerState.FAILED, RunnerState.FAILED, RunnerState.PASSED]
        assert not (project / "green.txt").exists()
        await pilot.press("home", "d")
        await until(lambda: isinstance(stage.screen, DiffScreen), pilot)
        assert "green.txt" in stage.text()
        assert "f2.txt" in stage.text()
        await pilot.press("escape")
        await until(lambda: isinstance(stage.screen, RaceScreen), pilot)
        await pilot.press("space", "down", "d")
        await until(lambda: isinstance(stage.screen, DiffScreen), pilot)
        assert "red" in stage.text()
        assert "f2.txt" not in stage.text()
        await pilot.press("escape")
        await until(lambda: isinstance(stage.screen, RaceScreen), pilot)
        await pilot.press("home", "t")
        await until(lambda: stage.screen is stage.main, pilot)
        assert (project / "green.txt").read_text() == "by 2\n"
        await stage.until_text("· taken", pilot)
        assert isinstance(stage.harness.path()[-1], RaceEntry)
        stage.main.view.transcript.focus()
        await pilot.press("o")
        await until(lambda: isinstance(stage.screen, RaceScreen), pilot)
        await stage.until_text("t go there", pilot)
        await pilot.press("down", "enter")
        await until(lambda: isinstance(stage.screen, BranchScreen), pilot)
        await stage.until_text("It is done.", pilot)
        await pilot.press("escape")
        await until(lambda: isinstance(stage.screen, RaceScreen), pilot)
        await pilot.press("x")
        await stage.until_text("The race is over.", pilot)


async def test_a_runner_is_watched_steered_and_stopped(tmp_path: Path) -> None:
    stage = racing_stage(tmp_path, one_hangs)
    async with stage.run((100, 30)) as pilot:
        await start(stage, pilot, runners=2)
        await until(stage.client.hanging.is_set, pilot)
        await until(lambda: RunnerState.PASSED in states(stage), pilot)
        await pilot.press("escape")
        await stage.until_text("race 1 of 2 at work · f7", pilot)
        await pilot.press("f7")
        await until(lambda: isinstance(stage.screen, RaceScreen), pilot)
        working = states(stage).index(RunnerState.WORKING)
        await pilot.press("home", *["down"] * working, "enter")
        await until(lambda: isinstance(stage.screen, BranchScreen), pilot)
        await stage.until_text("I think about it for long.", pilot)
        assert stage.screen.gauge.reading is not None
        assert stage.text().count("I think about it for long.") == 1
        await pilot.press("w")
        await stage.until_text("Message to model", pilot)
        await pilot.press("h", "m", "enter")
        race = stage.main.controller.race
        assert race is not None
        agent = race.runners[working].agent
        assert agent is not None
        await until(lambda: agent.queue, pilot)
        await pilot.press("x")
        await until(lambda: states(stage)[working] is RunnerState.STOPPED, pilot)
        await stage.until_text("t take", pilot)
        await pilot.press("escape")
        await until(lambda: isinstance(stage.screen, RaceScreen), pilot)
        await stage.until_text("■ stopped", pilot)
        await stage.main.controller.run("race", "drop")
        await until(lambda: stage.main.status.race == "", pilot)


async def test_without_a_check_the_work_of_the_one_under_the_cursor_stays_in_sight(
    tmp_path: Path,
) -> None:
    stage = racing_stage(tmp_path, one_green, check="")
    async with stage.run((100, 30)) as pilot:
        await start(stage, pilot, runners=2)
        await over(stage, pilot)
        # Rows of tools stand above it, unless the runner was done before anybody looked.
        await stage.until_text("It is done.", pilot)
        assert '{"path"' not in stage.text()


@pytest.mark.parametrize("size", [(80, 24), (120, 35)])
async def test_the_tree_shows_who_works(tmp_path: Path, size: tuple[int, int]) -> None:
    stage = racing_stage(tmp_path, one_hangs)
    async with stage.run(size) as pilot:
        await start(stage, pilot, runners=2)
        await until(stage.client.hanging.is_set, pilot)
        await until(lambda: RunnerState.PASSED in states(stage), pilot)
        working = states(stage).index(RunnerState.WORKING) + 1
        await pilot.press("escape", "ctrl+t")
        await until(lambda: isinstance(stage.screen, TreeScreen), pilot)
        await stage.until_text("✓ model", pilot)
        text = stage.text()
        assert f"● model {working}" in text
        race = stage.main.controller.race
        assert race is not None
        stage.screen.session_tree.go_to_entry(race.runners[working - 1].record.leaf)
        await pilot.press("o")
        await until(lambda: isinstance(stage.screen, BranchScreen), pilot)


async def test_a_race_begins_at_any_entry_of_the_tree(tmp_path: Path) -> None:
    stage = racing_stage(tmp_path, one_green)
    async with stage.run((100, 30)) as pilot:
        await stage.say("hello", pilot)
        first = next(entry.id for entry in stage.harness.path() if entry.kind == "user")
        await pilot.press("ctrl+t")
        await until(
            lambda: (
                isinstance(stage.screen, TreeScreen) and stage.screen.session_tree.outline.total
            ),
            pilot,
        )
        stage.screen.session_tree.go_to_entry(first)
        await pilot.press("r")
        await until(lambda: isinstance(stage.screen, LongTextScreen), pilot)
        await pilot.press("g", "o", "ctrl+s")
        await stage.until_text(f"Race from #{first}", pilot)
        await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
        await pilot.press("escape")
        await until(lambda: isinstance(stage.screen, TreeScreen), pilot)


@pytest.mark.parametrize("size", [(120, 35), (80, 24)])
async def test_while_they_work_their_calls_are_rows_as_in_the_conversation(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    def slow(number: int, step: int) -> Reply:
        return (
            one_green(number, step) if step == 0 else Reply("I think about it for long.", hang=True)
        )

    stage = racing_stage(tmp_path, slow)
    async with stage.run(size) as pilot:
        await start(stage, pilot, runners=2)
        await stage.until_text("I think about it for long.", pilot)
        await stage.until_text("● write green.txt" if size[0] >= 100 else "● write", pilot)
        assert '{"' not in stage.text()
        assert "Race: make it green" in stage.text()
        await pilot.press("X")
        await over(stage, pilot)
