"""The dialog of a race: what can be asked for, by key and by mouse, at every size."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.ui_app import Stage, make_stage, screen_text, until
from tui_agent.agent.race.race import RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.app.frontend import RaceForm
from tui_agent.session.effort import Effort
from tui_agent.ui.screens.race_start import RaceStartScreen

MODEL = "anthropic/claude-sonnet-4-5"


def form(*runners: RunnerSpec, task: str = "fix the redirect", check: str = "make test") -> RaceForm:
    order = RaceOrder(task, (), runners or (RunnerSpec(), RunnerSpec(), RunnerSpec()), None, check)
    here = RunnerSpec(MODEL, None, "build")
    modes = ("build", "auto-edit", "plan", "yolo")
    return RaceForm(order, here, modes, lambda order: f"At most ${len(order.specs) * (order.cost or 0.4):.2f} for all.")


class Asked:
    """The dialog, and what it was dismissed with."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.answers: list[RaceOrder | None] = []

    async def open(self, pilot: Any, question: RaceForm) -> RaceStartScreen:
        screen = RaceStartScreen(self.stage.main.controller, question)
        self.stage.app.push_screen(screen, self.answers.append)
        await until(lambda: screen.is_mounted and screen.runners.count and screen.runners.size.height, pilot)
        await until(lambda: "At most" in str(screen.cost.render()), pilot)
        return screen


SIZES = [(40, 12), (80, 24), (200, 50)]


@pytest.mark.parametrize("size", SIZES)
async def test_all_of_it_is_there_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    stage = make_stage(tmp_path)
    async with stage.run(size) as pilot:
        screen = await Asked(stage).open(pilot, form())
        text = screen_text(stage)
        for word in ("fix the redirect", "make test", "At most $1.20", "one that I choose", "claude-sonnet-4-5"):
            assert word in text, text
        assert screen.runners.region.height >= 3


async def test_runners_are_added_removed_and_changed_by_key(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run((80, 24)) as pilot:
        asked = Asked(stage)
        screen = await asked.open(pilot, form())
        screen.runners.focus()
        await until(lambda: "a add  " in screen_text(stage), pilot)
        await pilot.press("a", "e", "down", "enter")
        await until(lambda: "How much runner 2 thinks" in screen_text(stage), pilot)
        await pilot.press("down", "enter")
        await until(lambda: stage.app.screen is screen, pilot)
        await pilot.press("e", "down", "down", "enter")
        await until(lambda: "The mode or agent of runner 2" in screen_text(stage), pilot)
        await pilot.press("down", "down", "enter")
        await until(lambda: stage.app.screen is screen and screen.order.specs[1].mode, pilot)
        await pilot.press("home", "x", "e", "enter")
        await until(lambda: stage.app.screen is not screen, pilot)
        await pilot.press(*"haiku")
        await until(lambda: "claude-haiku-4-5" in screen_text(stage), pilot)
        await pilot.press("enter")
        await until(lambda: stage.app.screen is screen and screen.order.specs[0].model, pilot)
        await pilot.press("ctrl+s")
        await until(lambda: asked.answers, pilot)
        haiku = RunnerSpec("anthropic/claude-haiku-4-5", Effort.OFF, "auto-edit")
        assert asked.answers == [
            RaceOrder("fix the redirect", (), (haiku, RunnerSpec(), RunnerSpec()), None, "make test")
        ]


async def test_a_race_has_two_to_eight_runners_and_a_task(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run((80, 24)) as pilot:
        asked = Asked(stage)
        screen = await asked.open(pilot, form(RunnerSpec(), RunnerSpec(), task=""))
        await pilot.press("ctrl+s")
        await until(lambda: "Say what the runners are to do" in screen_text(stage), pilot)
        screen.runners.focus()
        await pilot.press("x")
        await until(lambda: "at least 2 runners" in screen_text(stage), pilot)
        await pilot.press(*"aaaaaaa")
        await until(lambda: "at most 8 runners" in screen_text(stage), pilot)
        assert len(screen.order.specs) == 8
        await pilot.press("escape")
        await until(lambda: asked.answers == [None], pilot)


async def test_all_of_it_goes_by_mouse(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run((80, 24)) as pilot:
        asked = Asked(stage)
        screen = await asked.open(pilot, form())
        await pilot.click(screen.pick)
        await until(lambda: screen.order.pick == "first-green", pilot)
        await pilot.click(screen.runners, offset=(8, 2))
        await until(lambda: screen.runners.cursor == 1 and "a add  " in screen_text(stage), pilot)
        await pilot.click(screen.keys, offset=(2, 0))
        await until(lambda: len(screen.order.specs) == 4, pilot)
        await pilot.click(screen.runners, offset=(8, 1), times=2)
        await until(lambda: "What of runner 1?" in screen_text(stage), pilot)
        await pilot.press("escape")
        await until(lambda: stage.app.screen is screen, pilot)
        screen.check.focus()
        await until(
            lambda: screen_text(stage).rstrip().endswith("esc back") and "a add" not in screen_text(stage), pilot
        )
        await pilot.click(screen.keys, offset=(2, 0))
        await until(lambda: asked.answers, pilot)
        assert asked.answers[0] is not None
        assert asked.answers[0].pick == "first-green"


async def test_the_limit_and_the_rule_are_part_of_the_price(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run((80, 24)) as pilot:
        screen = await Asked(stage).open(pilot, form())
        screen.limit.focus()
        await pilot.press("2")
        await until(lambda: "At most $6.00" in screen_text(stage), pilot)
        await pilot.press("tab", "space", "right")
        await until(lambda: "the best of all" in screen_text(stage), pilot)
        assert (screen.order.cost, screen.order.pick) == (2.0, "best")
