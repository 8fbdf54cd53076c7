"""A question that comes while another screen is open is seen there, and waits for a fresh look when one comes back."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.ui_app import Stage, emit, make_stage, press, run_command
from tests.support.ui_scenes import question_bash, question_edit
from tui_agent.agent.events import PermissionAsked, RunStarted
from tui_agent.ui.widgets.session_view import QuestionChip


def chips(stage: Stage) -> list[str]:
    return [str(chip.render()) for screen in stage.app.screen_stack for chip in screen.query(QuestionChip)]


async def ask(stage: Stage, pilot: Any) -> None:
    await emit(stage, pilot, RunStarted(), PermissionAsked(question_bash()))


@pytest.mark.parametrize("name", ["settings", "sessions", "help", "theme"])
async def test_the_screen_on_top_says_that_the_agent_asks(stage: Stage, name: str) -> None:
    async with stage.run() as pilot:
        await run_command(stage, pilot, name, "")
        await ask(stage, pilot)
        (chip,) = chips(stage)
        assert chip.startswith("▲ The agent asks about bash, esc goes back to it: rm -rf")
        await press(pilot, "escape")
        assert stage.app.screen is stage.main
        assert chips(stage) == []
        await pilot.press("y")
        assert [answer.decision.value for _, answer in stage.agent.answers] == ["once"]


async def test_a_screen_opened_over_a_question_says_so_too_until_it_is_settled(stage: Stage) -> None:
    async with stage.run() as pilot:
        await ask(stage, pilot)
        assert chips(stage) == []
        await run_command(stage, pilot, "settings", "")
        assert len(chips(stage)) == 1
        await emit(stage, pilot, PermissionAsked(question_edit()))
        assert "about bash" in chips(stage)[0]
        stage.agent.interrupt()
        await pilot.pause()
        assert chips(stage) == []


async def test_a_click_goes_to_the_question(stage: Stage) -> None:
    async with stage.run() as pilot:
        await stage.main.controller.run("settings", "")
        await run_command(stage, pilot, "help", "")
        await ask(stage, pilot)
        await pilot.click(QuestionChip)
        await pilot.pause()
        assert stage.app.screen is stage.main


async def test_who_comes_back_is_given_time_before_keys_answer(tmp_path: Path) -> None:
    now = [1000.0]
    stage = make_stage(tmp_path, clock=lambda: now[0])
    async with stage.run() as pilot:
        await run_command(stage, pilot, "settings", "")
        await ask(stage, pilot)
        stage.view.question.wait_for(grace=600.0, typing_pause=0.0)
        assert stage.view.question.armed
        await press(pilot, "escape")
        assert not stage.view.question.armed
        await pilot.press("y")
        assert stage.agent.answers == []
