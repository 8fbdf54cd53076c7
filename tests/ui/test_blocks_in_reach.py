"""Keys of the conversation act on a block that the user sees."""

from pathlib import Path

from tests.support.real_stage import real_stage
from tests.support.scripted_client import Reply
from tests.support.ui_app import press, until
from tui_agent.session.entries import ShellEntry
from tui_agent.ui.screens.viewer import ViewerScreen

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
