"""The context map on real agents: what it shows, what changing the context costs, and that it does what it says."""

from pathlib import Path
from typing import Any

from tests.support.real_stage import RealStage, looks, real_stage, working_script, write_modules
from tests.support.scripted_client import Reply
from tests.support.ui_app import press, until
from tui_agent.agent.context_map import ContextBlock
from tui_agent.app.edit_cost import Edit, plan_edit, question
from tui_agent.context.view import EntryState
from tui_agent.session.entries import ContextEditEntry, TextPart, ToolResultEntry, UserEntry
from tui_agent.ui.screens.context import ContextScreen
from tui_agent.ui.screens.dialogs import LongTextScreen
from tui_agent.ui.screens.viewer import ViewerScreen
from tui_agent.ui.widgets.block_list import Grouping, ListedBlock, ListedGroup, SortOrder, arrange


async def opened(stage: RealStage, pilot: Any) -> ContextScreen:
    await press(pilot, "ctrl+g")
    assert isinstance(stage.screen, ContextScreen)
    return stage.screen


def a_stage(tmp_path: Path, turns: int = 2, **arguments: Any) -> RealStage:
    write_modules(tmp_path, turns)
    return real_stage(tmp_path, working_script(turns), **arguments)


def edits(stage: RealStage) -> list[tuple[int, str]]:
    path = stage.harness.path()
    return [(entry.target, entry.action) for entry in path if isinstance(entry, ContextEditEntry)]


def result_ids(stage: RealStage) -> list[int]:
    return [entry.id for entry in stage.harness.path() if isinstance(entry, ToolResultEntry)]


async def put_cursor_on(screen: ContextScreen, entry_id: int, pilot: Any) -> None:
    listed = screen.blocks
    places = [at for at, row in enumerate(listed.rows) if isinstance(row, ListedBlock)]
    listed.cursor = next(
        at
        for at in places
        if listed.shown and listed.shown.blocks[listed.rows[at].place].origin == (entry_id,)  # type: ignore[union-attr]
    )
    await pilot.pause()


async def test_it_lists_every_block_of_the_next_request_with_what_the_model_is_shown(
    tmp_path: Path,
) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=looks(2)) as pilot:
        screen = await opened(stage, pilot)
        assert screen.blocks.shown == stage.harness.agent.inspector.map()
        assert screen.blocks.block is screen.blocks.shown.blocks[-1]
        rows = [row for row in screen.blocks.rows if isinstance(row, ListedBlock | ListedGroup)]
        blocks = screen.blocks.shown.blocks
        counted = [
            row.tokens if isinstance(row, ListedGroup) else blocks[row.place].tokens for row in rows
        ]
        assert sum(counted) == stage.main.gauge.reading.size.total  # type: ignore[union-attr]
        read = result_ids(stage)[0]
        await put_cursor_on(screen, read, pilot)
        text = stage.text()
        assert f"#{read}" in text
        assert "read module_0.py" in text
        assert "def step_0(value):" in text  # the preview
        assert "are cached for 5 more min; its beginning is unchanged." in " ".join(text.split())
        await press(pilot, "question_mark")
        assert "in the provider's cache since the last request" in stage.text()
        assert "undo the last edit" in stage.text()
        await pilot.press("escape")
        assert stage.screen is screen


async def test_the_price_is_named_before_and_only_y_changes_anything(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, services={"cache_miss_cost": lambda _model, tokens: tokens * 0.001})
    async with stage.run(after=looks(2)) as pilot:
        screen = await opened(stage, pilot)
        read = result_ids(stage)[0]
        await put_cursor_on(screen, read, pilot)
        await press(pilot, "x")
        assert f"Hide #{read}? Frees" in stage.text()
        assert "cached tokens are read again, about $" in stage.text()
        await press(pilot, "escape")
        assert stage.screen is screen
        assert edits(stage) == []
        await pilot.press("x", "down")  # looking elsewhere withdraws the question
        await pilot.pause()
        assert edits(stage) == []
        await press(pilot, "up", "x", "enter")
        assert edits(stage) == [(read, "drop")]
        assert "hidden · " in stage.text()
        told = " ".join(stage.text().split())
        assert "; read again from #" in told
        assert "the context was edited" in told
        sent = "".join(
            message.text for message in stage.harness.agent.inspector.next_request().messages
        )
        assert '"""Module 0."""' not in sent
        assert '"""Module 1."""' in sent


