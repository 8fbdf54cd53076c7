"""Whatever fails on a page closes that page with a sentence; the program stays, and so does what is below."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Input, OptionList, Static

from tests.support.ui_app import Stage, press, press_at_once, screen_text, until
from tui_agent.app.frontend import Choice
from tui_agent.errors import UserFacingError
from tui_agent.ui.error_boundary import PageScreen
from tui_agent.ui.screens.dialogs import ChoiceScreen, ReportScreen


class BrokenError(RuntimeError):
    """What fails here."""


def fail(*_given: object) -> Any:
    raise BrokenError


class Plain(PageScreen[str]):
    count = reactive(0, init=False)

    def compose(self) -> ComposeResult:
        yield Vertical(Input(), OptionList("one", "two"), Static("a page"))


def refusing(_self: object) -> None:
    raise UserFacingError("This can't be shown.")


def with_part(method: str) -> Callable[[object], ComposeResult]:
    """Return a page's ``compose`` that yields a part of which a method fails."""
    part = type("Part", (Static,), {method: fail})
    return lambda _self: iter([Vertical(part())])


REFUSES = "refuses to mount"
PAGES: dict[str, dict[str, Any]] = {
    "fails to compose": {"compose": fail},
    "a part fails to compose": {"compose": with_part("compose")},
    "fails to mount": {"on_mount": fail},
    REFUSES: {"on_mount": refusing},
    "fails when shown": {"on_screen_resume": fail},
    "fails to paint": {"compose": with_part("render")},
    "fails after a refresh": {"on_mount": lambda self: self.call_after_refresh(fail)},
    "fails at a timer": {"on_mount": lambda self: self.set_timer(0.001, fail)},
    "fails at an interval": {"on_mount": lambda self: self.query_one(Vertical).set_interval(0.001, fail)},
    "fails when watching": {
        "on_mount": lambda self: self.set_timer(0.001, lambda: setattr(self, "count", 1)), "watch_count": fail,
    },
    "fails when idle": {"on_idle": fail},
}  # fmt: skip
"""Pages that fail somewhere, by what they do: the methods that make them so."""


def take_defects(stage: Stage) -> list[type]:
    """Return what failed, which was meant to."""
    found = [type(error) for error in stage.defects]
    stage.defects.clear()
    return found


@pytest.mark.parametrize("what", PAGES)
async def test_a_page_that_fails_is_closed_with_a_sentence(stage: Stage, what: str) -> None:
    answers: list[object] = []
    async with stage.run(notifications=True) as pilot:
        broken = type("Broken", (Plain,), PAGES[what])()
        stage.app.push_screen(broken, answers.append)
        await until(lambda: answers, pilot)
        await until(lambda: not broken.is_running, pilot)
        assert answers == [None]
        assert stage.app.screen is stage.main
        said = "This can't be shown." if what == REFUSES else "internal error (BrokenError)"
        assert [toast for toast in stage.toasts if said in toast]
        await pilot.press("a")
        assert stage.main.prompt.text == "a"
        assert set(take_defects(stage)) == ({BrokenError} if what != REFUSES else set())


async def test_what_a_person_asks_for_in_vain_leaves_the_page_open(stage: Stage) -> None:
    class Keys(Plain):
        BINDINGS = (("f2", "fail", ""),)

        def action_fail(self) -> None:
            fail()

        def on_option_list_option_selected(self) -> None:
            fail()

    async with stage.run() as pilot:
        page = Keys()
        await stage.app.push_screen(page)
        await press(pilot, "f2", "tab", "enter")
        assert take_defects(stage) == [BrokenError, BrokenError]
        assert stage.app.screen is page
        await pilot.press("down", "enter")
        assert take_defects(stage) == [BrokenError]


async def test_what_fails_below_all_pages_is_said(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.main.call_after_refresh(fail)
        await pilot.pause()
        assert take_defects(stage) == [BrokenError]
        assert ["internal error" in toast for toast in stage.toasts] == [True]
        await pilot.press("a")
        assert stage.main.prompt.text == "a"


async def test_work_of_a_page_ends_before_its_parts_are_gone(stage: Stage) -> None:
    seen: list[tuple[str, bool]] = []

    class Waiting(Plain):
        async def on_mount(self) -> None:
            self.when_left(lambda: self.note("left"))
            try:
                await asyncio.Event().wait()
            finally:
                self.note("mounting")

        def note(self, what: str) -> None:
            seen.append((what, bool(self.query(Static))))

    async with stage.run() as pilot:
        page = Waiting()
        stage.app.push_screen(page)
        await until(lambda: page.query(Static), pilot)
        page.dismiss()
        await until(lambda: not page.is_running, pilot)
        assert seen == [("left", True), ("mounting", True)]
        page.when_left(lambda: page.note("late"))
        assert seen[2:] == [("late", False)]
        assert stage.app.screen is stage.main


async def test_a_page_is_left_before_its_callback(stage: Stage) -> None:
    async with stage.run() as pilot:
        for turns in range(8):
            shown: Plain = type("Broken", (Plain,), PAGES["fails after a refresh"])()
            stage.app.push_screen(shown)
            for _ in range(turns):
                await asyncio.sleep(0)
            shown.dismiss()
            await until(lambda shown=shown: not shown.is_running, pilot)  # type: ignore[misc]
            take_defects(stage)
        assert stage.app.screen is stage.main
        assert "internal" not in screen_text(stage)


async def test_a_page_is_given_keys_and_left_while_it_is_built(stage: Stage) -> None:
    async with stage.run() as pilot:
        tree = (
            ["ctrl+t", "escape"],
            ["ctrl+t", "s", "escape"],
            ["ctrl+t", "space", "escape", "escape"],
        )
        for keys in (*tree, ["ctrl+p", "pagedown", "down", "pageup"]):
            press_at_once(stage.app, *keys)
            await pilot.pause()
            while stage.app.screen is not stage.main:
                await pilot.press("escape")


async def test_a_click_on_what_was_just_removed_hits_nothing(stage: Stage) -> None:
    async with stage.run() as pilot:
        page = Plain()
        await stage.app.push_screen(page)
        await pilot.pause()
        part = page.query_one(Static)
        x, y = part.region.offset
        assert page.get_widget_and_offset_at(x, y)[0] is part
        with stage.app.batch_update():
            await part.remove()
            assert part.parent is None
            assert page.get_widget_and_offset_at(x, y) == (None, None)


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
