"""The page of costs: a plot by request and by day, and the sums."""

from pathlib import Path
from typing import Any

from tests.support.long_walk import walked
from tests.support.real_stage import RealStage, real_stage, working_script, write_modules
from tests.support.scripted_client import Reply
from tests.support.ui_app import until
from tui_agent.ui.screens.cost import CostScreen
from tui_agent.ui.screens.tree import TreeScreen


async def opened(tmp_path: Path, pilot: Any, stage: RealStage) -> CostScreen:
    await stage.say("Look at module 0.", pilot)
    walked(stage.harness.session, model=stage.harness.agent.model)
    await stage.main.controller.run("cost", "")
    await pilot.pause()
    assert isinstance(stage.screen, CostScreen)
    return stage.screen


def a_stage(tmp_path: Path) -> RealStage:
    (tmp_path / "stage").mkdir()
    write_modules(tmp_path, 1)
    return real_stage(tmp_path, working_script(1))


async def test_two_undos_later_the_session_has_still_cost_what_it_has(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((100, 40)) as pilot:
        await stage.say("Look at module 0.", pilot)
        walked(stage.harness.session, model=stage.harness.agent.model)
        stage.harness.session.move(None)
        await stage.main.controller.run("cost", "")
        await pilot.pause()
        assert "Nothing was sent yet." not in stage.text()
        assert "this branch" in stage.text()
        assert "left at #1" in stage.text()


async def test_the_cursor_goes_along_requests_and_days_and_enter_opens_the_tree(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((100, 40)) as pilot:
        screen = await opened(tmp_path, pilot, stage)
        count = screen.plot.series.count
        assert f"request {count} of {count}" in stage.text()
        await pilot.press("shift+left")
        assert "compaction" in stage.text()
        await pilot.press("v")
        await pilot.pause()
        assert f"day {screen.plot.series.count} of {screen.plot.series.count}" in stage.text()
        await pilot.press("v", "left", "enter")
        await pilot.pause()
        assert isinstance(stage.screen, TreeScreen)


async def test_it_fits_a_small_terminal_and_an_empty_session(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((40, 12)) as pilot:
        await stage.main.controller.run("cost", "")
        await pilot.pause()
        assert "Nothing was sent yet." in stage.text()
        await pilot.press("escape")
        screen = await opened(tmp_path, pilot, stage)
        await until(lambda: screen.sums.max_scroll_y > 0, pilot)
        assert screen.sums.size.height >= 3
        before = screen.sums.scroll_offset.y
        await pilot.press("down", "down")
        await pilot.pause()
        assert screen.sums.scroll_offset.y > before


async def test_without_a_price_there_is_no_empty_plot(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    stage = real_stage(tmp_path, [Reply("Hello.")])
    async with stage.run((80, 24)) as pilot:
        await stage.say("hi", pilot)
        await stage.main.controller.run("cost", "")
        await stage.until_text("The price of 1 request is unknown.", pilot)
        assert isinstance(stage.screen, CostScreen)
        assert not stage.screen.plot.display
        await pilot.press("v")
        assert "by day" not in stage.text()
        assert "$" not in stage.text()
