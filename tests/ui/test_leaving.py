"""Screens over the conversation are left once, whatever tells them to go."""

import asyncio

from textual.content import Content
from textual.widgets import OptionList

from tests.support.ui_app import Stage
from tui_agent.app.frontend import Choice
from tui_agent.ui.screens.dialogs import ChoiceScreen, ReportScreen


def choice() -> ChoiceScreen:
    return ChoiceScreen(Choice("Which way?", [("left", "Left"), ("right", "Right")]))


async def test_enter_held_down_answers_once_and_leaves_the_screen_below(stage: Stage) -> None:
    answers: list[str | None] = []
    async with stage.run() as pilot:
        page, dialog = ReportScreen("Page", Content("text")), choice()
        await stage.app.push_screen(page)
        await stage.app.push_screen(dialog, answers.append)
        listing = dialog.query_one(OptionList)
        for _ in range(3):
            listing.action_select()
        await pilot.pause()
        assert answers == ["left"]
        assert stage.app.screen is page
        page.dismiss()
        page.dismiss()
        await pilot.pause()
        assert stage.app.screen is stage.main
        await pilot.press("a")
        assert stage.main.prompt.text == "a"


async def test_a_covered_screen_takes_what_covers_it_along(stage: Stage) -> None:
    answers: list[str | None] = []
    async with stage.run() as pilot:
        dialog = choice()
        await stage.app.push_screen(dialog, answers.append)
        await stage.app.push_screen(ReportScreen("Above", Content("text")))
        dialog.dismiss("right")
        await pilot.pause()
        assert answers == ["right"]
        assert stage.app.screen is stage.main


async def test_work_on_a_screen_ends_before_its_parts_are_gone(stage: Stage) -> None:
    left: list[bool] = []
    async with stage.run() as pilot:
        page = ReportScreen("Page", Content("text"))
        await stage.app.push_screen(page)
        work = [node.run_worker(asyncio.Event().wait()) for node in (page, page.query("*").last())]

        async def leave() -> None:
            page.dismiss()
            left.append(all(worker.is_cancelled for worker in work))
            await asyncio.sleep(0)
            left.append(stage.app.screen is not page)

        leaving = page.run_worker(leave())
        await leaving.wait()
        await pilot.pause()
    assert left == [True, True]
