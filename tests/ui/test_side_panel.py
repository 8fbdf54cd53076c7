"""The side panel: what it tells of a session, when it is there, and where it goes."""

from pathlib import Path
from typing import Any

from tests.support.real_stage import RealStage, real_stage, working_script, write_modules
from tests.support.scripted_client import Call, Reply
from tests.support.ui_app import press, until, write
from tui_agent.session.entries import (
    CompactionEntry,
    SummaryDetails,
    TextPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.records import EntryHeader
from tui_agent.session.skeleton import Headers
from tui_agent.ui.panel_content import outline, panel_facts, with_new_leaf
from tui_agent.ui.screens.tree import TreeScreen


def panel_text(stage: RealStage) -> str:
    panel = stage.view.panel
    left = panel.region.x
    return "\n".join(line[left:] for line in stage.text().split("\n"))


async def settled(stage: RealStage, pilot: Any) -> None:
    await pilot.pause()
    await pilot.pause()


async def test_it_is_there_when_there_is_room_and_ctrl_b_says_otherwise(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("Hello.")])
    async with stage.run((160, 40)) as pilot:
        panel = stage.view.panel
        assert panel.display
        await pilot.resize_terminal(300, 100)
        await until(lambda: panel.size.width > 60, pilot)
        await pilot.resize_terminal(160, 40)
        await until(lambda: panel.size.width < 40, pilot)
        await stage.until_text("nothing yet", pilot)
        await pilot.resize_terminal(100, 30)
        await until(lambda: not panel.display, pilot)
        await stage.say("a question", pilot)
        await pilot.press("ctrl+b")
        await settled(stage, pilot)
        assert panel.display
        assert "a question" in panel_text(stage)
        await pilot.press("ctrl+b")
        assert not panel.display
        await pilot.press("ctrl+b")
        await pilot.resize_terminal(60, 20)
        assert panel.display  # the user's word counts more than the width


async def test_a_cancelled_to_do_does_not_count_in_the_line_above_the_prompt(
    tmp_path: Path,
) -> None:
    todos = '{"todos": "[x] look\\n[-] ask\\n[>] write the test\\n[ ] tell"}'
    script = [Reply("", (Call("todo", todos),)), Reply("Writing.", hang=True)]
    stage = real_stage(tmp_path, script)
    async with stage.run((80, 24)) as pilot:
        await write(pilot, "make a plan")
        await pilot.press("enter")
        await stage.until_text("◐ 1/3 done · write the test", pilot)
        assert stage.text().count("1/3 done") == 2, "the result says the same"
        await pilot.press("escape")
        await settled(stage, pilot)


async def test_a_list_of_an_earlier_turn_does_not_return(tmp_path: Path) -> None:
    unfinished = '{"todos": "[x] look\\n[>] write the test"}'
    finished = '{"todos": "[x] look\\n[x] write the test\\n[-] ask"}'
    script = [
        Reply("", (Call("todo", unfinished),)),
        Reply("Written."),
        Reply("Next.", (Call("todo", finished),)),
        Reply("All is done."),
        Reply("Something else.", hang=True),
    ]
    stage = real_stage(tmp_path, script)
    async with stage.run((160, 40), after=["make a plan"]) as pilot:
        await write(pilot, "go on")
        await pilot.press("enter")
        await until(lambda: "All is done." in stage.text(), pilot)
        await settled(stage, pilot)
        assert "2/2" in panel_text(stage)
        await write(pilot, "something else")
        await pilot.press("enter")
        await until(lambda: "Something else." in stage.text(), pilot)
        await settled(stage, pilot)
        assert not stage.view.todo_line.display
        assert "To-dos" not in panel_text(stage)
        await pilot.press("escape")
        await settled(stage, pilot)


async def test_to_dos_files_and_the_tree_follow_the_agent(tmp_path: Path) -> None:
    todos = '{"todos": "[x] look\\n[>] write the test\\n[ ] tell"}'
    script = [
        Reply("", (Call("todo", todos),)),
        Reply("", (Call("write", '{"path": "new.py", "content": "one\\ntwo\\n"}'),)),
        Reply("Done."),
    ]
    stage = real_stage(tmp_path, script)
    async with stage.run((160, 40)) as pilot:
        await stage.say("make a plan", pilot)
        await settled(stage, pilot)
        text = panel_text(stage)
        assert "make a plan" in text
        assert "To-dos" in text
        assert "1/3" in text
        assert "◐ write the test" in text
        assert "new.py" in text
        assert "+2 −0" in text
        compaction = CompactionEntry(
            summary="s", first_kept_id=None, tokens_before=2, tokens_after=1, trigger="manual",
            details=SummaryDetails(modified_files=("new.py",)),
        )  # fmt: skip
        stage.harness.session.append(compaction)
        stage.view.panel.follow(None)
        await settled(stage, pilot)
        assert "+2 −0" in panel_text(stage)


