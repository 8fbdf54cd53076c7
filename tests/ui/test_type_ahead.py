"""Keys pressed after a command while its page or question opens: all go to it, or all to the prompt."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, TextArea

from tests.support.real_stage import real_stage
from tests.support.scripted_client import Reply
from tests.support.ui_app import STILL, Stage, make_stage, press_at_once, until
from tui_agent.app.commands import command_table
from tui_agent.app.controller import Controller
from tui_agent.app.frontend import (
    UNREQUESTED,
    Choice,
    LongText,
    ModelChoice,
    Output,
    Pick,
    PickRow,
    Question,
    SessionChoice,
    TextLine,
    ThemeChoice,
    requested_at,
)
from tui_agent.trust import ProjectState, TrustItem
from tui_agent.ui.screens.dialogs import ChoiceScreen

KEYS = "§¶"
"""Text that is bound to nothing and answers nothing."""
LEAVES = {"quit", "suspend", "detach"}
"""Commands that end the screen."""


def text_in_focus(stage: Stage) -> str | None:
    """Return the text of the field that has the focus; None if there is none."""
    match stage.app.focused:
        case Input(value=text):
            return text
        case TextArea(text=text):
            return text
    return None


def check_who_got_keys(stage: Stage) -> None:
    """Check that `KEYS` are in the prompt if no page is open, else not there but in the page's field, if any."""
    text = text_in_focus(stage)
    if stage.app.screen is stage.main:
        assert text is not None
        assert text.endswith(KEYS)
    else:
        assert KEYS not in stage.main.prompt.text
        assert text is None or KEYS in text


BY_DAY = {
    "doctor",
    "export",
    "jobs",
    "label",
    "mcp",
    "memory",
    "rename",
    "rewind",
    "style",
    "trust",
}
"""Commands without a key, of each kind: they open a page, ask, run the agent, or only say something.

Those with a key are tried with it.
"""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly)
        for name in sorted({c.name for c in command_table()} - LEAVES)
    ],
)
async def test_keys_after_a_command_go_to_what_it_opens(tmp_path: Path, name: str) -> None:
    stage = real_stage(tmp_path, [Reply("Well.")] * 9)
    async with stage.run(after=["go", "on"]) as pilot:
        press_at_once(stage.app, *f"/{name}", "escape", "enter", *KEYS)
        await pilot.pause()
        check_who_got_keys(stage)


@pytest.mark.parametrize(
    "key", sorted({c.key for c in command_table() if c.key and c.name not in LEAVES})
)
async def test_keys_after_a_commands_key_go_to_what_it_opens(tmp_path: Path, key: str) -> None:
    stage = real_stage(tmp_path, [Reply("Well.")] * 9)
    async with stage.run(after=["go", "on"]) as pilot:
        press_at_once(stage.app, key.split(",", maxsplit=1)[0], *KEYS)
        await pilot.pause()
        check_who_got_keys(stage)


async def test_a_key_pressed_before_a_commands_question_is_there_answers_it(tmp_path: Path) -> None:
    begun = threading.Event()
    looked = threading.Event()
    answers: list[str | None] = []
    held_back = ProjectState((TrustItem("hook", "Stop", "runs x"),), "digest")

    def look() -> ProjectState:
        begun.set()
        assert looked.wait(60)
        return held_back

    settings = STILL.model_copy(update={"permission_grace": 0.5, "typing_pause": 1.0})
    stage = make_stage(tmp_path, settings=settings, project_state=look, answer_trust=answers.append)
    async with stage.run():
        press_at_once(stage.app, *"/trust", "escape", "enter", "y")
        await until(begun.is_set)
        looked.set()
        await until(lambda: answers)
        assert answers == ["trusted"]
        assert stage.main.prompt.text == ""


