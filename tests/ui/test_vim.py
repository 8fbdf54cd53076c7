"""Keys of vi in the prompt. What they do to a text was compared with Vim 9; these are the cases kept of that."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.ui_app import STILL, Stage, make_stage, press, screen_text, until, write
from tui_agent.ui.prompting.vim import Mode, Vim, clamped

TEXT = "fix the bug_1 in foo.bar(baz)"
LINES = "one two\n  three four\nfive"


def typed(keys: str, text: str, at: int) -> tuple[str, int]:
    """Type keys in normal mode, ``<`` for escape; return text and position."""
    vim = Vim()
    vim.press("escape", text, at)
    for key in keys:
        name = "escape" if key == "<" else key
        if vim.mode is Mode.INSERT and name != "escape":
            text, at = text[:at] + key + text[at:], at + 1
        elif (step := vim.press(name, text, at)) is not None:
            text, at = step.text, step.at
    return text, at


@pytest.mark.parametrize(
    ("keys", "text", "at", "expected"),
    [
        ("w", TEXT, 0, (TEXT, 4)),
        ("3w", TEXT, 0, (TEXT, 14)),
        ("W", TEXT, 17, (TEXT, 28)),
        ("e", TEXT, 0, (TEXT, 2)),
        ("b", TEXT, 8, (TEXT, 4)),
        ("$", TEXT, 0, (TEXT, 28)),
        ("^", "  x y", 4, ("  x y", 2)),
        ("0", "  x y", 4, ("  x y", 0)),
        ("j", LINES, 4, (LINES, 12)),
        ("k", LINES, 12, (LINES, 4)),
        ("G", LINES, 0, (LINES, 21)),
        ("gg", LINES, 21, (LINES, 0)),
        ("2G", LINES, 0, (LINES, 10)),
        ("fo;", TEXT, 0, (TEXT, 19)),
        ("x", "abc", 1, ("ac", 1)),
        ("x", "abc", 2, ("ab", 1)),
        ("X", "abc", 1, ("bc", 0)),
        ("D", "one two", 3, ("one", 2)),
        ("dd", LINES, 0, ("  three four\nfive", 2)),
        ("dd", LINES, 21, ("one two\n  three four", 10)),
        ("2dd", LINES, 0, ("five", 0)),
        ("dw", "one two", 0, ("two", 0)),
        ("dw", LINES, 4, ("one \n  three four\nfive", 3)),
        ("d2w", "a b c", 0, ("c", 0)),
        ("dj", LINES, 0, ("five", 0)),
        ("dk", LINES, 0, (LINES, 0)),
        ("diw", "one two", 5, ("one ", 3)),
        ("daw", "one two", 5, ("one", 2)),
        ("dfo", TEXT, 0, ("o.bar(baz)", 0)),
        ("dto", TEXT, 0, ("oo.bar(baz)", 0)),
        ("cwNEW<", "one two", 0, ("NEW two", 2)),
        ("ccNEW<", LINES, 10, ("one two\nNEW\nfive", 10)),
        ("CNEW<", "one two", 4, ("one NEW", 6)),
        ("sZ<", "abc", 0, ("Zbc", 0)),
        ("iab<", "x", 0, ("abx", 1)),
        ("aab<", "x", 0, ("xab", 2)),
        ("IX<", "  x", 2, ("  Xx", 2)),
        ("AX<", "  x", 0, ("  xX", 3)),
        ("oX<", LINES, 0, ("one two\nX\n  three four\nfive", 8)),
        ("OX<", LINES, 8, ("one two\nX\n  three four\nfive", 8)),
        ("yyp", "one\ntwo", 0, ("one\none\ntwo", 4)),
        ("yyP", "one\ntwo", 4, ("one\ntwo\ntwo", 4)),
        ("ywP", "one two", 0, ("one one two", 3)),
        ("rZ", "abc", 1, ("aZc", 1)),
        ("3rZ", "abc", 1, ("abc", 1)),
        ("~", "abc", 0, ("Abc", 1)),
        ("J", "a\n  b", 0, ("a b", 1)),
        ("vld", "abc", 0, ("c", 0)),
        ("vey$p", "one two", 0, ("one twoone", 9)),
        ("Vjd", LINES, 0, ("five", 0)),
        ("viwcX<", "one two", 4, ("one X", 4)),
        ("x.", "abcd", 0, ("cd", 0)),
        ("dw.", "a b c", 0, ("c", 0)),
        ("cwN<w.", "one two six", 0, ("N N six", 2)),
        ("A!<j.", "a\nb", 0, ("a!\nb!", 4)),
        ("2d<x", "abc", 0, ("bc", 0)),
    ],
)
def test_keys_do_what_they_do_in_vim(
    keys: str, text: str, at: int, expected: tuple[str, int]
) -> None:
    found, to = typed(keys, text, at)
    assert (found, clamped(found, to)) == expected


@given(
    st.text("ab .\n", max_size=12),
    st.lists(st.sampled_from(list("hjklwbe0$^GgdcyxXDCpPuvVoOiaIA.;,fr12J~ \x12")), max_size=12),
)
def test_no_keys_leave_the_text(text: str, keys: list[str]) -> None:
    vim, at = Vim(), 0
    vim.press("escape", text, at)
    for key in keys:
        if vim.mode is Mode.INSERT:
            vim.press("escape", text, at)
        if (step := vim.press("ctrl+r" if key == "\x12" else key, text, at)) is not None:
            text, at = step.text, step.at
            assert 0 <= at <= len(text)
            if step.selected is not None:
                assert 0 <= step.selected[0] <= step.selected[1] <= len(text)


def a_stage(tmp_path: Path) -> Stage:
    return make_stage(tmp_path, settings=STILL.model_copy(update={"vim": True}))


async def keys(pilot: Any, text: str) -> None:
    await press(
        pilot, *("escape" if key == "<" else "space" if key == " " else key for key in text)
    )


async def test_the_prompt_says_its_mode_and_enter_sends_in_every_mode(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run() as pilot:
        assert "-- INSERT --" in screen_text(stage)
        await write(pilot, "one two")
        await keys(pilot, "<")
        assert "-- NORMAL --" in screen_text(stage)
        await keys(pilot, "2d")
        assert "-- NORMAL -- 2d" in screen_text(stage)
        await keys(pilot, "<bdw")
        assert stage.main.prompt.text == "one "
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)
        assert stage.agent.sent[0][0].strip() == "one"
        assert "-- INSERT --" in screen_text(stage)


async def test_undo_takes_back_one_command_and_escape_twice_stops_the_run(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run() as pilot:
        stage.agent.submit("go")
        await write(pilot, "one two six")
        await keys(pilot, "<0dwdw")
        assert stage.main.prompt.text == "six"
        await keys(pilot, "u")
        assert stage.main.prompt.text == "two six"
        await press(pilot, "ctrl+r")
        assert stage.main.prompt.text == "six"
        assert stage.agent.calls == []
        await pilot.press("escape")
        await until(lambda: stage.agent.calls == ["interrupt"], pilot)


async def test_a_selection_is_seen_and_deleted(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run() as pilot:
        await write(pilot, "one two")
        await keys(pilot, "<0ve")
        assert stage.main.prompt.selected_text == "one"
        assert "-- VISUAL --" in screen_text(stage)
        await keys(pilot, "d")
        assert stage.main.prompt.text == " two"


async def test_commands_and_history_are_a_key_away(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run() as pilot:
        await write(pilot, "earlier")
        await pilot.press("enter")
        await keys(pilot, "<k")
        assert stage.main.prompt.text == "earlier"
        await keys(pilot, "j")
        assert stage.main.prompt.text == ""
        await keys(pilot, ":")
        await write(pilot, "hel")
        await pilot.pause()
        assert stage.main.prompt.text == "/hel"


async def test_without_the_setting_keys_write(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "one")
        await pilot.press("escape")
        await write(pilot, "dd")
        assert stage.main.prompt.text == "onedd"
        assert "INSERT" not in screen_text(stage)