async def test_mask_restore_and_pin_do_what_they_say_and_undo_takes_them_back(
    tmp_path: Path,
) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=looks(2)) as pilot:
        screen = await opened(stage, pilot)
        read = result_ids(stage)[0]
        await put_cursor_on(screen, read, pilot)
        whole = stage.harness.agent.inspector.next_request()
        await press(pilot, "m", "enter")
        assert "cleared · " in stage.text()
        await pilot.press("b")
        assert "Adds" in stage.text()
        await press(pilot, "enter")
        assert stage.harness.agent.inspector.next_request().messages == whole.messages
        await pilot.press("p")
        assert "The request keeps its size" in stage.text()
        await press(pilot, "enter")
        assert edits(stage) == [(read, "mask"), (read, "restore"), (read, "pin")]
        await press(pilot, "u", "u", "u")
        assert edits(stage) == []
        await press(pilot, "u")
        assert "There is no edit to undo" in stage.text()


async def test_the_text_of_an_edit_is_not_lost_if_another_session_is_opened(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=looks(2)) as pilot:
        screen = await opened(stage, pilot)
        await put_cursor_on(screen, result_ids(stage)[0], pilot)
        await press(pilot, "e")
        await until(lambda: isinstance(stage.screen, LongTextScreen), pilot)
        stage.screen.editor.load_text("only this")
        stage.main.controller.agent = None
        await press(pilot, "ctrl+s")
        assert stage.main.prompt.text == "only this"
        assert "Your text is in the prompt." in stage.main.notice.message
        assert edits(stage) == []


async def test_an_edited_block_is_sent_as_edited_counted_again_and_undone(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=looks(2)) as pilot:
        screen = await opened(stage, pilot)
        inspector = stage.harness.agent.inspector
        read = result_ids(stage)[0]
        await put_cursor_on(screen, read, pilot)
        whole = inspector.next_request()
        before = screen.blocks.block
        assert before is not None
        await press(pilot, "e")
        await until(lambda: isinstance(stage.screen, LongTextScreen), pilot)
        assert f"Edit #{read}?" in stage.text()
        stage.screen.editor.load_text("only this")
        await press(pilot, "ctrl+s")
        await until(lambda: "edited from the next request on" in stage.text(), pilot)
        sent = inspector.next_request()
        assert [message.role for message in sent.messages] == [
            message.role for message in whole.messages
        ]
        [answer] = [one for one in sent.messages if one.origin == (read,)]
        assert answer.text == "only this"
        after = screen.blocks.block
        assert after is not None
        assert after.edited
        assert after.tokens < before.tokens
        assert '"""Module 0."""' in stage.harness.session.entry(read).output  # type: ignore[union-attr]
        await press(pilot, "x", "enter", "b", "enter")
        assert inspector.next_request().messages == sent.messages
        await press(pilot, "b", "enter")
        assert inspector.next_request().messages == whole.messages
        await press(pilot, "u", "u", "u", "u")
        assert edits(stage) == []
        assert inspector.next_request().messages == whole.messages


async def test_an_action_on_a_group_is_for_all_of_it_and_undone_as_one(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=looks(2)) as pilot:
        screen = await opened(stage, pilot)
        await pilot.press("V", "V")
        assert screen.blocks.grouping is Grouping.TOOL
        names = [row.name if isinstance(row, ListedGroup) else "" for row in screen.blocks.rows]
        screen.blocks.cursor = names.index("bash")
        await press(pilot, "m", "enter")
        session = stage.harness.session
        masked = [
            entry_id for entry_id in result_ids(stage) if session.entry(entry_id).tool == "bash"
        ]  # type: ignore[union-attr]
        assert [target for target, _ in edits(stage)] == masked
        assert len(masked) == 2
        await press(pilot, "u")
        assert edits(stage) == []


async def test_the_head_cannot_be_edited(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, 1)
    async with stage.run(after=looks(1)) as pilot:
        screen = await opened(stage, pilot)
        await press(pilot, "home", "x")
        assert "be changed here; they" in stage.text()
        await press(pilot, "down")
        assert "be changed here; they" not in stage.text(), "what was said of another row"
        await press(pilot, "home", "r")
        assert stage.screen is screen, "the head races nothing"
        folded = screen.blocks.count
        await press(pilot, "home", "right")
        assert screen.blocks.count > folded
        await pilot.press("end", "up", "left")  # not the heading it belongs to
        assert screen.blocks.count > folded
        await press(pilot, "home", "down", "x")
        assert screen.blocks.block is not None
        assert screen.blocks.block.kind == "tool_schema"
        assert "be changed here; they" in stage.text()


async def test_why_nothing_is_undone_is_said_as_it_is(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, 2)
    async with stage.run(after=looks(1)) as pilot:
        screen = await opened(stage, pilot)
        await put_cursor_on(screen, result_ids(stage)[0], pilot)
        await press(pilot, "m", "u")
        assert "Nothing was changed." in stage.text()
        await pilot.press("m", "enter", "escape")
        await stage.say("Look at module 1.", pilot)
        await press(pilot, "ctrl+g")
        await press(pilot, "u")
        assert "The conversation has continued since the last edit" in stage.text()
        assert len(edits(stage)) == 1


