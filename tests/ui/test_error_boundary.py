"""Whatever fails on a page closes that page with a sentence; the program stays, and so does what is below."""

import asyncio
from pathlib import Path

import pytest
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import reactive
from textual.widgets import Input, OptionList, Static

from tests.support.ui_app import Stage, make_stage, press_at_once, screen_text, until
from tui_agent.errors import UserFacingError
from tui_agent.ui.error_boundary import PageScreen
from tui_agent.ui.screens.help import HelpScreen


class BrokenError(RuntimeError):
    """What fails here."""


def fail() -> None:
    raise BrokenError


class Plain(PageScreen[str]):
    """A page of Textual's own widgets."""

    count = reactive(0, init=False)

    def compose(self) -> ComposeResult:
        yield Vertical(Input(), OptionList("one", "two"), Static("a page"))


class FailsToCompose(Plain):
    def compose(self) -> ComposeResult:
        yield Static("a page")
        fail()


class PartFailsToCompose(Plain):
    class Part(Vertical):
        def compose(self) -> ComposeResult:
            raise BrokenError

    def compose(self) -> ComposeResult:
        yield Vertical(self.Part())


class FailsToMount(Plain):
    def on_mount(self) -> None:
        fail()


class RefusesToMount(Plain):
    def on_mount(self) -> None:
        raise UserFacingError("This can't be shown.")


class FailsWhenShown(Plain):
    def on_screen_resume(self) -> None:
        fail()


class FailsToPaint(Plain):
    class Part(Static):
        def render(self) -> str:
            raise BrokenError

    def compose(self) -> ComposeResult:
        yield self.Part()


class FailsAfterRefresh(Plain):
    def on_mount(self) -> None:
        self.call_after_refresh(fail)


class FailsAtTimer(Plain):
    def on_mount(self) -> None:
        self.set_timer(0.001, fail)


class FailsAtInterval(Plain):
    def on_mount(self) -> None:
        self.query_one(Vertical).set_interval(0.001, fail)


class FailsWhenWatching(Plain):
    def on_mount(self) -> None:
        self.set_timer(0.001, lambda: setattr(self, "count", 1))

    def watch_count(self) -> None:
        fail()


class FailsWhenIdle(Plain):
    def on_idle(self) -> None:
        fail()


PAGES = Plain.__subclasses__()


def take_defects(stage: Stage) -> list[type]:
    """Return what failed, which was meant to."""
    found = [type(error) for error in stage.defects]
    stage.defects.clear()
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
async def test_a_page_that_fails_is_closed_with_a_sentence(tmp_path: Path, page: type[Plain]) -> None:
    stage, answers = make_stage(tmp_path), []
    async with stage.run(notifications=True) as pilot:
        broken = page()
        stage.app.push_screen(broken, answers.append)
        await until(lambda: answers, pilot)
        await until(lambda: not broken.is_running, pilot)
        assert answers == [None]
        assert stage.app.screen is stage.main
        said = "This can't be shown." if page is RefusesToMount else "internal error (BrokenError)"
        assert [toast for toast in stage.toasts if said in toast]
        await pilot.press("a")
        assert stage.main.prompt.text == "a"
        assert set(take_defects(stage)) == ({BrokenError} if page is not RefusesToMount else set())


async def test_what_a_person_asks_for_in_vain_leaves_the_page_open(tmp_path: Path) -> None:
    class Keys(Plain):
        BINDINGS = (("f2", "fail", ""),)

        def action_fail(self) -> None:
            fail()

        def on_option_list_option_selected(self) -> None:
            fail()

    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        page = Keys()
        await stage.app.push_screen(page)
        await pilot.press("f2", "tab", "enter")
        await pilot.pause()
        assert take_defects(stage) == [BrokenError, BrokenError]
        assert stage.app.screen is page
        await pilot.press("down", "enter")
        assert take_defects(stage) == [BrokenError]


async def test_what_fails_below_all_pages_is_said(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        stage.main.call_after_refresh(fail)
        await pilot.pause()
        assert take_defects(stage) == [BrokenError]
        assert ["internal error" in toast for toast in stage.toasts] == [True]
        await pilot.press("a")
        assert stage.main.prompt.text == "a"


async def test_work_of_a_page_ends_before_its_parts_are_gone(tmp_path: Path) -> None:
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

    stage = make_stage(tmp_path)
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


# -- what ended the program once -----------------------------------------------------------------------------


async def test_keys_before_the_help_has_a_list(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        press_at_once(stage.app, "ctrl+p", "pagedown", "down", "pageup")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)
        await pilot.pause()


async def test_a_page_is_left_before_its_callback(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        for turns in range(8):
            shown = FailsAfterRefresh()
            stage.app.push_screen(shown)
            for _ in range(turns):
                await asyncio.sleep(0)
            shown.dismiss()
            await until(lambda shown=shown: not shown.is_running, pilot)  # type: ignore[misc]
            take_defects(stage)
        assert stage.app.screen is stage.main
        assert "internal" not in screen_text(stage)


async def test_the_tree_is_left_while_it_is_built(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        for keys in (["ctrl+t", "escape"], ["ctrl+t", "s", "escape"], ["ctrl+t", "space", "escape", "escape"]):
            press_at_once(stage.app, *keys)
            await pilot.pause()
            while stage.app.screen is not stage.main:
                await pilot.press("escape")


async def test_a_click_on_what_was_just_removed_hits_nothing(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
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
