"""Every way to act from the tree on a real agent and a real store, and that leaving changes nothing."""

from pathlib import Path

import pytest
from textual.widgets import Input

from tests.support.scripted_client import Reply
from tests.support.tree_stage import SUMMARY, TreeStage, answered, said, tree_stage
from tests.support.ui_app import press, until, write
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import BranchSummaryEntry
from tui_agent.session.session import Session
from tui_agent.ui.screens.dialogs import ChoiceScreen, LineScreen
from tui_agent.ui.screens.tree import SummarisingScreen
from tui_agent.ui.widgets.session_view import SessionView


async def test_a_message_of_the_user_goes_back_into_the_prompt(stage: TreeStage) -> None:
    async with stage.opened(at="test") as pilot:
        await stage.go()
        assert stage.session.leaf == stage.names["fork"]
        assert stage.stage.main.prompt.text == "write a test for it"
        assert stage.stage.app.focused is stage.stage.main.prompt
        await until(
            lambda: (
                "built from a constant" in stage.conversation()
                and "added tests" not in stage.conversation()
            ),
            pilot,
        )
        assert not stage.client.requests
        await stage.open("c", at="test")
        await stage.closed()
        assert stage.session.leaf == stage.names["test"]
        assert stage.stage.main.prompt.text == "", "it is continued after"


async def test_the_first_message_leads_to_an_empty_conversation(tmp_path: Path) -> None:
    def plant(session: Session) -> dict[str, int]:
        session.append_many([said("hello\nthere"), answered("Hi.")])
        return {}

    stage = tree_stage(tmp_path, planting=plant)
    async with stage.opened("home") as pilot:
        await stage.go()
        assert stage.session.leaf is None
        assert stage.stage.main.prompt.text == "hello\nthere"
        await until(lambda: "Hi." not in stage.conversation(), pilot)
        await stage.open()
        assert "at the beginning" in str(stage.screen.heading.content)
        assert not any("◀" in row for row in stage.rows())


async def test_a_summary_is_told_to_the_branch_one_goes_to(stage: TreeStage) -> None:
    async with stage.opened(at="xylophone") as pilot:
        await stage.go(answer="2")
        entry = stage.session.path()[-1]
        assert isinstance(entry, BranchSummaryEntry)
        assert entry.parent_id == stage.names["xylophone"]
        assert entry.from_id == stage.names["leaf"]
        await until(lambda: stage.conversation().count("Summary of the branch left at") == 1, pilot)


async def test_the_focus_of_a_summary_is_asked_for(stage: TreeStage) -> None:
    async with stage.opened(at="xylophone") as pilot:
        await pilot.press("enter")
        await stage.asked()
        await pilot.press("3")
        await write(pilot, "why 12 failed")
        await pilot.press("enter")
        await stage.closed()
        assert "why 12 failed" in stage.client.requests[-1].messages[-1].text


async def test_escape_while_summarising_changes_nothing(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, [Reply("## Goal\nTried", hang=True)])
    async with stage.opened(at="xylophone") as pilot:
        before = stage.stored()
        await pilot.press("enter")
        await stage.asked()
        await pilot.press("2")
        await stage.client.hanging.wait()
        found = await stage.asked(SummarisingScreen)
        await until(lambda: "Tried" in str(found.growing.content), pilot)
        await pilot.press("escape")
        await until(lambda: stage.client.closed == 1, pilot)
        assert stage.is_open
        assert stage.at() == stage.names["xylophone"]
        assert stage.stored() == before


async def test_a_summary_that_fails_says_why_and_can_be_left_out(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, [Reply(error=ModelError(ErrorKind.AUTH, "The key was refused."))])
    async with stage.opened(at="xylophone") as pilot:
        before = stage.stored()
        await pilot.press("enter")
        await stage.asked()
        await pilot.press("3", *"why", "enter")
        await until(lambda: "key was refused" in stage.screen.notice.message, pilot)
        assert stage.is_open
        assert stage.at() == stage.names["xylophone"]
        assert stage.stored() == before
        await pilot.press("enter")
        await stage.asked()
        await pilot.press("3")
        await until(lambda: isinstance(stage.top, LineScreen), pilot)
        assert stage.top.query_one(Input).value == "why"


@pytest.mark.parametrize(
    "keys",
    [
        ("enter", "escape"),
        ("enter", "3", "escape", "escape"),
        ("l", "x", "escape"),
        ("M", "escape"),
        ("slash", "x", "escape"),
    ],
)
async def test_escape_at_any_point_changes_nothing(stage: TreeStage, keys: tuple[str, ...]) -> None:
    async with stage.opened() as pilot:
        before = stage.stored()
        await stage.highlight("xylophone")
        for key in keys:
            await press(pilot, key)
        assert stage.top is stage.screen
        assert stage.at() == stage.names["xylophone"]
        await pilot.press("escape")
        await stage.closed()
        assert stage.stored() == before
        assert stage.stage.main.prompt.text == ""