async def test_the_request_is_shown_as_json_and_can_be_searched(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, 1)
    async with stage.run(after=looks(1)) as pilot:
        await opened(stage, pilot)
        await press(pilot, "o")
        viewer = stage.screen
        assert isinstance(viewer, ViewerScreen)
        assert '"model": "test/model"' in stage.text()
        assert "def step_59" not in stage.text()
        await press(pilot, "slash", *"step_59")
        assert len(viewer.text.matches) == 1
        assert "def step_59" in stage.text()
        found = viewer.text.find("def step_")
        spans = [span for at in range(viewer.text.count) for span in viewer.text.row(at, 80)]
        marked = "".join(text for text, style in spans if style == "match")
        assert marked.replace(" ", "") == "defstep_" * found, "where a row ends, too"
        await press(pilot, "escape", "escape")
        assert isinstance(stage.screen, ContextScreen)


async def test_it_follows_the_agent_while_it_works(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("One.")])
    async with stage.run() as pilot:
        await pilot.click("Gauge", offset=(10, 0))
        await pilot.pause()
        assert "Nothing yet" in stage.text()
        await stage.harness.say("hello there")
        await until(lambda: "▸ prompt and tools" in stage.text(), pilot)
        await pilot.press("end")
        await stage.until_text("user hello there", pilot)


async def test_five_thousand_blocks_are_listed_without_making_their_rows(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("One.")], window=2_000_000)
    texts = [UserEntry(parts=(TextPart(text=f"message {number}"),)) for number in range(5_000)]
    stage.harness.session.append_many(texts)
    async with stage.run() as pilot:
        await press(pilot, "ctrl+g")
        made: list[int] = []
        listed = stage.screen.blocks
        assert listed.count > 5_000
        original = listed.row
        listed.row = lambda index, width: made.append(index) or original(index, width)
        await press(pilot, "end", "v", "v", "up")
        assert len(set(made)) < 120
        assert len(list(stage.screen.walk_children())) < 20


def blocks() -> list[ContextBlock]:
    return [
        ContextBlock("tool read", "tool_schema", (1,), 100, tool="read", cached=True),
        ContextBlock("agent prompt", "system", (1,), 300, cached=True),
        ContextBlock("fix it", "user", (2,), 50, age_entries=4, age_steps=2, cached=True),
        ContextBlock("", "assistant", (3,), 20, age_entries=3, age_steps=1, cached=True),
        ContextBlock(
            "read a.py",
            "tool_result",
            (4,),
            900,
            tool="read",
            path="a.py",
            age_entries=2,
            age_steps=1,
            cached=True,
        ),
        ContextBlock("done", "assistant", (5,), 40, age_entries=1, cached=True),
        ContextBlock("next", "user", (6,), 10),
    ]


def test_orders_and_groups() -> None:
    rows = blocks()
    largest = [
        row.place
        for row in arrange(rows, SortOrder.SIZE, Grouping.NONE)
        if isinstance(row, ListedBlock)
    ]
    assert largest[:2] == [4, 1]
    newest = [
        row.place
        for row in arrange(rows, SortOrder.AGE, Grouping.NONE)
        if isinstance(row, ListedBlock)
    ]
    assert newest == [6, 5, 4, 3, 2, 1, 0]
    files = arrange(rows, SortOrder.SIZE, Grouping.FILE, {"no file"})
    groups = [(row.name, row.tokens, row.folded) for row in files if isinstance(row, ListedGroup)]
    assert groups == [("a.py", 900, False), ("no file", 520, True)]


def test_what_is_there_already_costs_nothing_because_nothing_happens_and_a_cold_cache_has_no_price() -> (
    None
):
    edit = plan_edit(blocks(), [4], "drop")
    assert isinstance(edit, Edit)
    assert edit.reread == 60, "the call of a result that is dropped goes with it"
    assert (
        question(edit, warm=False, dollars=None)
        == "Hide #4? Frees 900 tokens; the cache is cold anyway."
    )
    assert plan_edit(blocks(), [2], "restore") == "#2 is in context already."
    pinned = [*blocks()[:2], ContextBlock("x", "user", (9,), 5, state=EntryState.PINNED)]
    assert plan_edit(pinned, [2], "pin") == "#9 is pinned already."


async def test_marked_blocks_race_the_next_answer_with_and_without_them(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=looks(2)) as pilot:
        screen = await opened(stage, pilot)
        first, second = result_ids(stage)[:2]
        for entry in (second, first):
            await put_cursor_on(screen, entry, pilot)
            await pilot.press("space")
        assert stage.text().count("✓ marked") == 2
        await put_cursor_on(screen, second, pilot)
        await pilot.press("space")
        assert stage.text().count("✓ marked") == 1
        await pilot.press("r")
        await until(lambda: isinstance(stage.screen, LongTextScreen), pilot)
        await pilot.press("g", "o", "ctrl+s")
        await stage.until_text(f"without #{first}", pilot)
        assert "Runner 3" not in stage.text()
