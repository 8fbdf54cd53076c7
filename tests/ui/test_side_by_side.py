"""Sessions side by side: one that works goes on while another is on the screen."""

from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support.fake_agent import FakeAgent
from tests.support.ui_app import Stage, press, run_command, screen_text, until
from tui_agent.agent.events import (
    AnswerDelta,
    Decision,
    PermissionAsked,
    PermissionRequest,
    RunEnded,
    RunStarted,
)
from tui_agent.app.services import OpenRequest
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.entries import AssistantEntry, TextPart, UserEntry


def works(agent: FakeAgent, about: str) -> None:
    agent.emit(RunStarted())
    agent.append(UserEntry(parts=(TextPart(text=about),)))


def says(agent: FakeAgent, text: str) -> None:
    agent.append(AssistantEntry(model="m", parts=(TextPart(text=text),)))


def answers(agent: FakeAgent, text: str) -> None:
    says(agent, text)
    agent.emit(RunEnded("done"))


QUESTION = PermissionRequest(
    call_id="c",
    tool="bash",
    title="make deploy",
    needs=(PermissionNeed(Permission.BASH, "make deploy", "make deploy", "command"),),
    reason="it runs a command",
    rules=("allow bash: make deploy",),
)


async def open_beside(stage: Stage, pilot: Pilot[Any]) -> tuple[FakeAgent, FakeAgent]:
    """Leave a session that works for a new one; return the agents of both."""
    first = stage.agent
    works(first, "Fix the cart")
    await run_command(stage, pilot, "new")
    second = stage.agent
    assert second is not first
    return first, second


async def go_back(stage: Stage, pilot: Pilot[Any], agent: FakeAgent) -> None:
    stage.main.go_to(OpenRequest(agent.session.id))
    await until(lambda: stage.main.agent is agent, pilot)


async def test_a_session_that_works_goes_on_when_another_is_opened(stage: Stage) -> None:
    async with stage.run() as pilot:
        first, second = await open_beside(stage, pilot)
        assert first.running
        assert stage.closed == []
        assert stage.main.status.asides == "1 session at work"

        first.emit(AnswerDelta("half an ans"))
        await pilot.pause()
        assert "half an ans" not in screen_text(stage)
        assert stage.main.agent is second

        await go_back(stage, pilot, first)
        assert stage.main.status.asides == ""
        assert stage.main.status.state.active
        assert stage.closed == [second.session.id], "nothing goes on there"
        assert stage.agents == [first, second], "it is the same agent"


async def test_the_end_is_told_with_what_was_said(stage: Stage) -> None:
    async with stage.run(notifications=True) as pilot:
        first, _second = await open_beside(stage, pilot)
        answers(first, "The cart is fixed.\n\nIt was a sign.")
        await until(lambda: stage.main.status.asides == "1 ended", pilot)
        told = "“Fix the cart” is done: The cart is fixed."
        await until(lambda: any(told in toast for toast in stage.toasts), pilot)
        await go_back(stage, pilot, first)
        assert stage.main.status.asides == ""
        assert not stage.main.status.state.active


async def test_a_question_waits_until_its_session_is_back(stage: Stage) -> None:
    async with stage.run(notifications=True) as pilot:
        first, _second = await open_beside(stage, pilot)
        first.emit(PermissionAsked(QUESTION))
        await until(lambda: stage.main.status.asides == "1 needs you", pilot)
        told = "needs you: bash make deploy"
        await until(lambda: any(told in toast for toast in stage.toasts), pilot)
        assert stage.view.question.asked is None, "the session on the screen asks nothing"

        await go_back(stage, pilot, first)
        await until(lambda: stage.view.question.asked is not None, pilot)
        await press(pilot, "y")
        await until(lambda: first.answers != [], pilot)
        assert first.answers[0][1].decision is Decision.ONCE


async def test_the_list_says_how_each_stands(stage: Stage) -> None:
    async with stage.run(size=(120, 30)) as pilot:
        await open_beside(stage, pilot)
        await pilot.press("ctrl+s")
        await until(lambda: "working" in screen_text(stage), pilot)


async def test_leaving_names_the_sessions_that_work(stage: Stage) -> None:
    async with stage.run() as pilot:
        await open_beside(stage, pilot)
        await press(pilot, "ctrl+q")
        assert "“Fix the cart” is still working. Quit?" in screen_text(stage)
        assert not stage.leaving
        await press(pilot, "enter")
        assert stage.leaving


@pytest.mark.parametrize("ends", [True, False])
async def test_leaving_goes_on_when_the_work_ends_while_it_is_asked(
    stage: Stage, ends: bool
) -> None:
    async with stage.run() as pilot:
        works(stage.agent, "Fix the cart")
        await press(pilot, "ctrl+q")
        await until(lambda: stage.view.question.asked is not None, pilot)
        if ends:
            answers(stage.agent, "It is fixed.")
            await until(lambda: stage.leaving, pilot)
            return
        await press(pilot, "escape")
        await until(lambda: stage.view.question.asked is None, pilot)
        assert not stage.leaving


async def test_the_end_of_the_program_ends_them_all(stage: Stage) -> None:
    async with stage.run() as pilot:
        first, second = await open_beside(stage, pilot)
        works(second, "Something else")
        await run_command(stage, pilot, "new")
        assert stage.main.status.asides == "2 sessions at work"
    assert stage.closed[:2] == [first.session.id, second.session.id]


async def test_a_session_with_nothing_to_do_is_closed_as_ever(stage: Stage) -> None:
    async with stage.run() as pilot:
        first = stage.agent
        answers(first, "Hello.")
        await run_command(stage, pilot, "new")
        assert stage.closed == [first.session.id]
        assert stage.main.status.asides == ""


@pytest.mark.parametrize("rounds", [3])
async def test_going_to_and_fro_mixes_nothing(stage: Stage, rounds: int) -> None:
    async with stage.run() as pilot:
        first, second = await open_beside(stage, pilot)
        works(second, "The other task")
        for number in range(rounds):
            for agent, other in ((first, second), (second, first)):
                await go_back(stage, pilot, agent)
                says(agent, f"{id(agent)} {number}")
                says(other, f"{id(other)} {number}")
                said = f"{id(agent)} {number}"
                await until(lambda said=said: said in screen_text(stage), pilot)
                assert str(id(other)) not in screen_text(stage)
        assert stage.closed == []
