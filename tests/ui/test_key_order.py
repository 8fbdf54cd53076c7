"""Keys that come in one burst: each does what it means where the one before it led."""

from pathlib import Path
from typing import Any

import pytest
from textual import events

from tests.support.real_stage import real_stage, working_script
from tests.support.ui_app import Stage, until
from tui_agent.ui.background import AnswerParser
from tui_agent.ui.screens.context import ContextScreen


def keys(*chunks: str) -> list[str]:
    parser, read = AnswerParser(clock=lambda: 0.0), []
    for chunk in chunks:
        read += [message for message in parser.feed(chunk) if isinstance(message, events.Key)]
    return [key.key for key in read]


def press_input(app: Any, *chunks: str) -> None:
    parser = AnswerParser(clock=lambda: 0.0)
    for chunk in chunks:
        for message in parser.feed(chunk):
            app.post_message(message)


def test_escape_and_a_letter_are_read_as_alt_however_they_arrive() -> None:
    assert keys("\x1bwords") == keys("\x1b", "words") == ["alt+w", "o", "r", "d", "s"]
    assert keys("\x1b\x1bF") == ["escape", "alt+shift+f"]
    assert keys("\x1b/x") == ["alt+slash", "x"]
    assert keys("\x1b[A", "\x1b", "[B", "\x1bOP") == ["up", "down", "f1"]


@pytest.mark.parametrize("escapes", ["\x1b", "\x1b\x1b"])
async def test_escape_and_words_leave_the_page_and_go_to_the_prompt(tmp_path: Path, escapes: str) -> None:
    stage = real_stage(tmp_path, working_script(1))
    async with stage.run(after=["look at it"]) as pilot:
        await pilot.press("ctrl+g")
        await until(lambda: isinstance(stage.screen, ContextScreen), pilot)
        press_input(stage.app, f"{escapes}drop my mask")
        await until(lambda: stage.main.prompt.text == "drop my mask", pilot)
        assert stage.screen is stage.main


async def test_escape_and_a_word_in_the_prompt_is_no_word_motion_while_it_is_empty(stage: Stage) -> None:
    async with stage.run() as pilot:
        press_input(stage.app, "\x1bfix it")
        await until(lambda: stage.main.prompt.text == "fix it", pilot)
        press_input(stage.app, "\x1bb")
        await until(lambda: stage.main.prompt.cursor_location == (0, 4), pilot)
