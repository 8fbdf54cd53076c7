"""Compacting and pruning from the screen, on real agents: every flow, and Escape at every point of it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_prepared_summary import Steady
from tests.agent.test_room import is_summary_call
from tests.support.real_stage import (
    SUMMARY,
    RealStage,
    looks,
    real_stage,
    working_script,
    write_modules,
)
from tests.support.scripted_client import Reply, ScriptedClient
from tests.support.ui_app import press, press_at_once, run_command, send, until, write
from tui_agent.agent.events import CompactionEnded, CompactionStarted, EntryAppended, Notice
from tui_agent.agent.permissions import Action, Rule
from tui_agent.app.run_state import Phase as RunPhase
from tui_agent.context.request import ModelRequest
from tui_agent.context.settings import CompactionSettings, ContextSettings, PruneSettings
from tui_agent.model.protocol import ErrorKind, ModelError, ModelEvent
from tui_agent.session.entries import CompactionEntry, PruneEntry, TextPart, UserEntry
from tui_agent.ui.screens.compact import CompactPhase, CompactScreen
from tui_agent.ui.screens.dialogs import ChoiceScreen
from tui_agent.ui.screens.models import ModelPicker


class Held(ScriptedClient):
    """Keeps steps waiting while ``is_held``, until the user has looked."""

    def __init__(self, script: Any) -> None:
        super().__init__(script)
        self.waits = 0
        self.is_held: Callable[[], bool] = bool
        self._looked = asyncio.Event()

    def let_go(self) -> None:
        self._looked.set()
        self._looked = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if not is_summary_call(request) and self.is_held():
            self.waits += 1
            await self._looked.wait()
        async for event in super().stream(request):
            yield event


TURNS = 4
BY_HAND = ContextSettings(
    compaction=CompactionSettings(auto=False), prune=PruneSettings(when="off")
)
"""Nothing is summarised beside the work: it would take an answer out of the script."""


def a_stage(tmp_path: Path, *after: Reply, **arguments: Any) -> RealStage:
    (tmp_path / "stage").mkdir()
    write_modules(tmp_path, TURNS)
    script = [*working_script(TURNS), *(after or (Reply(SUMMARY, cost=0.02),))]
    return real_stage(tmp_path, script, **{"window": 16_000, "settings": BY_HAND, **arguments})


def ids(stage: RealStage) -> list[int]:
    return [entry.id for entry in stage.harness.path()]


async def drafted(stage: RealStage, pilot: Any) -> CompactScreen:
    await press(pilot, "f4")
    dialog = stage.screen
    assert isinstance(dialog, CompactScreen)
    await pilot.press("enter")
    await until(lambda: dialog.phase is CompactPhase.EDIT, pilot)
    await pilot.pause()
    return dialog


async def test_an_edited_summary_is_not_discarded_unasked(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=looks(TURNS)) as pilot:
        before = ids(stage)
        dialog = await drafted(stage, pilot)
        await write(pilot, "Mine: ")
        await press(pilot, "escape")
        assert isinstance(stage.screen, ChoiceScreen)
        await press(pilot, "escape")
        assert stage.screen is dialog
        assert dialog.editor.text.startswith("Mine: ## Goal")
        await pilot.press("escape", "enter")  # going on is what is offered first
        await pilot.pause()
        assert stage.screen is dialog
        await press(pilot, "escape", "down", "enter")
        assert stage.screen is stage.main
        assert ids(stage) == before


async def test_escape_while_it_is_written_goes_back_to_the_plan_and_stops_the_model(
    tmp_path: Path,
) -> None:
    stage = a_stage(tmp_path, Reply("## Goal\n\nHalf of a summary, and", hang=True))
    async with stage.run(after=looks(TURNS)) as pilot:
        before = ids(stage)
        await pilot.press("f4", "enter")
        await stage.until_text("Half of a summary", pilot)
        closed = stage.client.closed
        await pilot.press("escape")
        await until(lambda: stage.client.closed == closed + 1, pilot)
        await pilot.pause()
        assert stage.screen.phase is CompactPhase.PLAN
        assert "Nothing was changed" in stage.text()
        assert ids(stage) == before
        await pilot.press("escape")
        assert stage.screen is stage.main
        assert not stage.main.status.state.active


async def test_a_failed_summary_says_why_and_can_be_tried_again(tmp_path: Path) -> None:
    error = ModelError(ErrorKind.AUTH, "The key was refused.")
    stage = a_stage(tmp_path, Reply(error=error))
    async with stage.run(after=looks(TURNS)) as pilot:
        before = ids(stage)
        await pilot.press("f4", "enter")
        await stage.until_text("The key was refused. Nothing was changed.", pilot)
        assert ids(stage) == before
        stage.client.script = [Reply(SUMMARY)]
        await pilot.press("enter")
        await until(lambda: stage.screen.phase is CompactPhase.EDIT, pilot)


@pytest.mark.parametrize(
    "keys", [("f4",), (*"/compact", "escape", "enter")], ids=["key", "command"]
)
async def test_what_is_typed_while_the_plan_is_made_is_the_focus(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=looks(TURNS)) as pilot:
        compactor = stage.harness.agent.context.compactor
        plan = compactor.plan
        pressed = asyncio.Event()

        async def plan_later(order: Any) -> Any:
            await pressed.wait()
            return await plan(order)

        compactor.plan = plan_later
        press_at_once(stage.app, *keys, *"the login map")
        await until(lambda: isinstance(stage.screen, CompactScreen), pilot)
        await pilot.pause()
        pressed.set()
        await until(lambda: stage.screen.field.has_focus, pilot)
        await pilot.pause()
        assert stage.screen.field.value == "the login map"
        assert stage.main.prompt.text == ""


BAD = "I can't help with that."
"""A refusal, which is never taken for a summary."""


async def failed(stage: RealStage, pilot: Any) -> CompactScreen:
    await pilot.press("f4", "enter")
    await stage.until_text("was rejected 2 times", pilot)
    dialog = stage.screen
    assert dialog.phase is CompactPhase.FAILED
    for key in ("enter  ask", "e      edit", "m      have", "p      only", "esc    leave"):
        assert key in stage.text()
    return dialog


async def test_after_a_bad_summary_a_list_made_without_a_model_can_be_edited_and_used(
    tmp_path: Path,
) -> None:
    stage = a_stage(tmp_path, *[Reply(BAD)] * 4)
    async with stage.run(after=looks(TURNS)) as pilot:
        dialog = await failed(stage, pilot)
        await pilot.press("e")
        await until(lambda: dialog.phase is CompactPhase.EDIT, pilot)
        await write(pilot, "Mine: ")
        await pilot.press("ctrl+s")
        await until(lambda: stage.screen is stage.main, pilot)
        (summary,) = [e for e in stage.harness.path() if isinstance(e, CompactionEntry)]
        assert summary.summary.startswith("Mine: ")


async def test_after_a_bad_summary_another_model_can_write_it(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, *[Reply(BAD)] * 4)
    async with stage.run(after=looks(TURNS)) as pilot:
        dialog = await failed(stage, pilot)
        stage.client.script = [Reply(SUMMARY)]
        await pilot.press("m")
        await until(lambda: isinstance(stage.screen, ModelPicker), pilot)
        await write(pilot, "haiku")
        await pilot.press("enter")
        await until(lambda: dialog.phase is CompactPhase.EDIT, pilot)
        assert "haiku" in stage.client.requests[-1].model


async def test_after_a_bad_summary_old_outputs_can_be_cleared_instead(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, *[Reply(BAD)] * 4)
    async with stage.run(after=looks(TURNS)) as pilot:
        before = ids(stage)
        await failed(stage, pilot)
        await pilot.press("p")
        await until(lambda: stage.screen is stage.main, pilot)
        await until(lambda: stage.main.notice.message, pilot)
        assert not any(isinstance(entry, CompactionEntry) for entry in stage.harness.path())
        assert len(ids(stage)) >= len(before)


async def test_after_a_bad_summary_escape_leaves_everything(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, *[Reply(BAD)] * 4)
    async with stage.run(after=looks(TURNS)) as pilot:
        before = ids(stage)
        await failed(stage, pilot)
        await pilot.press("escape")
        await until(lambda: stage.screen is stage.main, pilot)
        assert ids(stage) == before


async def test_what_could_not_help_is_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    settings = BY_HAND.model_copy(update={"compaction": CompactionSettings(target_of_before=0.01)})
    stage = a_stage(tmp_path, settings=settings)
    async with stage.run(after=looks(TURNS)) as pilot:
        before = ids(stage)
        asked = len(stage.client.requests)
        await pilot.press("f4")
        await stage.until_text("the goal is", pilot)
        await press(pilot, "enter")
        assert len(stage.client.requests) == asked
        assert ids(stage) == before


async def test_a_summary_that_would_not_help_is_not_applied(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=looks(TURNS)) as pilot:
        before = ids(stage)
        dialog = await drafted(stage, pilot)
        # What comes in while the summary is edited is no part of the plan and stays.
        long = UserEntry(parts=(TextPart(text="one two three four five six seven " * 1_500),))
        before.append(stage.harness.session.append(long).id)
        dialog.editor.text = "Another summary."
        await stage.until_text("the goal is", pilot)
        await press(pilot, "ctrl+s")
        assert isinstance(stage.screen, CompactScreen)
        assert ids(stage) == before


async def test_with_a_focus_it_runs_at_once_with_a_line_and_escape_stops_it(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, Reply("## Goal\n\nHalf a summary and", hang=True))
    async with stage.run(after=looks(TURNS)) as pilot:
        before = ids(stage)
        await send(pilot, "/compact the tests")
        await until(stage.client.hanging.is_set, pilot)
        await stage.until_text("compacting 0 s", pilot)
        assert "Compacting " in stage.text()
        assert "interrupt" in stage.text()
        await pilot.press("escape")
        await stage.until_text("The compaction was stopped. Nothing was changed.", pilot)
        assert ids(stage) == before
        assert stage.main.status.state.phase is RunPhase.IDLE
        assert stage.main.status.ticking is None
        assert "Compacting " not in stage.text()


async def test_a_short_history_is_compacted_in_one_step(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, Reply("Short."), window=200_000)
    async with stage.run(after=looks(TURNS)) as pilot:
        before = ids(stage)
        await send(pilot, "/compact")
        await stage.until_text("↑ compacted · ", pilot)
        (made,) = stage.harness.entries(CompactionEntry)
        assert made.tokens_after < made.tokens_before
        await press(pilot, "f5")
        assert ids(stage) == before


async def test_what_an_automatic_compaction_failed_for_is_told_once(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    broken = "The summariser is broken."
    async with stage.run() as pilot:
        stage.harness.agent.channel.emit(CompactionEnded(broken, (), "threshold"))
        stage.harness.agent.channel.emit(
            Notice(f"Compaction did not help: {broken}", "warning", "compact")
        )
        await stage.until_text("did not help", pilot)
        assert stage.text().count(broken) == 1
        stage.harness.agent.channel.emit(CompactionEnded("Nothing was said since.", (), "manual"))
        await stage.until_text("Nothing was said since.", pilot)


async def test_during_a_run_it_waits_for_the_next_step_and_before_it_there_is_nothing_to_prune(
    tmp_path: Path,
) -> None:
    (tmp_path / "stage").mkdir()
    stage = real_stage(tmp_path, [Reply("working", hang=True)])
    async with stage.run() as pilot:
        await run_command(stage, pilot, "prune", "")
        assert "No old tool output is worth clearing." in stage.text()
        stage.harness.agent.submit("go")
        await until(stage.client.hanging.is_set, pilot)
        await press(pilot, "f4")
        assert stage.screen is stage.main
        assert "before the next step" in stage.text()
        assert not stage.harness.of(CompactionStarted)


async def test_prune_asks_nothing_because_undo_brings_everything_back(tmp_path: Path) -> None:
    stage = a_stage(
        tmp_path,
        services={"cache_miss_cost": lambda _model, tokens: tokens * 0.001},
        settings=BY_HAND,
    )
    async with stage.run(after=looks(TURNS)) as pilot:
        before = ids(stage)
        await stage.main.controller.run("prune", "")
        await until(lambda: isinstance(stage.harness.path()[-1], PruneEntry), pilot)
        await pilot.pause()
        assert stage.screen is stage.main
        told = stage.main.notice.message
        assert "old tool output" in told
        assert "This frees " in told
        assert "cached tokens are read again, about $" in told
        assert told.endswith("/undo brings them back.")
        await stage.main.controller.run("undo", "")
        assert ids(stage) == before


async def test_arrow_keys_move_where_the_summary_ends_and_the_sizes_follow(tmp_path: Path) -> None:
    stage = a_stage(
        tmp_path,
        Reply(SUMMARY, cost=0.02),
        services={"price": lambda _model, usage: usage.input * 1e-4},
    )
    async with stage.run((110, 32), after=looks(TURNS)) as pilot:
        await press(pilot, "f4")
        dialog = stage.screen
        assert isinstance(dialog, CompactScreen)
        seen = [(dialog.ends_before, stage.text())]
        for key in ("up", "up", "down", "down"):
            await pilot.press(key)
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
            seen.append((dialog.ends_before, stage.text()))
        (newest, text), middle, (oldest, _) = seen[:3]
        assert oldest < middle[0] < newest
        assert seen[3:] == [middle, seen[0]]
        assert text != middle[1]
        assert "for at most $" in text


async def test_what_a_person_says_is_summarised_and_nothing_else_and_undo_takes_it_back(
    tmp_path: Path,
) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((110, 32), after=looks(TURNS)) as pilot:
        before = ids(stage)
        path = stage.harness.path()
        second = [entry.id for entry in path if isinstance(entry, UserEntry)][1]
        await run_command(stage, pilot, "compact", f"#{second}")
        await send(pilot, "the tests")
        await until(lambda: stage.screen.phase is CompactPhase.EDIT, pilot)
        asked = "".join(message.text for message in stage.client.requests[-1].messages)
        parts = "Look at module 0.", "the tests", "Look at module 1."
        assert [part in asked for part in parts] == [True, True, False]
        stage.screen.editor.text = "Only this counts."
        await press(pilot, "ctrl+s")
        (summary,) = stage.harness.path()[len(before) :]
        assert isinstance(summary, CompactionEntry)
        assert (summary.first_kept_id, summary.summary) == (second, "Only this counts.")
        sent = "".join(
            message.text for message in stage.harness.agent.inspector.next_request().messages
        )
        assert '"""Module 0."""' not in sent
        assert '"""Module 1."""' in sent
        await run_command(stage, pilot, "undo", "")
        assert ids(stage) == before


async def test_any_block_and_any_row_of_the_tree_offers_it(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((110, 32), after=looks(TURNS)) as pilot:
        view = stage.main.view
        assert view is not None
        view.transcript.focus()
        await press(pilot, "end", "k", "s", "s")
        assert isinstance(stage.screen, CompactScreen)
        assert stage.screen.boundary is not None
        await press(pilot, "escape", "ctrl+t")
        await press(pilot, "up", "up", "up", "s")
        assert isinstance(stage.screen, CompactScreen)
        assert stage.screen.boundary is not None
        await press(pilot, "escape")
        assert not any(isinstance(entry, CompactionEntry) for entry in stage.harness.path())


async def test_a_place_before_which_there_is_nothing_says_so_and_another_can_be_chosen(
    tmp_path: Path,
) -> None:
    stage = a_stage(tmp_path)
    async with stage.run((110, 32), after=looks(TURNS)) as pilot:
        await run_command(stage, pilot, "compact", "#2")
        assert "There is nothing to summarise before #2." in stage.text()
        await pilot.press("pagedown")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert stage.screen.phase is CompactPhase.PLAN
        assert "Summarised  1 turn" in stage.text()
        await pilot.press("escape")
        await stage.main.controller.run("compact", "#999")
        assert "#999 is not on this branch." in stage.text() or stage.screen is stage.main


async def test_a_summary_written_beside_the_work_is_there_at_once(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    worker = Steady(999, summary=Reply(SUMMARY, cost=0.02))
    settings = ContextSettings(
        compaction=CompactionSettings(keep_recent_share=0.5), prune=PruneSettings(when="off")
    )
    stage = real_stage(
        tmp_path,
        worker,
        window=32_000,
        settings=settings,
        max_steps=999,
        rules=(Rule("*", "*", Action.ALLOW, "flag"),),
    )

    def stop(_event: object) -> None:
        if stage.harness.agent.context.has_summary:
            worker.steps = 0

    stage.harness.agent.channel.subscribe(stop)
    async with stage.run((120, 40), after=["Read everything."]) as pilot:
        await stage.until_text("summary ready", pilot)
        asked = len(stage.client.requests)
        await pilot.press("f4")
        await until(lambda: stage.screen.phase is CompactPhase.EDIT, pilot)
        assert stage.screen.editor.text.startswith("## Goal")
        await stage.until_text("writing it cost $0.02", pilot)
        await pilot.press("ctrl+s")
        await until(lambda: isinstance(stage.harness.path()[-1], CompactionEntry), pilot)
        assert len(stage.client.requests) == asked
        await until(
            lambda: stage.screen is stage.main and "summary ready" not in stage.text(), pilot
        )


def an_asking_stage(tmp_path: Path, threshold: str | None = None) -> tuple[RealStage, Held]:
    """Return a stage whose agent works until it has compacted; its steps wait while a summary is ready."""
    (tmp_path / "stage").mkdir()
    settings = ContextSettings(
        compaction=CompactionSettings(keep_recent_share=0.5, auto="ask", threshold=threshold),
        prune=PruneSettings(when="off"),
    )
    client = Held(Steady(999, summary=Reply(SUMMARY, cost=0.02)))
    stage = real_stage(
        tmp_path,
        client.script,
        window=20_000,
        settings=settings,
        max_steps=999,
        rules=(Rule("*", "*", Action.ALLOW, "flag"),),
    )
    agent = stage.harness.agent
    agent.ports.client = client

    def is_prepared() -> bool:
        prepared = agent.context.prepared
        return prepared is not None and (prepared.task is not None or agent.context.has_summary)

    def stop(event: object) -> None:
        if isinstance(event, EntryAppended) and isinstance(event.entry, CompactionEntry):
            client.script.steps = 0

    client.is_held = is_prepared
    agent.channel.subscribe(stop)
    return stage, client


async def test_one_that_asks_says_so_and_an_edit_made_while_the_work_goes_on_counts(
    tmp_path: Path,
) -> None:
    stage, client = an_asking_stage(tmp_path)
    worker = client.script
    assert isinstance(worker, Steady)
    async with stage.run((120, 40)) as pilot:
        stage.main.controller.outbox.submit("Read everything.")
        await stage.until_text("The summary is ready; it is used when the context is", pilot)
        assert "f4 to read it" in stage.text()
        await pilot.press("f4")
        await until(lambda: getattr(stage.screen, "phase", None) is CompactPhase.WAITING, pilot)
        assert stage.harness.agent.running
        await write(pilot, "Mine: ")
        await press(pilot, "escape")
        assert stage.screen is stage.main
        client.is_held = bool
        client.let_go()
        await until(lambda: bool(stage.harness.entries(CompactionEntry)), pilot)
        (made,) = stage.harness.entries(CompactionEntry)
        assert made.summary.startswith("Mine: ## Goal")
        assert (made.trigger, made.prepared) == ("threshold", True)
        assert worker.summaries == 1
        await stage.until_text("Compacted automatically: ", pilot)
        assert "f5 undo" in stage.text()
        await stage.harness.ended()


async def test_a_no_holds_until_the_next_message_while_requests_fit(tmp_path: Path) -> None:
    stage, client = an_asking_stage(tmp_path, threshold="60%")
    agent = stage.harness.agent
    async with stage.run((120, 40)) as pilot:
        stage.main.controller.outbox.submit("Read everything.")
        await stage.until_text("The summary is ready", pilot)
        await pilot.press("f4")
        await until(lambda: getattr(stage.screen, "phase", None) is CompactPhase.WAITING, pilot)
        await press(pilot, "ctrl+n")
        await stage.until_text("was dropped: you put the compaction off", pilot)
        client.is_held = lambda: agent.context.size().total > (agent.context.size().threshold or 0)
        client.let_go()
        await until(lambda: client.waits == 2, pilot)
        assert not stage.harness.entries(CompactionEntry), "a request went out past the threshold"
        client.is_held = bool
        client.let_go()
        await until(lambda: bool(stage.harness.entries(CompactionEntry)), pilot)
        (made,) = stage.harness.entries(CompactionEntry)
        assert made.tokens_before > 0.7 * 20_000, "it no longer fitted"
        await stage.harness.ended()


@pytest.mark.parametrize("draft", ["", "what I was writing"])
async def test_a_command_in_the_field_is_asked_about_and_goes_back_to_the_prompt(
    tmp_path: Path, draft: str
) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=looks(TURNS)) as pilot:
        await write(pilot, draft)
        await press(pilot, "f4")
        dialog = stage.screen
        assert isinstance(dialog, CompactScreen)
        await until(lambda: dialog.field.has_focus, pilot)
        await write(pilot, "/undo")
        await press(pilot, "enter")
        assert dialog.phase is CompactPhase.PLAN
        assert "This is a command." in stage.text()
        await press(pilot, "escape")
        assert stage.main.prompt.text == (draft or "/undo")
        await press(pilot, "f4")
        dialog = stage.screen
        await until(lambda: dialog.field.has_focus, pilot)
        await write(pilot, "/usr/lib and /undo")
        await press(pilot, "enter")
        await until(lambda: dialog.phase is CompactPhase.EDIT, pilot)
