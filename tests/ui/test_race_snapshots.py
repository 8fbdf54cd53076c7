"""Pictures of a race: the form, the table while runners work and when they are over, the tree with runners in it."""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.tree_stage import answered, called, login, said, tree_stage
from tests.support.ui_app import make_stage, until
from tests.ui.test_race_screen import OVER, WORKING, FakeRace, open_race, runner
from tui_agent.agent.race.race import RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.app.race_form import ask_for_order
from tui_agent.session.effort import Effort
from tui_agent.session.entries import RunnerState
from tui_agent.session.session import Session
from tui_agent.ui.screens.dialogs import ChoiceScreen

SIZES = [(80, 24), (120, 35)]


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("size", [(40, 12), (80, 24)])
def test_the_form(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    stage = make_stage(tmp_path)
    runners = (RunnerSpec(), RunnerSpec("openai/gpt-5-mini", Effort.HIGH), RunnerSpec(mode="auto-edit"))
    order = RaceOrder("give a discount: a tenth off from ten pieces on", (), runners, None, "make test")

    async def act(pilot: Any) -> None:
        await until(lambda: stage.main.view is not None and stage.main.agent is not None, pilot)
        here, controller = RunnerSpec("anthropic/claude-sonnet-4-5", None, "build"), stage.main.controller
        controller.soon(ask_for_order(controller, order, here, (), lambda _order: "3 runners, at most $1.20.", "Race"))
        await until(lambda: isinstance(stage.app.screen, ChoiceScreen), pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=act)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("over", [False, True], ids=["working", "over"])
def test_the_table(snap_compare: Any, tmp_path: Path, size: tuple[int, int], over: bool) -> None:
    stage = make_stage(tmp_path)

    async def act(pilot: Any) -> None:
        await until(lambda: stage.main.view is not None and stage.main.agent is not None, pilot)
        screen = await open_race(stage, pilot, FakeRace(list(OVER if over else WORKING), asking=0 if over else 1))
        await pilot.press("home", *(["space", "down"] if over else []))
        await until(lambda: len(screen.details.content) > 30, pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=act)


def plant_race(session: Session) -> dict[str, int]:
    """Grow a trunk with three branches that begin with the same message."""
    start = session.append_many(login())[-1].id
    leaves = {}
    for number in range(1, 4):
        session.move(start)
        wish = said("give a discount: ten pieces or more are a tenth cheaper")
        calls = [entry for step in range(number) for entry in called(10 * number + step, "bash", f"make {step}")]
        leaves[f"leaf {number}"] = session.append_many([wish, answered("I look."), *calls, answered("Done.")])[-1].id
    session.move(start)
    return leaves


@pytest.mark.parametrize("size", SIZES)
def test_the_tree_with_runners(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    stage = tree_stage(tmp_path, planting=plant_race)
    states = [RunnerState.WORKING, RunnerState.PASSED, RunnerState.FAILED]
    rows = [
        runner(f"same {number}", state, leaf=stage.names[f"leaf {number}"], steps=number + 1, cost=0.01 * number)
        for number, state in enumerate(states, 1)
    ]

    async def act(pilot: Any) -> None:
        stage.pilot = pilot
        await until(lambda: stage.stage.main.view is not None and stage.stage.main.agent is not None, pilot)
        stage.stage.main.controller.race = SimpleNamespace(  # type: ignore[assignment]
            runners=[SimpleNamespace(figures=row, record=row) for row in rows], aclose=closed
        )
        await stage.open()
        await pilot.pause()

    async def closed() -> None:
        pass

    assert snap_compare(stage.stage.app, terminal_size=size, run_before=act)
