"""The tree on a real agent and a real store: looking, searching, the mouse."""

import asyncio
from pathlib import Path

from tests.support.tree_stage import TreeStage, answered, said, tree_stage
from tests.support.ui_app import until, write
from tui_agent.session.entries import AssistantEntry, ReasoningPart
from tui_agent.session.session import Session
from tui_agent.ui.widgets.tree.outline import LineKind
from tui_agent.ui.widgets.tree.rows import Filter
from tui_agent.ui.widgets.tree.session_tree import SessionTree


async def test_arrows_move_fold_and_jump(stage: TreeStage) -> None:
    names = stage.names
    async with stage.opened("home") as pilot:
        assert stage.at() == names["question"]
        await pilot.press("right")
        assert stage.at() == names["fork"], "the branch point"
        await pilot.press("right")
        assert stage.at() == names["test"]
        await pilot.press("end")
        line = stage.tree.line
        assert line is not None
        assert line.what is LineKind.FOLD
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


async def test_the_preview_follows_and_tells_the_facts(stage: TreeStage) -> None:
    async with stage.opened(size=(120, 40)) as pilot:
        preview = stage.screen.preview

        def shows(*wanted: str) -> bool:
            seen = "\n".join(row.line.text for row in preview.transcript.visible_rows())
            seen += str(preview.facts.content)
            return all(text in seen for text in wanted)

        await until(lambda: shows("added tests/test_redirect.py", "model", "$0.01"), pilot)
        await stage.highlight("run")
        await until(lambda: shows("3 calls", "src/auth/views.py +3 −1", "grep", "edit"), pilot)
        await stage.highlight("question")
        await until(lambda: shows("you", "src/auth/views.py +3 −1", "loses the query"), pilot)
        await pilot.press("end")
        await until(lambda: shows("branch: 24 entries", "Done with middleware."), pilot)
        await pilot.press("right")
        await stage.highlight("compaction")
        await until(lambda: shows("Compacted", "Middleware is done."), pilot)
        await pilot.press("space")
        assert not preview.display


async def test_a_small_terminal_shows_the_preview_when_asked(stage: TreeStage) -> None:
    async with stage.opened(size=(80, 24)) as pilot:
        assert not stage.screen.preview.display
        await pilot.press("space")
        assert stage.screen.preview.display
        assert stage.screen.preview.region.y > stage.tree.region.y
        await pilot.press("tab")
        assert stage.screen.preview.transcript.has_focus
        await pilot.press("escape")
        assert stage.tree.has_focus


async def test_entries_that_come_while_one_looks_are_shown(stage: TreeStage) -> None:
    async with stage.opened("home") as pilot:
        stage.agent.submit("and another thing")
        await asyncio.wait_for(stage.agent.wait_idle(), 60)
        await until(lambda: any("another thing" in row for row in stage.rows()), pilot)
        assert stage.at() == stage.names["question"], "the cursor stays"


async def test_answers_without_a_text_say_why_and_failed_attempts_are_no_branches(
    tmp_path: Path,
) -> None:
    def plant(session: Session) -> dict[str, int]:
        question = session.append(said("Go."))
        for error in ("The server is overloaded.", "It still is."):
            session.append(
                answered("Half an").model_copy(update={"error": error, "finish": "error"}),
                moves_leaf=False,
            )
        thought = ReasoningPart(text="Hm.", model="m")
        session.append(
            AssistantEntry(parts=(thought,), model="m", interrupted=True, finish="interrupted")
        )
        session.append(said("And now?"))
        session.append(AssistantEntry(parts=(), model="m", interrupted=True, finish="interrupted"))
        return {"question": question.id}

    stage = tree_stage(tmp_path, planting=plant)
    async with stage.opened(size=(100, 24)):
        rows = "\n".join(stage.rows())
        assert "Assistant: (interrupted, only reasoning)" in rows
        assert "Assistant: (interrupted)" in rows
        assert " · 1 branch · " in str(stage.screen.heading.content)


async def test_harmful_text_is_shown_harmless(tmp_path: Path) -> None:
    def plant(session: Session) -> dict[str, int]:
        session.append_many(
            [
                said("\x1b]0;title\x07 \x1b[31mred [bold]x[/] \u202egnp.exe\n中文"),
                answered("[/nonsense]"),
            ]
        )
        session.label(1, "\x1b[2J中文标签")
        return {}

    stage = tree_stage(tmp_path, planting=plant)
    async with stage.opened(size=(100, 24)):
        rows = "\n".join(stage.rows())
        assert "\x1b" not in rows
        assert "\u202e" not in rows
        assert "[bold]x[/]" in rows
        assert "[␛[2J中文标签]" in rows
        for y in range(2):
            assert (
                stage.tree.render_line(y).cell_length == stage.tree.scrollable_content_region.width
            )


async def test_n_goes_from_hit_to_hit_and_around(stage: TreeStage) -> None:
    names = stage.names
    async with stage.opened("home", "slash") as pilot:
        await write(pilot, "middleware")
        await until(
            lambda: stage.tree.hits is not None and stage.at() == names["middleware"], pilot
        )
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


async def test_a_search_says_what_the_filter_hides(stage: TreeStage) -> None:
    async with stage.opened("ctrl+o", "slash") as pilot:
        await write(pilot, "make")
        await until(
            lambda: "nothing found, 18 hidden by the filter" in str(stage.screen.heading.content),
            pilot,
        )


async def test_a_click_selects_and_a_double_click_goes(stage: TreeStage) -> None:
    async with stage.opened() as pilot:
        await pilot.click(SessionTree, offset=(10, 2))
        assert stage.at() == stage.names["fork"]
        await pilot.click(SessionTree, offset=(10, 6))
        assert stage.tree.outline.total == 12, "a click unfolds"
        await pilot.click(SessionTree, offset=(10, 2), times=2)
        await stage.asked()
        await pilot.press("1")
        await stage.closed()
        assert stage.session.leaf == stage.names["fork"]


async def test_the_keys_at_the_bottom_can_be_clicked(stage: TreeStage) -> None:
    async with stage.opened(size=(120, 24)) as pilot:
        text = str(stage.screen.keys.render())
        await pilot.press("end")
        await pilot.click("#keys", offset=(text.index("fold") + 1, 0))
        assert stage.tree.outline.total == 12
        await pilot.click("#keys", offset=(text.index("filter") + 1, 0))
        assert stage.tree.view.filter is Filter.NO_TOOLS
        await pilot.click("#keys", offset=(text.index("back") + 1, 0))
        await stage.closed()


async def test_a_double_click_on_a_fold_opens_it_and_goes_nowhere(stage: TreeStage) -> None:
    async with stage.opened("home") as pilot:
        await pilot.press("end")
        line = stage.tree.line
        assert line is not None
        assert line.what is LineKind.FOLD
        leaf = stage.session.leaf
        await pilot.click(stage.tree, offset=(8, stage.tree.cursor), times=2)
        assert stage.is_open
        assert stage.tree.outline.total == 12
        assert stage.session.leaf == leaf