async def test_words_typed_after_a_commands_question_are_no_answer(tmp_path: Path) -> None:
    answers: list[str | None] = []
    held_back = ProjectState((TrustItem("hook", "Stop", "runs x"),), "digest")
    settings = STILL.model_copy(update={"permission_grace": 0.5, "typing_pause": 1.0})
    stage = make_stage(
        tmp_path,
        settings=settings,
        project_state=lambda: held_back,
        answer_trust=answers.append,
    )
    async with stage.run() as pilot:
        press_at_once(stage.app, *"/trust", "escape", "enter", *"you know")
        await pilot.pause()
        assert stage.main.prompt.text == "you know"
        assert answers == []


ANSWERS = [("y", "yes"), ("n", "no")]
QUESTIONS: list[Question[Any]] = [
    Choice("Go on?", ANSWERS),
    Choice("Go on?", ANSWERS, inline=True),
    Choice("Go on?", ANSWERS, inline=True, numbered=True),
    Pick("Which?", [PickRow("y", "yes")]),
    TextLine("What?"),
    LongText("What?", ""),
    ModelChoice("x/y"),
    SessionChoice(None),
    ThemeChoice(),
]
"""One question of each kind and form."""


@pytest.mark.daily(1)
@pytest.mark.parametrize("page", [None, Output("A text", "text"), TextLine("Name?")], ids=repr)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: type(question).__name__)
async def test_a_question_that_comes_by_itself_takes_no_key_that_is_not_for_it(
    tmp_path: Path, question: Question[Any], page: Output | TextLine | None
) -> None:
    now = 1_000.0
    settings = STILL.model_copy(update={"permission_grace": 0.01, "typing_pause": 0.02})
    stage = make_stage(tmp_path, settings=settings, clock=lambda: now)
    async with stage.run() as pilot:
        main = stage.main
        match page:
            case Output():
                main.show(page)
            case TextLine():
                main.controller.soon(main.ask(page))
        await pilot.pause()
        below = stage.app.screen
        assert (below is main) is (page is None)

        async def ask() -> Any:
            requested_at.set(UNREQUESTED)
            return await main.ask(question)

        now += 1
        press_at_once(stage.app, "y")
        await pilot.pause()
        asking = asyncio.ensure_future(ask())
        press_at_once(stage.app, "y")
        await pilot.pause()
        assert not asking.done()
        assert stage.app.screen is below, "a key was pressed a moment ago"
        now += 1
        is_above_prompt = isinstance(question, Choice) and question.inline and page is None
        if not is_above_prompt:
            await until(lambda: stage.app.screen is not below, pilot)
        opened = stage.app.screen
        press_at_once(stage.app, "y")
        if not is_above_prompt:
            press_at_once(stage.app, "enter")
        await pilot.pause()
        assert not asking.done(), "it has just opened"
        assert stage.app.screen is opened
        if page is None:
            assert main.prompt.text == "yyy"
        asking.cancel()


async def test_a_question_that_comes_by_itself_takes_keys_once_it_was_seen(tmp_path: Path) -> None:
    now = 1_000.0
    settings = STILL.model_copy(update={"permission_grace": 0.01, "typing_pause": 0.02})
    stage = make_stage(tmp_path, settings=settings, clock=lambda: now)
    async with stage.run() as pilot:
        main = stage.main

        async def ask() -> Any:
            requested_at.set(UNREQUESTED)
            return await main.ask(Choice("Go on?", ANSWERS, inline=True, numbered=True))

        main.show(Output("A text", "text"))
        await pilot.pause()
        asking = asyncio.ensure_future(ask())
        await until(lambda: isinstance(stage.app.screen, ChoiceScreen), pilot)
        now += 1
        press_at_once(stage.app, "y")
        assert await asking == "y"


async def test_keys_still_arrive_after_the_delivery_of_one_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Controller.shown
    failed = asyncio.Event()

    async def fail_once(controller: Controller) -> None:
        if controller.attached.is_set() and not failed.is_set():
            failed.set()
            raise RuntimeError("no page")
        await shown(controller)

    monkeypatch.setattr(Controller, "shown", fail_once)
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        press_at_once(stage.app, "f12")
        await failed.wait()
        press_at_once(stage.app, *"abc")
        await until(lambda: stage.main.prompt.text == "abc", pilot)
