"""Files go along in the tree screen: the dialog, the diff, undo and redo; escape changes nothing."""

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import OptionList

from tests.support.tree_stage import (
    FILES,
    MINE,
    TreeStage,
    called,
    plant_files,
    said,
    tree_stage,
    write_files,
)
from tests.support.ui_app import press, screen_text, until
from tui_agent.app.services import OpenHow, OpenRequest
from tui_agent.session.session import Session
from tui_agent.ui.screens.branch import BranchScreen
from tui_agent.ui.screens.dialogs import ReportScreen
from tui_agent.ui.screens.diff import DiffScreen
from tui_agent.ui.screens.tree import TreeScreen
from tui_agent.ui.widgets.notice import NoticeLine


def on_disk(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


AFTER = {path: after for path, (_, after) in FILES.items() if after is not None} | {
    "notes.md": MINE
}
BEFORE = {path: before for path, (before, _) in FILES.items() if before is not None} | {
    "notes.md": MINE
}


async def to_the_turn_before(stage: TreeStage) -> Any:
    await stage.open("enter", at="before")
    return await stage.asked()


async def about_files(stage: TreeStage) -> None:
    await until(
        lambda: "notes.md changed outside this session" in screen_text(stage.stage), stage.pilot
    )
    await stage.pilot.pause()


@pytest.mark.parametrize("restores", [False, True])
async def test_going_back_keeps_files_or_restores_them_and_undo_does_likewise(
    tmp_path: Path, restores: bool
) -> None:
    stage = tree_stage(tmp_path, planting=plant_files)
    root = write_files(stage)
    async with stage.run((100, 30)) as pilot:
        await to_the_turn_before(stage)
        await pilot.press("1")
        await about_files(stage)
        assert "mine" in screen_text(stage.stage), "the change by somebody else is shown"
        await pilot.press("y" if restores else "c")
        await stage.closed()
        assert stage.session.leaf == stage.names["before"]
        assert on_disk(root) == (BEFORE if restores else AFTER)
        if restores:
            await until(
                lambda: "notes.md stays (changed since)" in stage.stage.main.notice.message, pilot
            )
        await stage.open("u")
        await until(lambda: stage.session.leaf == stage.names["leaf"], pilot)
        await until(lambda: on_disk(root) == AFTER, pilot)
        await pilot.press("ctrl+r")
        await until(lambda: stage.session.leaf == stage.names["before"], pilot)
        await until(lambda: on_disk(root) == (BEFORE if restores else AFTER), pilot)


@pytest.mark.parametrize("keys", [("escape",), ("1", "escape"), ("3", "escape", "escape")])
async def test_escape_changes_no_file(tmp_path: Path, keys: tuple[str, ...]) -> None:
    stage = tree_stage(tmp_path, planting=plant_files)
    root = write_files(stage)
    async with stage.run((100, 30)) as pilot:
        await to_the_turn_before(stage)
        before = stage.stored()
        for key in keys:
            await press(pilot, key)
        await until(lambda: stage.top is stage.screen, pilot)
        assert on_disk(root) == AFTER
        assert stage.stored() == before


async def test_escape_from_undo_is_no_undo(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, planting=plant_files)
    root = write_files(stage)
    async with stage.run((100, 30)) as pilot:
        await stage.stage.main.controller.run("undo", "")
        await until(lambda: stage.stage.view.question.armed, pilot)
        await press(pilot, "escape")
        assert stage.session.leaf == stage.names["leaf"]
        assert on_disk(root) == AFTER


async def test_d_shows_how_files_differ_from_there_to_here(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, planting=plant_files)
    write_files(stage)
    async with stage.opened(at="before", size=(100, 30)) as pilot:
        await pilot.press("d")
        viewer = await stage.asked(DiffScreen)
        listed = viewer.query_one("#files", OptionList)
        assert [str(option.prompt) for option in listed.options] == [
            "M  notes.md                +1",
            "D  old.cfg                 -1",
            "M  src/auth/views.py       +1 -1",
            "A  tests/test_redirect.py  +2",
        ]
        lines = [line.text for line in viewer.view.lines(viewer.view.size.width)]
        assert "mine" in lines
        await press(pilot, "down", "down")
        lines = [line.text for line in viewer.view.lines(viewer.view.size.width)]
        assert "    return redirect('/')" in lines, "the file under the cursor is shown"
        assert "mine" not in lines
        await pilot.press("escape")
        await stage.highlight("leaf")
        assert isinstance(stage.top, TreeScreen)
        height = stage.top.session_tree.size.height
        await pilot.press("d")
        notice = stage.top.query_one(NoticeLine)
        await until(lambda: notice.message.startswith("No file change"), pilot)
        assert stage.top.session_tree.size.height == height, "what is said covers and moves nothing"


async def test_shift_d_shows_how_the_contexts_differ(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, planting=plant_files)
    write_files(stage)
    async with stage.opened(at="before", size=(100, 40)) as pilot:
        before, leaf = stage.names["before"], stage.names["leaf"]
        await pilot.press("D")
        await stage.asked(ReportScreen)
        await until(lambda: f"only in #{leaf}" in screen_text(stage.stage), pilot)
        told = screen_text(stage.stage)
        assert f"The contexts at #{before} and #{leaf}" in told
        assert f"#{leaf} Fixed." in told


async def test_o_opens_the_session_of_a_subagent(tmp_path: Path) -> None:
    other: list[str] = []

    def planting(session: Session) -> dict[str, int]:
        other.append(session.store.create_session(tmp_path).id)
        added = session.append_many(
            [said("look around"), *called(1, "task", "explore", session=other[0])]
        )
        return {"leaf": added[-1].id}

    stage = tree_stage(tmp_path, planting=planting)
    async with stage.opened(at="leaf", size=(100, 30)) as pilot:
        await pilot.press("o")
        await until(lambda: isinstance(stage.top, BranchScreen), pilot)
        assert stage.stage.requests[-1] == OpenRequest(other[0], OpenHow.READ_ONLY)
        await pilot.press("escape")
        assert stage.is_open
