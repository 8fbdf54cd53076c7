"""Leaving the program by key, and what its own mistakes look like."""

import asyncio
import logging
from pathlib import Path

import pytest
from textual import events
from textual.app import App

from tests.support.real_stage import real_stage
from tests.support.scripted_client import Reply
from tests.support.ui_app import (
    NOW,
    Stage,
    emit,
    make_stage,
    press,
    screen_text,
    send,
    until,
    write,
)
from tui_agent.agent.events import MessageRefused, RunEnded, RunStarted
from tui_agent.app.commands import command_table
from tui_agent.app.frontend import Choice, Output
from tui_agent.app.services import OpenHow
from tui_agent.session.ids import short_id
from tui_agent.session.session import Session
from tui_agent.ui.key_order import KeyOrder
from tui_agent.ui.screens.main import MainScreen


async def test_ctrl_c_clears_what_was_written_and_quits_when_pressed_again_soon(
    tmp_path: Path,
) -> None:
    now = NOW
    stage = make_stage(tmp_path, clock=lambda: now)
    async with stage.run() as pilot:
        for text in ("one thing", "another"):
            await write(pilot, text)
            await pilot.press("ctrl+c")
            await until(lambda: not stage.main.prompt.text, pilot)
            await press(pilot, "up")
            assert stage.main.prompt.text == text, "it is not lost"
            await press(pilot, "down")
            assert not stage.main.prompt.text
            assert stage.app._exit is False
        await pilot.press("ctrl+c")
        assert "Press ctrl+c again to quit." in screen_text(stage)
        now += 3.0
        await press(pilot, "ctrl+c")
        assert stage.app._exit is False, "that was not soon"
        now += 1.0
        await pilot.press("ctrl+c")
        await until(lambda: stage.app._exit, pilot)


async def test_ctrl_c_stops_the_agent_and_keeps_what_is_written(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.emit(RunStarted())
        await write(pilot, "and then")
        await pilot.press("ctrl+c")
        assert "interrupt" in stage.agent.calls
        assert not stage.leaving
        assert stage.main.prompt.text == "and then"


async def test_ctrl_c_copies_what_is_selected(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "some text")
        await press(pilot, "alt+a", "ctrl+c")
        assert stage.app.clipboard == "some text"
        assert stage.main.prompt.text == "some text"


async def test_ctrl_q_quits_and_asks_only_during_a_run(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.emit(RunStarted())
        await press(pilot, "ctrl+q")
        assert "The agent is working." in screen_text(stage)
        assert not stage.leaving
        await press(pilot, "enter")
        assert stage.leaving
    assert "aclose" in stage.agent.calls
    assert stage.closed == [stage.agent.session.id]


async def test_what_ends_the_program_is_logged_and_never_shown_as_a_traceback(
    stage: Stage,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_screen: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(MainScreen, "compose", fail)
    with caplog.at_level(logging.CRITICAL), pytest.raises(ZeroDivisionError):
        async with stage.run():
            pass
    assert "a mistake of ours" in caplog.text
    said = capsys.readouterr().err
    assert "Your session is saved." in said.replace("\n", " ")
    assert "Traceback" not in said


async def test_a_message_that_a_hook_refused_comes_back_into_the_prompt(stage: Stage) -> None:
    async with stage.run((100, 24)) as pilot:
        await emit(
            stage,
            pilot,
            RunStarted(),
            MessageRefused("use sk-123", "there is a key in it"),
            RunEnded("stopped", "No."),
        )
        assert stage.main.prompt.text == "use sk-123"
        await emit(stage, pilot, RunStarted(), MessageRefused("again", "there is a key in it"))
        assert "there is a key in it" in screen_text(stage)


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
        told = " ".join(stage.main.notice.render().plain.split())
        assert told.endswith("It is read-only here. Send a message to choose how to continue.")
        assert stage.agent.session.id not in stage.main.notice.message


@pytest.mark.parametrize(
    ("keys", "how"), [(["enter"], OpenHow.FORK), (["down", "enter"], OpenHow.TAKE_OVER)]
)
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
        await until(
            lambda: stage.app.screen is stage.main and stage.main.prompt.full_text == text, pilot
        )
        assert stage.requests[-1].how == how
        assert not stage.agent.session.read_only
        await pilot.press("end", "enter")
        await until(lambda: not stage.main.prompt.text, pilot)


async def test_a_key_that_comes_when_the_screens_are_gone_is_no_error() -> None:
    class Ended(App[None]):
        is_running = True

    async def shown() -> None:
        """No command runs."""

    order = KeyOrder(Ended(), shown)
    before = asyncio.all_tasks()
    assert order.enqueue(events.Key("enter", None))
    await asyncio.gather(*(asyncio.all_tasks() - before))


def defects(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [found.getMessage() for found in caplog.records if found.levelno >= logging.ERROR]


BY_DAY = {
    "compact",
    "context",
    "export",
    "mcp",
    "new",
    "sessions",
    "settings",
    "tree",
    "trust",
    "undo",
}
"""Commands of each kind: they open a page, ask, run the agent, or only say something."""


@pytest.mark.daily(1)
@pytest.mark.parametrize("turns", [0, 1, 2, 5, 20])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly)
        for name in sorted(command.name for command in command_table())
    ],
)
async def test_a_command_may_be_at_any_point_when_the_program_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, turns: int
) -> None:
    stage = real_stage(tmp_path, [Reply("Well.")] * 9)
    async with stage.run(after=["go"]):
        stage.main.controller.begin(name)
        for _ in range(turns):
            await asyncio.sleep(0)
    assert defects(caplog) == []


@pytest.mark.parametrize("way", ["say", "warn", "announce", "show", "ask", "ask on a page"])
async def test_what_a_command_says_when_the_screen_is_gone_is_no_error(
    stage: Stage, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    is_gone = asyncio.Event()

    async def say() -> None:
        await is_gone.wait()
        match way:
            case "show":
                stage.main.show(Output("A text", "text"))
            case "ask" | "ask on a page":
                answers = [("y", "yes")]
                await stage.main.ask(Choice("Go on?", answers, inline=way == "ask"))
            case _:
                getattr(stage.main, way)("Done.")

    async with stage.run():
        saying = stage.main.controller.soon(say())
    is_gone.set()
    await asyncio.wait_for(saying, 60)
    assert stage.defects == []
    assert defects(caplog) == []
