"""Keys of the conversation act on a block that the user sees."""

from pathlib import Path

import pytest

from tests.support.real_stage import looks, real_stage, working_script, write_modules
from tests.support.scripted_client import Reply
from tests.support.ui_app import press, until
from tui_agent.session.entries import ShellEntry
from tui_agent.ui.screens.viewer import ViewerScreen
from tui_agent.ui.widgets.transcript.pane import BlockPane

LONG = "\n".join(f"line {number}" for number in range(100))


async def test_going_back_into_the_conversation_finds_a_block_that_is_shown(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("One."), Reply("A.\n\n" * 60), Reply("The last.")])
    async with stage.run((80, 24)) as pilot:
        await stage.say("first", pilot)
        await press(pilot, "tab", "k")
        assert stage.view.transcript.focused_target() is not None
        await press(pilot, "escape")
        await stage.say("second", pilot)
        await stage.say("third", pilot)
        await press(pilot, "tab")
        target = stage.view.transcript.focused_target()
        assert target is not None
        assert any(row.block is target[1] for row in stage.view.transcript.visible_rows())


async def test_o_opens_the_whole_output_of_the_users_own_command(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [])
    stage.harness.session.append(ShellEntry(command="seq 1 100", output=LONG))
    async with stage.run((80, 24)) as pilot:
        await stage.until_text("earlier lines", pilot)
        await press(pilot, "tab", "k", "o")
        await until(lambda: isinstance(stage.screen, ViewerScreen), pilot)
        assert stage.main.prompt.text == ""


async def test_tab_then_o_opens_what_is_shown_last(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("The redirect drops the query.")])
    async with stage.run((80, 24), after=["Why?"]) as pilot:
        await press(pilot, "tab", "o")
        await until(lambda: isinstance(stage.screen, ViewerScreen), pilot)
        assert "The redirect drops the query." in stage.text()
        await press(pilot, "escape", "k", "o")
        await until(lambda: isinstance(stage.screen, ViewerScreen), pilot)
        assert "Message #" in stage.text()
        assert stage.main.prompt.text == ""


LETTERS = sorted(
    {
        key
        for binding in BlockPane.BINDINGS
        for key in binding.key.split(",")
        if len(key) == 1 and binding.action.startswith("request")
    }
)


@pytest.mark.parametrize("letter", LETTERS)
async def test_each_key_of_the_conversation_acts_on_each_block_or_says_why_not(
    tmp_path: Path, letter: str
) -> None:
    write_modules(tmp_path)
    stage = real_stage(tmp_path, working_script())
    async with stage.run((80, 40), after=looks(1)) as pilot:
        stage.harness.session.append(ShellEntry(command="seq 1 100", output=LONG))
        stage.view.transcript.reopen()
        await press(pilot, "tab", "home", "k")
        focused = []
        while (target := stage.view.transcript.focused_target()) not in focused:
            focused.append(target)
            stage.main.notice.clear()
            offered = letter in stage.main.active_bindings
            copied = stage.app.clipboard
            await press(pilot, letter)
            did = (
                stage.screen is not stage.main
                or f"Press {letter} again" in stage.main.notice.message
                or stage.app.clipboard != copied
            )
            assert stage.main.prompt.text == ""
            if offered:
                assert did, f"{letter} does nothing on {target}"
            else:
                assert f"{letter} (" in stage.main.notice.message
            if stage.screen is not stage.main:
                await press(pilot, "escape")
            assert stage.view.transcript.has_focus
            await press(pilot, "ctrl+up")
        assert len(focused) > 3


async def test_words_that_begin_with_a_key_of_no_use_are_whole(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("Done.")])
    async with stage.run((80, 24), after=["Go."]) as pilot:
        for word in ("retry", "go", "erase", "between"):
            await press(pilot, "tab", *word)
            assert stage.main.prompt.text == word
            stage.main.prompt.clear()
