"""A list of options takes keys and clicks that come at the wrong time."""

from textual.app import App, ComposeResult
from textual.events import Click
from textual.widgets import OptionList

from tui_agent.ui.widgets.options import Options


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield Options("one", "two", "three")


async def test_page_keys_before_the_list_is_laid_out_do_nothing() -> None:
    class Hidden(Page):
        CSS = "Options { display: none }"

    async with Hidden().run_test() as pilot:
        listing = pilot.app.query_one(OptionList)
        listing.highlighted = 0
        listing.action_page_down()  # type: ignore[no-untyped-call]
        listing.action_page_up()  # type: ignore[no-untyped-call]
        assert listing.highlighted == 0


async def test_a_click_on_a_row_that_is_gone_chooses_nothing() -> None:
    chosen: list[object] = []
    async with Page().run_test(message_hook=chosen.append) as pilot:
        await pilot.pause()
        listing = pilot.app.query_one(OptionList)
        drawn = listing.render_line(2)
        listing.set_options(["one"])
        style = next(segment.style for segment in drawn if segment.style and "option" in segment.style.meta)
        listing.post_message(Click(listing, 1, 2, 0, 0, 1, False, False, False, style=style))
        await pilot.pause()
        assert pilot.app.is_running
        assert not [message for message in chosen if isinstance(message, OptionList.OptionSelected)]


async def test_a_click_chooses() -> None:
    chosen: list[object] = []
    async with Page().run_test(message_hook=chosen.append) as pilot:
        await pilot.click(OptionList, offset=(3, 2))
        await pilot.pause()
        assert {m.option_index for m in chosen if isinstance(m, OptionList.OptionSelected)} == {1}