async def test_going_while_the_agent_works_asks_to_interrupt_it(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, [Reply("working on", hang=True)])
    async with stage.run() as pilot:
        stage.agent.submit("go on")
        await stage.client.hanging.wait()
        await stage.open(at="fork")
        await pilot.press("enter")
        await stage.asked(ChoiceScreen)
        await pilot.press("down", "enter")
        assert stage.agent.running
        await pilot.press("enter")
        await stage.asked(ChoiceScreen)
        await pilot.press("enter")
        await stage.asked()
        assert not stage.agent.running
        await pilot.press("1")
        await stage.closed()
        assert stage.session.leaf == stage.names["fork"]


async def test_m_merges_a_summary_of_another_branch_without_moving(stage: TreeStage) -> None:
    async with stage.opened("m", notifications=True) as pilot:
        assert stage.top is stage.screen, "one's own path can't be merged"
        await stage.highlight("which")
        await pilot.press("M")
        await stage.asked()
        await pilot.press("1")
        await until(lambda: isinstance(stage.session.path()[-1], BranchSummaryEntry), pilot)
        await until(lambda: stage.top is stage.screen, pilot)
        entry = stage.session.path()[-1]
        assert isinstance(entry, BranchSummaryEntry)
        assert entry.parent_id == stage.names["leaf"]
        assert entry.from_id == stage.names["end"], "all of the branch"
        assert SUMMARY.split("\n")[1] in entry.summary
        assert stage.is_open
        await pilot.pause()
        assert stage.at() == entry.id
        assert any("[branch summary] Tried middleware" in row for row in stage.rows())


async def test_f_goes_on_in_a_new_session_that_ends_here(stage: TreeStage) -> None:
    async with stage.opened(at="middleware") as pilot:
        await pilot.press("f")
        await until(
            lambda: (
                stage.session.id != stage.session_id
                and len(stage.stage.of(SessionView.Opened)) == 2
            ),
            pilot,
        )
        assert stage.session.leaf == stage.names["fork"]
        assert stage.session.info.parent_session == stage.session_id
        await until(lambda: stage.stage.main.prompt.text == "try middleware instead", pilot)


async def test_l_labels_the_entry_and_an_empty_label_removes_it(stage: TreeStage) -> None:
    async with stage.opened(at="fork") as pilot:
        await pilot.press("l")
        await write(pilot, "base")
        await pilot.press("enter")
        assert stage.session.labels()[stage.names["fork"]] == "base"
        assert any("[base]" in row for row in stage.rows())
        await stage.highlight("test")
        await pilot.press("l")
        assert stage.screen.field.value == "green"
        await pilot.press("ctrl+u", "enter")
        assert stage.names["test"] not in stage.session.labels()


async def test_u_undoes_a_move_and_ctrl_r_redoes_it(stage: TreeStage) -> None:
    async with stage.run() as pilot:
        await stage.agent.navigator.go(stage.names["fork"])
        await stage.open("u")
        assert stage.session.leaf == stage.names["leaf"]
        assert stage.at() == stage.names["leaf"]
        await pilot.press("ctrl+r")
        assert stage.session.leaf == stage.names["fork"]
        assert stage.is_open


async def test_y_copies_the_text_of_the_entry(stage: TreeStage) -> None:
    async with stage.opened(at="run") as pilot:
        await pilot.press("y")
        await until(lambda: stage.stage.app.clipboard.startswith('grep {"path"'), pilot)
        assert "output of edit 3" in stage.stage.app.clipboard
        await until(lambda: stage.stage.toasts, pilot)


async def test_a_session_that_can_only_be_read_can_be_looked_at(stage: TreeStage) -> None:
    async with stage.run() as pilot:
        other = Session(stage.stage.store, stage.session_id, estimate=lambda _entry: 1)
        other.hold(take_over=True)
        assert stage.session.check_for_take_over()
        await stage.open(at="fork")
        for key in ("enter", "l", "m", "u"):
            await pilot.press(key)
            assert stage.top is stage.screen
            assert not stage.screen.entry.display


async def test_label_command_labels_the_leaf(stage: TreeStage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "/label works")
        await pilot.press("enter")
        await until(lambda: stage.session.labels().get(stage.names["leaf"]) == "works", pilot)
        await write(pilot, "/label")
        await pilot.press("enter")
        await until(lambda: isinstance(stage.top, LineScreen), pilot)
        await pilot.press("s", "enter")
        await until(lambda: stage.session.labels().get(stage.names["leaf"]) == "s", pilot)