async def test_enter_jumps_in_the_conversation_and_a_branch_opens_the_tree_at_its_row(
    tmp_path: Path,
) -> None:
    write_modules(tmp_path, 2)
    stage = real_stage(tmp_path, [*working_script(2), Reply("Third.")])
    async with stage.run((160, 30)) as pilot:
        await stage.say("first question", pilot)
        await stage.say("second question", pilot)
        second = next(
            entry.id for entry in stage.harness.path() if entry.preview == "second question"
        )
        await stage.harness.agent.navigator.go(stage.harness.session.entry(second).parent_id)
        await stage.say("another way", pilot)
        await settled(stage, pilot)
        view = stage.view
        text = panel_text(stage)
        assert "├ second question" in text
        view.panel.focus()
        rows = [
            "".join(text for text, _style in view.panel.row(at, 60))
            for at in range(view.panel.count)
        ]
        view.panel.cursor = next(at for at, row in enumerate(rows) if "├ second question" in row)
        await pilot.press("enter")
        await until(lambda: isinstance(stage.screen, TreeScreen), pilot)
        await pilot.pause()
        line = stage.screen.session_tree.line
        assert line.segment.headers[line.row.last].id == second
        await pilot.press("escape")
        view.panel.cursor = 1
        view.panel.focus()
        await press(pilot, "enter")
        assert view.transcript.focused_target() is not None


async def test_running_jobs_are_listed_until_they_end(tmp_path: Path) -> None:
    script = [
        Reply("", (Call("bash", '{"command": "sleep 60", "background": true}'),)),
        Reply("It runs."),
    ]
    stage = real_stage(tmp_path, script)
    async with stage.run((160, 30)) as pilot:
        await stage.say("start it", pilot)
        await settled(stage, pilot)
        assert "Background jobs" in panel_text(stage)
        assert "sleep 60" in panel_text(stage)
        await stage.until_text("1 job", pilot)
        await stage.harness.agent.jobs.aclose()
        await until(lambda: "Background jobs" not in panel_text(stage), pilot)
        await until(lambda: "1 job" not in stage.text(), pilot)


def header(entry_id: int, parent: int | None, kind: str = "user", preview: str = "") -> EntryHeader:
    return EntryHeader(entry_id, parent, kind, preview or f"{kind} {entry_id}", 1, 0, 10)


TREE = [
    header(1, None, "system"),
    header(2, 1),
    header(3, 2, "assistant"),
    header(4, 3),
    header(5, 4, "assistant"),
    header(6, 3),
    header(7, 6, "assistant"),
]


def test_what_lies_below_the_leaf_is_a_branch_and_stays_one_when_something_is_appended() -> None:
    straight = [header(1, None), header(2, 1, "assistant"), header(3, 2), header(4, 3, "assistant")]
    rows = outline(Headers.of(straight), 2, {})
    assert [(row.entry_id, row.is_branch, row.is_leaf) for row in rows] == [
        (1, False, False),
        (2, False, True),
        (3, True, False),
    ]
    asked = UserEntry(id=5, parent_id=2, preview="user 5", parts=(TextPart(text="x"),))
    assert with_new_leaf(rows, asked) == outline(Headers.of([*straight, header(5, 2)]), 5, {})


def test_an_entry_that_is_told_of_late_is_not_shown_twice() -> None:
    rows = outline(Headers.of(TREE), 7, {})
    late = UserEntry(id=6, parent_id=3, preview="user 6", parts=(TextPart(text="x"),))
    assert with_new_leaf(rows, late) == rows


def test_what_was_changed_in_a_file_adds_up() -> None:
    edits = [
        ToolResultEntry(
            id=number, call_id="c", tool="edit", status=ToolStatus.COMPLETED, output="",
            metadata=ToolMetadata(path="a.py", diff="x", additions=number, modified_files=("a.py",)),
        )
        for number in (2, 3)
    ]  # fmt: skip
    (file,) = panel_facts(edits).files
    assert (file.additions, file.entry_id) == (5, 3)
