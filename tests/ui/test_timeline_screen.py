"""The timeline over the context map: the map follows its cursor, by keys and by mouse, and nothing else changes."""

from pathlib import Path
from typing import Any

from textual import events

from tests.support.long_walk import walked
from tests.support.real_stage import RealStage, map_drawn, real_stage, working_script, write_modules
from tests.support.ui_app import press, until
from tui_agent.agent.timeline import Mark
from tui_agent.session.entries import AssistantEntry
from tui_agent.ui.screens.context import ContextScreen
from tui_agent.ui.screens.tree import TreeScreen


def a_stage(tmp_path: Path) -> RealStage:
    write_modules(tmp_path, 2)
    return real_stage(tmp_path, working_script(2), window=16_000)


async def opened(stage: RealStage, pilot: Any) -> ContextScreen:
    """Open the map of a session that has lived, the timeline under the keys."""
    await stage.say("Look at module 0.", pilot)
    walked(stage.harness.session, model=stage.harness.agent.model)
    await press(pilot, "ctrl+g")
    screen = stage.screen
    assert isinstance(screen, ContextScreen)
    await settled(screen, pilot)
    await pilot.press("tab")
    assert screen.plot.has_focus
    return screen


async def settled(screen: ContextScreen, pilot: Any) -> None:
    await map_drawn(screen, pilot)
    await pilot.pause()


def step(screen: ContextScreen) -> Any:
    return screen.steps[screen.plot.cursor]


async def test_the_map_shows_the_request_of_the_step_under_the_cursor(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run() as pilot:
        screen = await opened(stage, pilot)
        session = stage.harness.session
        for _ in range(3):
            await pilot.press("left")
        await settled(screen, pilot)
        answer = session.entry(step(screen).answer)
        assert isinstance(answer, AssistantEntry)
        assert answer.usage is not None
        shown = screen.blocks.shown
        assert shown is not None
        assert shown.size.total == answer.usage.prompt
        assert not shown.size.estimated
        before = {entry.id for entry in session.path(answer.parent_id)}
        assert {block.origin[0] for block in shown.blocks} <= before
        assert "Since the previous step: +2 blocks" in stage.text()
        assert "new" in stage.text()


async def test_keys_go_from_mark_to_mark_and_the_facts_say_what_happened(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((120, 35)) as pilot:
        screen = await opened(stage, pilot)
        seen: list[Mark] = []
        for _ in range(4):
            await pilot.press("shift+left")
            seen.append(step(screen).marks[0])
        assert seen == [Mark.COMPACTION, Mark.MISS, Mark.MOVE, Mark.PRUNE]
        await settled(screen, pilot)
        assert "cleared −" in stage.text()
        await pilot.press("shift+right", "shift+right")
        await settled(screen, pilot)
        assert "the prompt cache had expired" in stage.text()
        await pilot.press("shift+right")
        await settled(screen, pilot)
        assert "removed (#" in stage.text()
        await pilot.press("end")
        await settled(screen, pilot)
        assert screen.blocks.shown == stage.harness.agent.inspector.map()
        assert "Since the previous step" not in stage.text()


async def test_what_was_sent_cannot_be_changed(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run() as pilot:
        screen = await opened(stage, pilot)
        leaf, last = stage.harness.session.leaf, screen.plot.cursor
        await pilot.press(
            "tab", "left_square_bracket", "left_square_bracket", "left_square_bracket"
        )
        await pilot.press("right_square_bracket")
        assert screen.plot.cursor == last - 2
        assert screen.blocks.has_focus
        await settled(screen, pilot)
        await pilot.press("x")
        assert "Press end to change the next one" in stage.text()
        assert stage.harness.session.leaf == leaf


async def test_the_mouse_does_the_same(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run() as pilot:
        screen = await opened(stage, pilot)
        column = next(at for at, one in enumerate(screen.plot.columns) if one.mark == "◇")
        x, last = 7 + screen.plot.edges[column], screen.plot.cursor
        for wheel, to in ((events.MouseScrollUp, last - 1), (events.MouseScrollDown, last)):
            screen.plot.post_message(wheel(screen.plot, x, 1, 0, 0, 0, False, False, False))
            await until(lambda to=to: screen.plot.cursor == to, pilot)
        await pilot.click(screen.plot, offset=(x, 1))
        assert step(screen).marks[0] is Mark.PRUNE
        answer = step(screen).answer
        await pilot.click(screen.plot, offset=(x, 1), times=2)
        await pilot.pause()
        assert isinstance(stage.screen, TreeScreen)
        line = stage.screen.session_tree.line
        assert line is not None
        assert answer in line.segment.headers.ids[line.row.first : line.row.last + 1]
        await press(pilot, "escape", "enter")
        assert isinstance(stage.screen, TreeScreen), "Enter opens it, too"


async def test_it_follows_the_session_and_keeps_the_step_one_looks_at(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run() as pilot:
        screen = await opened(stage, pilot)
        await pilot.press("left", "left")
        await settled(screen, pilot)
        kept, count = step(screen).answer, len(screen.steps)
        await stage.say("Look at module 1.", pilot)
        await settled(screen, pilot)
        assert len(screen.steps) > count
        assert step(screen).answer == kept
