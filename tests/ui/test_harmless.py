"""Whatever widget draws it: nothing a terminal would act on reaches the screen."""

from textual.widgets import Static

from tests.support.ui_app import Stage, press, screen_text
from tui_agent.safe_text import ACTING

EVIL = "left\x1b]0;owned\x07\x1b[2J\u202eright"


async def test_titles_notices_and_pickers_show_what_they_were_given_harmless(stage: Stage) -> None:
    async with stage.run((120, 30)) as pilot:
        stage.agent.session.set_title(EVIL)
        stage.main.refresh_facts()
        stage.main.say(EVIL)
        await pilot.pause()
        text = screen_text(stage)
        assert text.count("left␛]0;owned") == 2
        await stage.app.screen.mount(Static(EVIL, markup=False))  # a widget that forgets to make its text harmless
        stage.app.notify(EVIL, markup=False)
        await pilot.pause()
        await pilot.pause()
        assert screen_text(stage).count("right") > text.count("right")
        assert ACTING.search(screen_text(stage)) is None
        await press(pilot, "ctrl+s")
        await pilot.pause()
        assert ACTING.search(screen_text(stage)) is None
