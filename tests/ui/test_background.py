"""The terminal is asked for its background, and its answer never becomes keys."""

from pathlib import Path
from typing import Any

import pytest
from textual import events

from tests.support.real_stage import real_stage, working_script
from tests.support.texts import answered
from tests.support.ui_app import (
    Clock,
    Stage,
    make_app,
    make_stage,
    press,
    press_at_once,
    until,
    write,
)
from tui_agent.agent.events import RunStarted
from tui_agent.config import UiSettings
from tui_agent.ui.background import BackgroundMemory
from tui_agent.ui.screens.context import ContextScreen
from tui_agent.ui.terminal import default_theme
from tui_agent.ui.terminal_input import BackgroundKnown, InputParser

LIGHT = "\x1b]11;rgb:fdfd/f6f6/e3e3\x1b\\"
DARK = "\x1b]11;rgb:00/2b/36\x07"


def heard(parser: InputParser, *inputs: str) -> list[str]:
    """Return the keys and answers of inputs, each followed by a tick."""
    found = []
    for data in inputs:
        for message in [*parser.feed(data), *parser.tick()]:
            if isinstance(message, BackgroundKnown):
                found.append("light" if message.light else "dark")
            elif isinstance(message, events.Key):
                found.append(message.key)
    return found


def test_an_answer_among_keys_is_taken_out() -> None:
    short = "\x1b]11;rgb:f/f/f\x07"
    assert heard(InputParser(), f"a{LIGHT}b", DARK, f"{short}c") == [
        "a",
        "light",
        "b",
        "dark",
        "light",
        "c",
    ]


@pytest.mark.parametrize("cut", range(2, len(LIGHT)))
def test_an_answer_in_two_pieces_is_one(cut: int) -> None:
    assert heard(InputParser(clock=Clock()), "x" + LIGHT[:cut], LIGHT[cut:] + "y") == [
        "x",
        "light",
        "y",
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "\x1b]11;?\x1b\\",
        "\x1b]11;?\x07",
        "\x1b]11;rgb:zzzz/\x07",
        "\x1b]11;#ffffff\x1b\\",
        "\x1b]10;rgb:0/0/0\x07",
    ],
)
def test_an_answer_nobody_understands_is_no_keys_either(answer: str) -> None:
    assert heard(InputParser(), f"a{answer}b") == ["a", "b"]


def test_a_piece_that_was_typed_is_keys_after_a_moment() -> None:
    clock = Clock()
    parser = InputParser(clock=clock)
    assert list(parser.feed("\x1b]")) == []
    clock.now += 1
    assert [message.key for message in parser.tick()] == ["alt+right_square_bracket"]
    assert "light" not in heard(parser, LIGHT.removeprefix("\x1b]"))


@pytest.mark.parametrize(("chosen", "theme"), [(None, "textual-light"), ("dracula", "dracula")])
async def test_the_answer_decides_when_the_user_did_not(
    tmp_path: Path, chosen: str | None, theme: str
) -> None:
    stage = make_stage(tmp_path, settings=UiSettings(theme=chosen, reduced_motion=True))
    async with stage.run() as pilot:
        stage.app.post_message(BackgroundKnown(light=True))
        await pilot.pause()
        assert stage.app.theme == theme
        stage.app.post_message(BackgroundKnown(light=False))
        await pilot.pause()
        assert stage.app.theme == theme


async def test_the_first_frame_is_as_the_terminal_was_the_last_time(tmp_path: Path) -> None:
    memory = BackgroundMemory(tmp_path / "cache", {"TERM_PROGRAM": "Some/Terminal"})
    assert memory.light() is None
    for light, before in [
        (True, "textual-dark"),
        (False, "textual-light"),
        (False, "textual-dark"),
    ]:
        app = make_app(make_stage(tmp_path, settings=UiSettings()).services, memory=memory)
        assert app.theme == before
        async with app.run_test() as pilot:
            app.post_message(BackgroundKnown(light=light))
            await until(lambda: memory.light() is light, pilot)  # noqa: B023 - awaited in the same round
            assert app.theme == ("textual-light" if light else "textual-dark")
    assert BackgroundMemory(tmp_path / "cache", {"TERM": "other"}).light() is None


