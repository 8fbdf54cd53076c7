"""Going back to an earlier message: by Escape twice and by ``/rewind``, with files, without, or only those."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.tree_stage import FILES, MINE, TreeStage, plant_files, tree_stage, write_files
from tests.support.ui_app import screen_text, until
from tui_agent.ui.screens.picker import PickScreen

AFTER = {path: images[1] for path, images in FILES.items()} | {"notes.md": MINE}
BEFORE = {path: images[0] for path, images in FILES.items()} | {"notes.md": MINE}


def on_disk(root: Path) -> dict[str, bytes | None]:
    return {path: (root / path).read_bytes() if (root / path).exists() else None for path in FILES}


async def asked_for(stage: TreeStage, message: str, *keys: str) -> None:
    """Press Escape twice and pick a message, then answer the question about the file that somebody else changed."""
    await stage.pilot.press("escape", "escape")
    await picked(stage, message, *keys)


async def picked(stage: TreeStage, message: str, *keys: str) -> None:
    picker = await stage.asked(PickScreen)
    await until(lambda: picker.listing.option_count, stage.pilot)
    await stage.pilot.press(*message, "enter")
    await until(lambda: stage.stage.view.question.armed, stage.pilot)
    text = screen_text(stage.stage)
    assert "notes.md changed outside this session. Continue anyway?" in text
    assert "mine" in text, "the change by somebody else is shown"
    await stage.pilot.press(*keys)


async def test_the_list_says_what_changed_since_each_message(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, planting=plant_files)
    write_files(stage)
    async with stage.run((100, 30)) as pilot:
        await pilot.press("escape")
        assert "Press Escape again" in stage.stage.main.notice.message
        await pilot.press("escape")
        picker = await stage.asked(PickScreen)
        rows = [str(option.prompt) for option in picker.listing.options]
        assert [row.split("  ")[0] for row in rows] == [
            "fix the files",
            "write a test for it",
            "the login redirect loses the query string",
        ]
        assert all("4 files +4 −2" in row for row in rows)


async def test_whoever_goes_on_writing_keeps_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list takes a moment on a slow machine."""
    stage = tree_stage(tmp_path, planting=plant_files)
    async with stage.run((100, 30)) as pilot:
        main = stage.stage.main
        files = main.controller.open_agent.files
        amounts = files.amounts
        written = asyncio.Event()

        async def slow(leaves: list[int | None]) -> Any:
            await written.wait()
            return await amounts(leaves)

        monkeypatch.setattr(files, "amounts", slow)
        # Keys wait for a page that a command opens, but not for ever.
        monkeypatch.setattr("tui_agent.ui.key_order.COMMAND_SECONDS", 0.05)
        await pilot.press("escape", "escape", "h", "i")
        await until(lambda: main.prompt.text == "hi", pilot)
        written.set()
        await until(lambda: "you continued typing" in main.notice.message, pilot)
        assert main.prompt.text == "hi"
        assert stage.stage.app.screen is main


@pytest.mark.parametrize(("keys", "files"), [(("enter",), BEFORE), (("c",), AFTER)])
async def test_conversation_and_files_or_the_conversation_alone_go_back(
    tmp_path: Path, keys: tuple[str, ...], files: dict[str, Any]
) -> None:
    stage = tree_stage(tmp_path, planting=plant_files)
    root = write_files(stage)
    async with stage.run((100, 30)) as pilot:
        await asked_for(stage, "fix", *keys)
        await until(lambda: stage.session.leaf == stage.names["before"], pilot)
        await until(lambda: on_disk(root) == files, pilot)
        assert stage.stage.main.prompt.full_text == "fix the files"
        await stage.stage.main.controller.run("undo", "")
        await until(lambda: on_disk(root) == AFTER, pilot)
        assert stage.session.leaf == stage.names["leaf"]
        assert stage.stage.main.prompt.full_text == ""


async def test_files_alone_go_back_and_undo_brings_them_again(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, planting=plant_files)
    root = write_files(stage)
    async with stage.run((100, 30)) as pilot:
        stage.stage.main.controller.begin("rewind", "files")
        await picked(stage, "fix", "y")
        await until(lambda: on_disk(root) == BEFORE, pilot)
        await until(lambda: stage.session.leaf != stage.names["leaf"], pilot)
        assert stage.stage.main.prompt.full_text == "", "the conversation goes on"
        plan = await stage.agent.files.plan(stage.names["leaf"])
        assert not plan.conflicts, "what was put back is the session's own change"
        await stage.stage.main.controller.run("undo", "")
        await until(lambda: on_disk(root) == AFTER, pilot)
        assert stage.session.leaf == stage.names["leaf"]
        await stage.stage.main.controller.run("redo", "")
        await until(lambda: on_disk(root) == BEFORE, pilot)
