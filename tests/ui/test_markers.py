"""The markers in the conversation, on real agents: what they say, what is under them, and that their actions act."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_stage import (
    SUMMARY,
    RealStage,
    looks,
    real_stage,
    working_script,
    write_modules,
)
from tests.support.scripted_client import Call, Reply, call
from tests.support.ui_app import press, until
from tui_agent.app.context_commands import restore
from tui_agent.context.settings import ContextSettings, PruneSettings
from tui_agent.session.entries import CompactionEntry, ContextEditEntry, ToolResultEntry
from tui_agent.ui.screens.tree import TreeScreen
from tui_agent.ui.screens.viewer import ViewerScreen

BY_HAND = ContextSettings(prune=PruneSettings(when="off", step_budget=2_000))


def a_stage(tmp_path: Path, *after: Reply, turns: int = 4, **arguments: Any) -> RealStage:
    write_modules(tmp_path, turns)
    script = [*working_script(turns), *(after or (Reply(SUMMARY),))]
    return real_stage(tmp_path, script, **{"window": 16_000, "settings": BY_HAND, **arguments})


def results(stage: RealStage) -> list[ToolResultEntry]:
    return [entry for entry in stage.harness.path() if isinstance(entry, ToolResultEntry)]


async def last_marker(stage: RealStage, pilot: Any) -> None:
    """Put the focus on the last block of the conversation."""
    stage.main.prompt.focus()
    await press(pilot, "ctrl+end", "tab")


async def test_a_prune_tells_what_it_took_and_gives_it_back(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((100, 40), after=looks(4)) as pilot:
        assert await stage.harness.agent.prune()
        await pilot.pause()
        await last_marker(stage, pilot)
        assert "── Cleared 4 tool outputs" in stage.text()
        await press(pilot, "space")
        text = stage.text()
        assert (
            "The model gets a placeholder for each entry. The originals are still shown here."
            in text
        )
        first, second = (result.id for result in results(stage)[:2])
        row = next(
            line
            for line in text.split("\n")
            if f"#{first}  read module_0.py  912 tokens · bring back" in line
        )
        await pilot.click(offset=(row.index("bring back") + 1, text.split("\n").index(row)))
        await pilot.pause()
        states = {block.origin: block.state for block in stage.harness.agent.inspector.map().blocks}
        assert (states[(first,)], states[(second,)]) == ("live", "pruned")
        await press(pilot, "tab", "b", "b")
        assert "3 outputs will be in the context again" in stage.text()
        assert not stage.harness.agent.inspector.prefix_break()


async def test_what_was_summarised_is_not_brought_back(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((100, 40), after=looks(4)) as pilot:
        agent = stage.harness.agent
        controller = stage.main.controller
        agent.edit_context(results(stage)[0].id, "mask")
        edit = stage.harness.path()[-1]
        assert await agent.prune()
        prune = stage.harness.path()[-1]
        agent.keep(
            CompactionEntry(
                summary=SUMMARY,
                first_kept_id=None,
                tokens_before=2,
                tokens_after=1,
                trigger="manual",
            )
        )
        entries = len(stage.harness.path())
        for marker in (edit, prune):
            controller.say("before")
            await restore(controller, marker.id)
            await pilot.pause()
            assert "the rest was summarised" in stage.main.notice.message
        assert len(stage.harness.path()) == entries


async def test_an_edit_leads_to_what_it_changed_and_is_undone(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((100, 20), after=looks(4)) as pilot:
        before = [entry.id for entry in stage.harness.path()]
        target = results(stage)[0].id
        stage.harness.agent.edit_context(target, "mask")
        await pilot.pause()
        await last_marker(stage, pilot)
        assert f"── #{target} cleared ──" in stage.text()
        assert "undo · jump ──" in stage.text()
        await press(pilot, "g")
        assert "read module_0.py" in stage.text()
        await last_marker(stage, pilot)
        await press(pilot, "u")
        assert "Press u again: undo" in stage.text(), "no single letter moves"
        await press(pilot, "u")
        assert [entry.id for entry in stage.harness.path()] == before


async def test_a_branch_summary_leads_to_the_branch(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, turns=2)
    async with stage.run((100, 30), after=looks(2)) as pilot:
        agent = stage.harness.agent
        second = next(
            entry for entry in stage.harness.path() if entry.preview == "Look at module 1."
        )
        left = stage.harness.session.leaf
        await agent.navigator.move(agent.navigator.plan(second.id), focus="")
        await pilot.pause()
        await last_marker(stage, pilot)
        assert f"── Summary of the branch left at #{left} ──" in stage.text()
        await press(pilot, "space")
        assert "Find why the redirect loses its query." in stage.text()
        await pilot.press("g")
        await until(lambda: isinstance(stage.screen, TreeScreen), pilot)
        await pilot.pause()
        assert left in stage.screen.session_tree.line.segment.headers.ids


async def test_a_truncated_output_is_opened_whole(tmp_path: Path) -> None:
    script = [Reply("", (Call("bash", '{"command": "seq 1 9000"}'),)), Reply("Done.")]
    stage = real_stage(tmp_path, script)
    async with stage.run((100, 30)) as pilot:
        await stage.say("count", pilot)
        view = stage.view
        view.transcript.focus()
        assert view.transcript.jump_to(results(stage)[0].id)
        await pilot.pause()
        assert re.search(r"Output was cut, [\d,]+ of 9,000 lines shown · o whole", stage.text())
        # The second press is on its way before the page is there.
        view.transcript.action_request("open")
        view.transcript.action_request("open")
        await until(lambda: isinstance(stage.screen, ViewerScreen), pilot)
        await pilot.pause()
        assert sum(isinstance(screen, ViewerScreen) for screen in stage.app.screen_stack) == 1
        await press(pilot, "end")
        assert "9000" in stage.text()


async def test_interruptions_and_changes_of_model_and_mode_are_calm_lines(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("I begin to", hang=True)])
    async with stage.run((100, 30)) as pilot:
        stage.harness.agent.submit("go")
        await until(stage.client.hanging.is_set, pilot)
        await pilot.press("escape")
        await stage.harness.ended()
        stage.harness.agent.change_model("test/other")
        for mode in ("yolo", "build", "plan"):
            stage.harness.agent.change_mode(mode)
            await pilot.pause()
        text = stage.text()
        assert "■ Interrupted" in text
        assert "Model: test/other" in text
        assert "Mode: plan" in text
        assert text.count("Mode: ") == 1, "of modes in a row the last one is shown"
        leaf = stage.harness.session.leaf
        await stage.harness.agent.navigator.go(1)
        await stage.harness.agent.navigator.go(leaf)
        await stage.until_text("Mode: plan", pilot)
        assert stage.text().count("Mode: ") == 1


@pytest.mark.parametrize(
    ("modes", "shown"),
    [
        (("auto-edit", "plan"), ["Mode: plan"]),
        (("auto-edit", "plan", "build"), []),
        (("auto-edit", "build", "plan"), ["Mode: plan"]),
        (("yolo", "build"), []),
        (("plan", "yolo"), ["Mode: yolo"]),
    ],
)
@pytest.mark.daily(1)
@pytest.mark.parametrize("while_working", [False, True])
async def test_mode_changes_in_a_row_leave_one_line_or_none(
    tmp_path: Path, modes: tuple[str, ...], shown: list[str], *, while_working: bool
) -> None:
    stage = real_stage(tmp_path, [Reply("First."), Reply("Half", hang=True), Reply("Seen.")])
    agent = stage.harness.agent
    async with stage.run((100, 30)) as pilot:
        await stage.harness.say("go")
        if while_working:
            agent.submit("again")
            await until(stage.client.hanging.is_set, pilot)
        for mode in modes:
            agent.change_mode(mode)
            await pilot.pause()
        if while_working:
            await pilot.press("escape")
            await stage.harness.ended()
        await pilot.pause()
        assert re.findall("Mode: [a-z-]+", stage.text()) == shown
        leaf = stage.harness.session.leaf
        await agent.navigator.go(1)
        await agent.navigator.go(leaf)
        await stage.until_text("First.", pilot)
        assert re.findall("Mode: [a-z-]+", stage.text()) == shown


async def test_a_mode_is_named_again_after_a_message(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("One."), Reply("Two."), Reply("Three.")])
    agent = stage.harness.agent
    async with stage.run((100, 30)) as pilot:
        await stage.harness.say("go")
        for mode, text in (("plan", "two"), ("build", "three")):
            agent.change_mode(mode)
            await stage.harness.say(text)
        await stage.until_text("Three.", pilot)
        assert re.findall("Mode: [a-z-]+", stage.text()) == ["Mode: plan", "Mode: build"]


async def test_a_picture_that_was_taken_out_says_so_and_is_restored(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((100, 20), after=looks(1)) as pilot:
        target = results(stage)[0].id
        note = "picture a.png removed: the provider can't read it"
        stage.harness.agent.keep(
            ContextEditEntry(target=target, action="leave_out", parts=("b" * 64,), note=note)
        )
        await pilot.pause()
        await last_marker(stage, pilot)
        assert "Picture a.png removed: the provider can't read it" in stage.text()
        await press(pilot, "b", "b")
        await pilot.pause()
        assert f"#{target} will be sent in full again from the next request." in stage.text()
        edits = [entry for entry in stage.harness.path() if isinstance(entry, ContextEditEntry)]
        assert [edit.action for edit in edits] == ["leave_out", "restore"]


@pytest.mark.parametrize("fold_turns", ["off", "work"])
async def test_one_key_opens_all_outputs_and_folds_them(tmp_path: Path, fold_turns: str) -> None:
    names = [f"f{number}.txt" for number in range(4)]
    calls = tuple(call("read", path=name) for name in names)
    script = [Reply(calls=calls), Reply("One."), Reply(calls=calls), Reply("Two.")]
    stage = real_stage(tmp_path, script)
    for name in names:
        (tmp_path / "project" / name).write_text(f"inside {name}\n")
    async with stage.run((100, 60)) as pilot:
        stage.view.transcript.fold_turns(fold_turns)
        await stage.harness.say("look")
        await stage.harness.say("look again")
        await stage.until_text("Two.", pilot)
        before = stage.text()
        assert "inside f3.txt" not in before
        await press(pilot, "f10")
        await stage.until_text("inside f3.txt", pilot)
        assert stage.text().count("inside f") == 8
        await press(pilot, "f10")
        assert "inside" not in stage.text()
        leaf = stage.harness.session.leaf
        await press(pilot, "f10")
        await stage.harness.agent.navigator.go(1)
        await stage.harness.agent.navigator.go(leaf)
        await stage.until_text("inside f3.txt", pilot)


async def test_one_key_shows_all_thinking_also_of_answers_to_come(tmp_path: Path) -> None:
    script = [Reply("One.", reasoning="Deep idea."), Reply("Two.", reasoning="Deeper idea.")]
    stage = real_stage(tmp_path, script)
    async with stage.run((100, 40)) as pilot:
        await stage.harness.say("think")
        await stage.until_text("One.", pilot)
        assert "Deep idea" not in stage.text()
        await press(pilot, "shift+f9")
        await stage.until_text("Deep idea", pilot)
        await stage.harness.say("think again")
        await stage.until_text("Two.", pilot)
        assert "Deeper idea" in stage.text()
        await press(pilot, "shift+f9")
        assert "idea" not in stage.text()