def test_what_the_environment_says_wins_over_the_last_time() -> None:
    assert default_theme({"COLORFGBG": "15;0"}, last=True) == "textual-dark"
    assert default_theme({"COLORFGBG": "0;default;15"}) == "textual-light"
    assert default_theme({}, last=True) == "textual-light"
    assert default_theme({}) == "textual-dark"


def keys(*chunks: str) -> list[str]:
    parser, read = InputParser(clock=lambda: 0.0), []
    for chunk in chunks:
        read += [message for message in parser.feed(chunk) if isinstance(message, events.Key)]
    return [key.key for key in read]


def press_input(app: Any, *chunks: str) -> None:
    parser = InputParser(clock=lambda: 0.0)
    for chunk in chunks:
        for message in parser.feed(chunk):
            app.post_message(message)


def test_escape_and_a_letter_are_read_as_alt_however_they_arrive() -> None:
    assert keys("\x1bwords") == keys("\x1b", "words") == ["alt+w", "o", "r", "d", "s"]
    assert keys("\x1b\x1bF") == keys("\x1b", "\x1b", "F") == ["escape", "alt+shift+f"]
    assert keys("\x1b/x") == ["alt+slash", "x"]
    assert keys("\x1b[A", "\x1b", "[B", "\x1bOP") == ["up", "down", "f1"]


async def test_escape_that_comes_alone_and_words_leave_the_page_and_go_to_the_prompt(
    tmp_path: Path,
) -> None:
    stage = real_stage(tmp_path, working_script(1))
    async with stage.run(after=["look at it"]) as pilot:
        await pilot.press("ctrl+g")
        await until(lambda: isinstance(stage.screen, ContextScreen), pilot)
        press_at_once(stage.app, "escape")
        press_input(stage.app, "drop my mask")
        await until(lambda: stage.main.prompt.text == "drop my mask", pilot)
        assert stage.screen is stage.main


async def test_alt_with_a_letter_moves_and_erases_by_words(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "fix it")
        press_input(stage.app, "\x1bb")
        await until(lambda: stage.main.prompt.cursor_location == (0, 4), pilot)
        press_input(stage.app, "\x1bd")
        await until(lambda: stage.main.prompt.text == "fix ", pilot)


@pytest.mark.parametrize("vi", [False, True])
@pytest.mark.parametrize("draft", ["", "two words"])
@pytest.mark.parametrize("place", ["prompt", "conversation"])
async def test_no_alt_with_a_character_stops_the_agent_or_writes(
    stage: Stage, place: str, draft: str, vi: bool
) -> None:
    async with stage.run() as pilot:
        stage.agent.append(answered("a"))
        stage.agent.emit(RunStarted())
        await write(pilot, draft)
        stage.main.prompt.vim = vi
        if vi:
            await press(pilot, "escape")
        if place == "conversation":
            stage.view.transcript.focus()
        for character in filter(str.isprintable, map(chr, range(0x21, 0x7F))):
            if character in "[]OPX^_":
                continue  # they begin other sequences
            press_input(stage.app, f"\x1b{character}")
        await pilot.pause()
        assert stage.agent.calls == []
        assert stage.main.prompt.text in {draft, "two ", "words", " words"}
        assert stage.app.screen is stage.main


async def test_escape_with_a_letter_at_once_is_both_where_escape_ends_a_mode(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.emit(RunStarted())
        await write(pilot, "one two")
        stage.main.prompt.vim = True
        press_input(stage.app, "\x1bddi")
        await until(lambda: stage.main.prompt.text == "", pilot)
        assert stage.agent.calls == []
