"""What the prompt offers while one types: commands, files, entries."""

from pathlib import Path

import pytest

from tests.support.ui_app import Stage, make_stage, press, remembered, until, write
from tui_agent.agent.events import RunStarted
from tui_agent.app.commands import Command
from tui_agent.app.session_commands import rename
from tui_agent.session.entries import AssistantEntry, TextPart, UserEntry


def offered(stage: object) -> list[str]:
    popup = stage.main.popup  # type: ignore[attr-defined]
    return [str(option.prompt).split()[0] for option in popup.options] if popup.display else []


async def test_enter_on_a_command_that_needs_an_argument_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Command("review", "an own command", argument="FILE", handler=rename)]
    monkeypatch.setattr("tui_agent.app.controller.commands_of", lambda _agent: rows)
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await press(pilot, "slash", "r", "e", "v", "enter")
        assert stage.main.prompt.text == "/review "


async def test_at_offers_files_and_enter_or_a_click_inserts_one(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "look at @views")
        await until(lambda: offered(stage), pilot)
        assert offered(stage)[0] == "src/auth/views.py"
        await pilot.press("down", "enter")
        assert stage.main.prompt.text == "look at @tests/test_views.py "
        assert stage.agent.sent == []
        await write(pilot, "@models")
        await until(lambda: offered(stage) == ["src/auth/models.py"], pilot)
        await pilot.click("CompletionPopup", offset=(4, 0))
        await pilot.pause()
        assert stage.main.prompt.text.endswith(" @src/auth/models.py ")
        assert stage.main.prompt.has_focus


async def test_escape_closes_the_list_first_and_stops_the_run_next(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.emit(RunStarted())
        await press(pilot, "slash", "m")
        assert offered(stage)
        await press(pilot, "escape")
        assert offered(stage) == []
        assert stage.main.prompt.text == "/m"
        assert stage.agent.calls == []
        await pilot.press("escape")
        assert stage.agent.calls == ["interrupt"]


async def test_a_word_that_names_nothing_is_said_to_and_enter_sends(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, files=())
    async with stage.run() as pilot:
        await write(pilot, "see @")
        await until(lambda: stage.main.popup.display, pilot)
        assert "no files here yet" in str(stage.main.popup.options[0].prompt)
        await write(pilot, "nosuch")
        await until(lambda: "“nosuch”" in str(stage.main.popup.options[0].prompt), pilot)
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)


async def test_a_number_sign_offers_entries_the_newest_first(stage: Stage) -> None:
    async with stage.run() as pilot:
        remembered(stage)
        said = (TextPart(text="Looking."),)
        stage.agent.append(AssistantEntry(parts=said, model="m", error="cut off"))
        stage.agent.append(AssistantEntry(parts=(), model="m", error="No key was found."))
        await write(pilot, "as in #")
        await until(lambda: offered(stage), pilot)
        assert offered(stage) == ["#6", "#5", "#3", "#2", "#1"]
        rows = [" ".join(str(option.prompt).split()) for option in stage.main.popup.options]
        assert rows[0].startswith("#6 error No key was found.")
        assert rows[1].startswith("#5 answer Looking.")
        assert rows[2].startswith("#3 you")
        await write(pilot, "logbug")
        await until(lambda: offered(stage) == ["#1"], pilot)
        await pilot.press("enter")
        assert stage.main.prompt.text == "as in #1 "


async def test_a_number_typed_in_full_is_sent_as_it_is(stage: Stage) -> None:
    async with stage.run() as pilot:
        for number in range(12):
            stage.agent.append(UserEntry(parts=(TextPart(text=f"message {number}"),)))
        await write(pilot, "as in #1")
        await until(lambda: offered(stage)[:4] == ["#12", "#11", "#10", "#1"], pilot)
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)
        assert "as in #1" in str(stage.agent.sent[0])
