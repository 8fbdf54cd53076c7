"""/remember and /forget."""

from pathlib import Path

from tests.support.real_stage import real_stage
from tests.support.scripted_client import Reply
from tests.support.ui_app import until
from tui_agent.files.notes import NOTES_FILE, read_notes
from tui_agent.session.entries import UserEntry
from tui_agent.ui.screens.dialogs import ChoiceScreen


async def test_a_note_is_kept_told_to_the_model_shown_and_taken_out(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    stage = real_stage(tmp_path, [Reply("Hello.")])
    project = stage.harness.agent.ports.project
    async with stage.run() as pilot:
        await stage.say("Hello.", pilot)
        stage.main.controller.begin("remember", "Use  pnpm here.")
        await until(lambda: "Use pnpm here." in read_notes(project), pilot)
        await until(lambda: f"Noted in {NOTES_FILE}" in " ".join(stage.text().split()), pilot)
        told = stage.harness.session.active_path()[-1]
        assert isinstance(told, UserEntry)
        assert told.synthetic == "remember"
        stage.main.controller.begin("remember")
        await stage.until_text("- Use pnpm here.", pilot)
        await pilot.press("escape")
        stage.main.controller.begin("forget")
        await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
        await pilot.press("enter")
        await until(lambda: "pnpm" not in read_notes(project), pilot)
