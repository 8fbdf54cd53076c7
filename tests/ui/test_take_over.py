"""Another program takes the open session over: it is seen early, and nothing that was written is lost."""

import pytest

from tests.support.ui_app import Stage, send, until, write
from tui_agent.app.services import OpenHow
from tui_agent.session.ids import short_id
from tui_agent.session.session import Session


def take_over(stage: Stage) -> None:
    Session(stage.store, stage.agent.session.id, estimate=lambda _entry: 10).hold(take_over=True)


@pytest.mark.parametrize("comes_back", [True, False])
async def test_it_is_seen_when_the_terminal_gets_the_focus_and_at_the_first_letter(
    stage: Stage, *, comes_back: bool
) -> None:
    async with stage.run() as pilot:
        stage.app.app_focus = not comes_back
        await pilot.pause()
        take_over(stage)
        if comes_back:
            stage.app.app_focus = True
        else:
            await write(pilot, "h")
        await until(lambda: "took over session" in stage.main.notice.message, pilot)
        assert short_id(stage.agent.session.id) in stage.main.notice.message
        assert stage.agent.session.id not in stage.main.notice.message


@pytest.mark.parametrize(("keys", "how"), [(["enter"], OpenHow.FORK), (["down", "enter"], OpenHow.TAKE_OVER)])
@pytest.mark.parametrize("text", ["go on please", "!ls"])
async def test_sending_asks_how_to_go_on_and_keeps_the_text(
    stage: Stage, keys: list[str], how: OpenHow, text: str
) -> None:
    async with stage.run() as pilot:
        take_over(stage)
        await send(pilot, text)
        await until(lambda: stage.app.screen is not stage.main, pilot)
        assert stage.main.prompt.full_text == text
        await pilot.press(*keys)
        await until(lambda: len(stage.agents) == 2, pilot)
        await until(lambda: stage.app.screen is stage.main and stage.main.prompt.full_text == text, pilot)
        assert stage.requests[-1].how == how
        assert not stage.agent.session.read_only
        await pilot.press("end", "enter")
        await until(lambda: not stage.main.prompt.text, pilot)
