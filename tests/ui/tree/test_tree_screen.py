"""The tree on a real agent and a real store: every key, every way out, and that leaving changes nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from tests.support.scripted_client import Reply
from tests.support.tree_stage import SUMMARY, TreeStage, answered, said, tree_stage
from tests.support.ui_app import until, write
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import BranchSummaryEntry, PruneEntry
from tui_agent.session.session import Session
from tui_agent.ui.app import TuiAgentApp
from tui_agent.ui.screens.choice import ChoiceScreen
from tui_agent.ui.screens.report import ReportScreen
from tui_agent.ui.screens.summarising import SummaryDialog
from tui_agent.ui.screens.tree import TreeScreen
from tui_agent.ui.widgets.session_view import SessionView
from tui_agent.ui.widgets.tree.outline import What
from tui_agent.ui.widgets.tree.rows import Filter
from tui_agent.ui.widgets.tree.session_tree import SessionTree


def dialog(stage: TreeStage) -> SummaryDialog | None:
    screen = stage.stage.app.screen
    return screen if isinstance(screen, SummaryDialog) and screen.is_mounted else None


def texts(stage: TreeStage) -> str:
    transcript = stage.stage.view.transcript
    return "\n".join(row.line.text for row in transcript.visible_rows())


async def asked(stage: TreeStage, pilot: Any) -> SummaryDialog:
    await until(lambda: dialog(stage) is not None, pilot)
    await pilot.pause()
    found = dialog(stage)
    assert found is not None
    return found


async def closed(stage: TreeStage, pilot: Any) -> None:
    await until(lambda: not stage.is_open, pilot)
    await pilot.pause()


# -- looking ------------------------------------------------------------------------------------------------


async def test_it_opens_where_one_is_with_the_other_branch_folded(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run((100, 24)) as pilot:
        await pilot.press("ctrl+t")
        await until(lambda: stage.is_open and stage.screen.is_mounted and stage.tree.size.height, pilot)
        await pilot.pause()
        assert stage.at() == stage.names["leaf"]
        rows = stage.rows()
        assert len(rows) == 7
        assert '● grep "next=" · ● read views.py · ● edit views.py' in rows[1]
        assert rows[3].startswith(" ├─• You: write a test for it")
        assert "[green]" in rows[3]
        assert rows[4].endswith("◀ here")
        assert rows[6].strip() == "⊞ 23 entries · [compaction 96k → 14k]"


async def test_arrows_move_fold_and_jump(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    names = stage.names
    async with stage.stage.run() as pilot:
        await stage.open(pilot, "home")
        assert stage.at() == names["question"]
        await pilot.press("right")
        assert stage.at() == names["fork"], "the branch point"
        await pilot.press("right")
        assert stage.at() == names["test"]
        await pilot.press("end")
        line = stage.tree.line
        assert line is not None
        assert line.what is What.FOLD
        assert stage.at() == names["end"], "a fold stands for its tip"
        await pilot.press("right")
        assert stage.tree.outline.total == 12
        assert stage.at() == names["middleware"]
        await pilot.press("down", "down", "down", "right")
        assert stage.tree.outline.total == 20, "the calls one by one"
        await pilot.press("down", "left")
        assert stage.tree.outline.total == 12
        await pilot.press("left")
        assert stage.at() == names["middleware"], "the head of the branch"
        await pilot.press("left")
        assert stage.tree.outline.total == 7
        await pilot.press("left")
        assert stage.at() == names["fork"]
        await pilot.press("pagedown")
        assert stage.tree.cursor == 6
        await pilot.press("pageup", "up")
        assert stage.tree.cursor == 0


async def test_moving_repaints_two_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run((90, 24)) as pilot:
        await stage.open(pilot)
        drawn: list[int] = []
        render = SessionTree.render_line
        monkeypatch.setattr(SessionTree, "render_line", lambda self, y: drawn.append(y) or render(self, y))  # type: ignore[func-returns-value]
        await pilot.press("up")
        await until(lambda: len(drawn) >= 2, pilot)
        assert sorted(drawn) == [3, 4]


async def test_the_filter_goes_round(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        shown: dict[Filter, int] = {}
        for _ in Filter:
            await pilot.press("ctrl+o")
            shown[stage.tree.view.filter] = len(stage.rows())
        assert shown == {
            Filter.NO_TOOLS: 6,
            Filter.USER_ONLY: 4,
            Filter.LABELLED: 1,
            Filter.EVERYTHING: 13,
            Filter.DEFAULT: 7,
        }


async def test_the_preview_follows_and_tells_the_facts(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run((120, 40)) as pilot:
        await stage.open(pilot)
        preview = stage.screen.preview

        def shows(*wanted: str) -> bool:
            seen = "\n".join(row.line.text for row in preview.transcript.visible_rows())
            seen += str(preview.facts.content)
            return all(text in seen for text in wanted)

        await until(lambda: shows("added tests/test_redirect.py", "model", "$0.01"), pilot)
        await stage.highlight(pilot, "run")
        await until(lambda: shows("3 calls", "src/auth/views.py +3 −1", "grep", "edit"), pilot)
        await stage.highlight(pilot, "question")
        await until(lambda: shows("you", "src/auth/views.py +3 −1", "query string"), pilot)
        await pilot.press("end")
        await until(lambda: shows("branch: 24 entries", "Done with middleware."), pilot)
        await pilot.press("right")
        await stage.highlight(pilot, "compaction")
        await until(lambda: shows("Compacted", "Middleware is done."), pilot)
        await pilot.press("space")
        assert not preview.display


async def test_a_small_terminal_shows_the_preview_when_asked(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run((80, 24)) as pilot:
        await stage.open(pilot)
        assert not stage.screen.preview.display
        await pilot.press("p")
        assert stage.screen.preview.display
        assert stage.screen.preview.region.y > stage.tree.region.y
        await pilot.press("tab")
        assert stage.screen.preview.transcript.has_focus
        await pilot.press("escape")
        assert stage.tree.has_focus


async def test_it_is_usable_in_a_tiny_terminal(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run((80, 24)) as pilot:
        await stage.open(pilot)
        for size in ((20, 6), (10, 3), (60, 20), (200, 60)):
            await pilot.resize_terminal(*size)
            await until(lambda width=size[0]: all(len(row) <= width for row in stage.rows()), pilot)


async def test_entries_that_come_while_one_looks_are_shown(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot, "home")
        stage.agent.submit("and another thing")
        await asyncio.wait_for(stage.agent.wait_idle(), 10)
        await until(lambda: any("another thing" in row for row in stage.rows()), pilot)
        assert stage.at() == stage.names["question"], "the cursor stays"


async def test_harmful_text_is_shown_harmless(tmp_path: Path) -> None:
    def plant(session: Session) -> dict[str, int]:
        session.append_many(
            [said("\x1b]0;title\x07 \x1b[31mred [bold]x[/] \u202egnp.exe\n中文"), answered("[/nonsense]")]
        )
        session.label(1, "\x1b[2J中文标签")
        return {}

    stage = tree_stage(tmp_path, planting=plant)
    async with stage.stage.run((100, 24)) as pilot:
        await stage.open(pilot)
        rows = "\n".join(stage.rows())
        assert "\x1b" not in rows
        assert "\u202e" not in rows
        assert "[bold]x[/]" in rows
        assert "[␛[2J中文标签]" in rows
        for y in range(2):
            assert stage.tree.render_line(y).cell_length == stage.tree.scrollable_content_region.width


# -- searching ----------------------------------------------------------------------------------------------


async def test_search_finds_text_in_folded_branches_while_one_types(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        before = stage.stored()
        await pilot.press("slash")
        await write(pilot, "xylo")
        await until(lambda: stage.at() == stage.names["xylophone"], pilot)
        assert "1 match" in str(stage.screen.head.content)
        await pilot.press("escape")
        assert stage.at() == stage.names["leaf"]
        assert stage.tree.outline.total == 7, "folded as before"
        await pilot.press("escape")
        await closed(stage, pilot)
        assert stage.stored() == before


async def test_n_goes_from_hit_to_hit_and_around(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    names = stage.names
    async with stage.stage.run() as pilot:
        await stage.open(pilot, "home", "slash")
        await write(pilot, "middleware")
        await until(lambda: stage.tree.hits is not None and stage.at() == names["middleware"], pilot)
        await pilot.press("enter")
        assert stage.tree.has_focus
        seen = []
        for _ in range(3):
            await pilot.press("n")
            seen.append(stage.at())
        assert seen[1:] == [names["end"], names["middleware"]], "the compaction lies between"
        await pilot.press("N")
        assert stage.at() == names["end"]
        await pilot.press("escape")
        assert stage.is_open
        assert stage.tree.hits is None


async def test_down_goes_to_the_next_hit_while_typing(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot, "home", "slash")
        await write(pilot, "make")
        await until(lambda: stage.tree.hits is not None and stage.tree.hits.total == 1, pilot)
        await pilot.press("down", "up")
        assert isinstance(stage.stage.app.focused, Input)
        assert "1 match" in str(stage.screen.head.content)


async def test_a_search_says_what_the_filter_hides(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot, "ctrl+o", "slash")
        await write(pilot, "make")
        await until(lambda: "nothing found, 18 hidden by the filter" in str(stage.screen.head.content), pilot)


# -- going --------------------------------------------------------------------------------------------------


async def test_a_message_of_the_user_goes_back_into_the_prompt(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        await stage.highlight(pilot, "test")
        await pilot.press("enter")
        await asked(stage, pilot)
        await pilot.press("1")
        await closed(stage, pilot)
        assert stage.session.leaf == stage.names["fork"]
        assert stage.stage.main.prompt.text == "write a test for it"
        assert stage.stage.app.focused is stage.stage.main.prompt
        await until(lambda: "built from a constant" in texts(stage) and "added tests" not in texts(stage), pilot)
        assert not stage.client.requests


async def test_c_continues_from_a_message_of_the_user(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        await stage.highlight(pilot, "test")
        await pilot.press("c")
        await asked(stage, pilot)
        await pilot.press("1")
        await closed(stage, pilot)
        assert stage.session.leaf == stage.names["test"]
        assert stage.stage.main.prompt.text == ""


async def test_the_first_message_leads_to_an_empty_conversation(tmp_path: Path) -> None:
    def plant(session: Session) -> dict[str, int]:
        session.append_many([said("hello\nthere"), answered("Hi.")])
        return {}

    stage = tree_stage(tmp_path, planting=plant)
    async with stage.stage.run() as pilot:
        await stage.open(pilot, "home", "enter")
        await asked(stage, pilot)
        await pilot.press("1")
        await closed(stage, pilot)
        assert stage.session.leaf is None
        assert stage.stage.main.prompt.text == "hello\nthere"
        await until(lambda: "Hi." not in texts(stage), pilot)
        await stage.open(pilot)
        assert "at the beginning" in str(stage.screen.head.content)
        assert not any("◀" in row for row in stage.rows())


async def test_a_summary_is_told_to_the_branch_one_goes_to(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        await stage.highlight(pilot, "xylophone")
        await pilot.press("enter")
        await asked(stage, pilot)
        await pilot.press("2")
        await closed(stage, pilot)
        entry = stage.session.path()[-1]
        assert isinstance(entry, BranchSummaryEntry)
        assert entry.parent_id == stage.names["xylophone"]
        assert entry.from_id == stage.names["leaf"]
        await until(lambda: texts(stage).count("Summary of the branch left at") == 1, pilot)


async def test_the_focus_of_a_summary_is_asked_for(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        await stage.highlight(pilot, "xylophone")
        await pilot.press("enter")
        await asked(stage, pilot)
        await pilot.press("3")
        await write(pilot, "why 12 failed")
        await pilot.press("enter")
        await closed(stage, pilot)
        assert "why 12 failed" in stage.client.requests[-1].messages[-1].text


async def test_escape_while_summarising_changes_nothing(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, [Reply("## Goal\nTried", hang=True)])
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        await stage.highlight(pilot, "xylophone")
        before = stage.stored()
        await pilot.press("enter")
        found = await asked(stage, pilot)
        await pilot.press("2")
        await stage.client.hanging.wait()
        await until(lambda: "Tried" in str(found.growing.content), pilot)
        await pilot.press("escape")
        await until(lambda: stage.client.closed == 1, pilot)
        assert stage.is_open
        assert stage.at() == stage.names["xylophone"]
        assert stage.stored() == before


async def test_a_summary_that_fails_says_why_and_can_be_left_out(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, [Reply(error=ModelError(ErrorKind.AUTH, "The key was refused."))])
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        await stage.highlight(pilot, "xylophone")
        before = stage.stored()
        await pilot.press("enter")
        found = await asked(stage, pilot)
        await pilot.press("2")
        await until(lambda: "key was refused" in str(found.problem.content), pilot)
        assert stage.stored() == before
        await pilot.press("escape")
        assert stage.is_open
        assert stage.at() == stage.names["xylophone"]
        assert stage.stored() == before


@pytest.mark.parametrize(
    "keys", [("enter", "escape"), ("enter", "3", "escape", "escape"), ("l", "x", "escape"), ("m", "escape")]
)
async def test_escape_at_any_point_changes_nothing(tmp_path: Path, keys: tuple[str, ...]) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        before = stage.stored()
        await stage.highlight(pilot, "xylophone")
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        assert stage.stage.app.screen is stage.screen
        assert stage.at() == stage.names["xylophone"]
        await pilot.press("escape")
        await closed(stage, pilot)
        assert stage.stored() == before
        assert stage.stage.main.prompt.text == ""


async def test_a_draft_in_the_prompt_is_kept(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await write(pilot, "half a thought")
        await stage.open(pilot)
        await stage.highlight(pilot, "test")
        await pilot.press("enter")
        await asked(stage, pilot)
        await pilot.press("1")
        await closed(stage, pilot)
        assert stage.stage.main.prompt.text == "write a test for it\nhalf a thought"


async def test_going_while_the_agent_works_asks_to_interrupt_it(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, [Reply("working on", hang=True)])
    async with stage.stage.run() as pilot:
        stage.agent.submit("go on")
        await stage.client.hanging.wait()
        await stage.open(pilot)
        await stage.highlight(pilot, "fork")
        await pilot.press("enter")
        await until(lambda: isinstance(stage.stage.app.screen, ChoiceScreen), pilot)
        await pilot.press("down", "enter")
        assert stage.agent.running
        await pilot.press("enter")
        await until(lambda: isinstance(stage.stage.app.screen, ChoiceScreen), pilot)
        await pilot.press("enter")
        await asked(stage, pilot)
        assert not stage.agent.running
        await pilot.press("1")
        await closed(stage, pilot)
        assert stage.session.leaf == stage.names["fork"]


# -- merging, forking, labels, undo, copy -------------------------------------------------------------------


async def test_m_merges_a_summary_of_another_branch_without_moving(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run(notifications=True) as pilot:
        await stage.open(pilot, "m")
        assert dialog(stage) is None, "one's own path can't be merged"
        await stage.highlight(pilot, "which")
        await pilot.press("m")
        await asked(stage, pilot)
        await pilot.press("1")
        await until(lambda: isinstance(stage.session.path()[-1], BranchSummaryEntry), pilot)
        await until(lambda: dialog(stage) is None, pilot)
        entry = stage.session.path()[-1]
        assert isinstance(entry, BranchSummaryEntry)
        assert entry.parent_id == stage.names["leaf"]
        assert entry.from_id == stage.names["end"], "all of the branch"
        assert SUMMARY.split("\n")[1] in entry.summary
        assert stage.is_open
        await pilot.pause()
        assert stage.at() == entry.id
        assert any("[branch summary] Tried middleware" in row for row in stage.rows())


async def test_f_goes_on_in_a_new_session_that_ends_here(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        await stage.highlight(pilot, "middleware")
        await pilot.press("f")
        await until(
            lambda: stage.session.id != stage.session_id and len(stage.stage.of(SessionView.Opened)) == 2, pilot
        )
        assert stage.session.leaf == stage.names["fork"]
        assert stage.session.info.parent_session == stage.session_id
        await until(lambda: stage.stage.main.prompt.text == "try middleware instead", pilot)


async def test_l_labels_the_entry_and_an_empty_label_removes_it(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        await stage.highlight(pilot, "fork")
        await pilot.press("l")
        await write(pilot, "base")
        await pilot.press("enter")
        assert stage.session.labels()[stage.names["fork"]] == "base"
        assert any("[base]" in row for row in stage.rows())
        await stage.highlight(pilot, "test")
        await pilot.press("l")
        assert stage.screen.field.value == "green"
        await pilot.press("ctrl+u", "enter")
        assert stage.names["test"] not in stage.session.labels()


async def test_u_undoes_a_move_and_ctrl_r_redoes_it(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.agent.navigator.go(stage.names["fork"])
        await stage.open(pilot, "u")
        assert stage.session.leaf == stage.names["leaf"]
        assert stage.at() == stage.names["leaf"]
        await pilot.press("ctrl+r")
        assert stage.session.leaf == stage.names["fork"]
        assert stage.is_open


async def test_y_copies_the_text_of_the_entry(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        await stage.highlight(pilot, "run")
        await pilot.press("y")
        assert stage.stage.app.clipboard.startswith('grep {"path"')
        assert "output of edit 3" in stage.stage.app.clipboard
        await until(lambda: stage.stage.of(TuiAgentApp.Copied), pilot)


async def test_the_keys_have_a_page(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot, "question_mark")
        assert isinstance(stage.stage.app.screen, ReportScreen)
        await pilot.press("escape")
        assert isinstance(stage.stage.app.screen, TreeScreen)


async def test_a_session_that_can_only_be_read_can_be_looked_at(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        stage.session._access._asked_read_only = True
        await stage.open(pilot)
        await stage.highlight(pilot, "fork")
        for key in ("enter", "l", "m", "u"):
            await pilot.press(key)
            assert stage.stage.app.screen is stage.screen
            assert not stage.screen.entry.display


# -- mouse --------------------------------------------------------------------------------------------------


async def test_a_click_selects_and_a_double_click_goes(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.open(pilot)
        await pilot.click(SessionTree, offset=(10, 2))
        assert stage.at() == stage.names["fork"]
        await pilot.click(SessionTree, offset=(10, 6))
        assert stage.tree.outline.total == 12, "a click unfolds"
        await pilot.click(SessionTree, offset=(10, 2), times=2)
        await asked(stage, pilot)
        await pilot.press("1")
        await closed(stage, pilot)
        assert stage.session.leaf == stage.names["fork"]


async def test_the_keys_at_the_bottom_can_be_clicked(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run((120, 24)) as pilot:
        await stage.open(pilot)
        text = str(stage.screen.keys.render())
        await pilot.press("end")
        await pilot.click("#tree-keys", offset=(text.index("fold") + 1, 0))
        assert stage.tree.outline.total == 12
        await pilot.click("#tree-keys", offset=(text.index("filter") + 1, 0))
        assert stage.tree.view.filter is Filter.NO_TOOLS
        await pilot.click("#tree-keys", offset=(text.index("back") + 1, 0))
        await closed(stage, pilot)


# -- commands -----------------------------------------------------------------------------------------------


async def test_label_command_labels_the_leaf(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await write(pilot, "/label works")
        await pilot.press("enter")
        await until(lambda: stage.session.labels().get(stage.names["leaf"]) == "works", pilot)


async def test_undo_takes_a_move_back_and_redo_makes_it_again(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    names = stage.names
    async with stage.stage.run() as pilot:
        await stage.agent.navigator.move(stage.agent.navigator.plan(names["xylophone"]), focus="")
        summary = stage.session.leaf
        await stage.stage.main.run_command("undo", "")
        assert stage.session.leaf == names["leaf"], "with the summary that came along"
        assert stage.stage.main.prompt.text == ""
        await stage.stage.main.run_command("redo", "")
        assert stage.session.leaf == summary
        await stage.stage.main.run_command("undo", "")
        await stage.stage.main.run_command("undo", "")
        assert stage.session.leaf == names["fork"], "then the turn before"
        assert stage.stage.main.prompt.text == "write a test for it"
        await stage.stage.main.run_command("redo", "")
        assert stage.session.leaf == names["leaf"]
        await pilot.pause()


async def test_the_conversation_follows_a_move_and_shows_nothing_twice(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        await stage.agent.navigator.merge(stage.names["end"])
        await until(lambda: texts(stage).count("Summary of the branch") == 1, pilot)
        await stage.agent.navigator.go(stage.names["which"])
        await until(lambda: "Which one?" in texts(stage) and "added tests" not in texts(stage), pilot)


async def test_undo_of_a_prune_at_the_end_brings_the_outputs_back(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path)
    async with stage.stage.run() as pilot:
        stage.session.append(PruneEntry(targets=(stage.names["run"],), tokens_freed=10, reason="asked"))
        await stage.stage.main.run_command("undo", "")
        assert stage.session.leaf == stage.names["leaf"]
        await pilot.pause()


async def test_nothing_is_undone_while_the_agent_works(tmp_path: Path) -> None:
    stage = tree_stage(tmp_path, [Reply("working on", hang=True)])
    async with stage.stage.run() as pilot:
        await stage.agent.navigator.go(stage.names["fork"])
        stage.agent.submit("go on")
        await stage.client.hanging.wait()
        leaf = stage.session.leaf
        await stage.open(pilot, "u", "ctrl+r")
        assert stage.session.leaf == leaf
        assert stage.agent.running
