"""A run in plan mode ends in a question, and the plan that is approved goes along with the conversation."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.real_stage import SUMMARY, RealStage, real_stage
from tests.support.scripted_client import Reply
from tests.support.ui_app import until, write
from tui_agent.context.request import ModelRequest
from tui_agent.session.entries import (
    CompactionEntry,
    FilePart,
    ShellEntry,
    UserEntry,
    typed_text,
)

PLAN = "# Plan\n\n1. Change `a.py`.\n2. Run the tests."


def staged(tmp_path: Path, *replies: Reply) -> RealStage:
    stage = real_stage(tmp_path, replies or [Reply(f"I looked.\n\n{PLAN}"), Reply("Done.")])
    stage.harness.agent.change_mode("plan")
    return stage


async def asked(stage: RealStage, pilot: Any) -> None:
    await stage.until_text("Carry out this plan?", pilot)
    await until(lambda: stage.main.view is not None and stage.main.view.question.armed, pilot)


def approval(stage: RealStage) -> UserEntry | None:
    typed = [entry for entry in stage.harness.path() if isinstance(entry, UserEntry)]
    return next(
        (entry for entry in typed if any(isinstance(part, FilePart) for part in entry.parts)), None
    )


@pytest.mark.parametrize(("key", "mode"), [("1", "build"), ("2", "auto-edit")])
async def test_an_approved_plan_is_carried_out_in_the_mode_that_was_chosen(
    tmp_path: Path, key: str, mode: str
) -> None:
    stage = staged(tmp_path)
    async with stage.run() as pilot:
        await stage.say("plan it", pilot)
        await asked(stage, pilot)
        assert "Run the tests." in stage.text(), "the plan can be read"
        await pilot.press(key)
        await stage.until_text("Done.", pilot)
        await stage.harness.agent.wait_idle()
        entry = approval(stage)
        assert entry is not None
        assert entry.parts[1] == FilePart(path="plan:", text=PLAN)
        assert stage.harness.agent.mode == mode
        sent = stage.client.requests[-1]
        assert "carry it out now" in sent.messages[-1].text
        await stage.main.controller.run("undo", "")
        await until(lambda: stage.harness.agent.mode == "plan", pilot)
        assert stage.main.prompt.text == f"/plan {mode}", "sent again it approves the plan again"


async def test_a_note_to_the_answer_goes_along_with_the_plan(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    async with stage.run() as pilot:
        await stage.say("plan it", pilot)
        await asked(stage, pilot)
        await pilot.press("down", "tab", *"add tests", "enter")
        await stage.until_text("Done.", pilot)
        await stage.harness.agent.wait_idle()
        entry = approval(stage)
        assert entry is not None
        assert typed_text(entry.parts) == "/plan auto-edit add tests"
        assert stage.harness.agent.mode == "auto-edit"
        assert stage.client.requests[-1].messages[-1].text.count("add tests") == 1


async def test_a_plan_is_carried_out_on_a_branch_with_nothing_else(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    async with stage.run() as pilot:
        await stage.say("plan it", pilot)
        await asked(stage, pilot)
        await pilot.press("3")
        await stage.until_text("Done.", pilot)
        await stage.harness.agent.wait_idle()
        assert stage.harness.agent.mode == "auto-edit"
        sent = "\n".join(message.text for message in stage.client.requests[-1].messages)
        assert "Run the tests." in sent
        assert "I looked." not in sent
        assert "plan it" not in sent
        await stage.main.controller.run("undo", "")
        await stage.main.controller.run("undo", "")
        await until(lambda: "I looked." in stage.text(), pilot)


async def test_text_that_is_typed_goes_to_the_prompt_and_planning_goes_on(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    async with stage.run() as pilot:
        await stage.say("plan it", pilot)
        await asked(stage, pilot)
        await write(pilot, "without tests")
        await until(lambda: stage.main.prompt.text == "without tests", pilot)
        assert stage.harness.agent.mode == "plan"
        assert approval(stage) is None


async def test_a_plan_is_changed_in_the_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def edited(_app: object, text: str, name: str) -> str:
        assert (text, name) == (PLAN, "plan.md")
        return f"{text}\n3. Write it down."

    monkeypatch.setattr("tui_agent.ui.screens.main.edit_in_editor", edited)
    stage = staged(tmp_path)
    async with stage.run() as pilot:
        await stage.say("plan it", pilot)
        await asked(stage, pilot)
        await pilot.press("4")
        await stage.until_text("as you changed it?", pilot)
        await pilot.press("1")
        await stage.until_text("Done.", pilot)
        entry = approval(stage)
        assert entry is not None
        assert "3. Write it down." in str(entry.parts[1])


async def test_talk_in_plan_mode_asks_nothing_and_plan_decides_later(tmp_path: Path) -> None:
    stage = staged(tmp_path, Reply("Which file do you mean?"), Reply(PLAN), Reply("Done."))
    async with stage.run() as pilot:
        await stage.say("hello", pilot)
        assert stage.screen is stage.main
        await write(pilot, "half a sentence")
        await stage.say("plan it", pilot)
        await until(lambda: "The plan is ready" in stage.main.notice.message, pilot)
        assert stage.screen is stage.main, "nobody is interrupted while they write"
        await stage.main.controller.run("plan", "build")
        await stage.until_text("Done.", pilot)
        assert stage.harness.agent.mode == "build"


async def test_plan_begins_one_where_there_is_none(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("x")])
    async with stage.run() as pilot:
        await stage.main.controller.run("plan", "")
        await until(lambda: stage.harness.agent.mode == "plan", pilot)
        await stage.main.controller.run("plan", "")
        await until(lambda: "no plan yet" in stage.main.notice.message, pilot)


async def test_a_compaction_carries_the_plan(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Reply:
        if not request.tools:
            return Reply(SUMMARY)
        return Reply(
            PLAN
            if request.messages[-1].text == "plan it"
            else " ".join(f"Item {number} is done." for number in range(400))
        )

    stage = real_stage(tmp_path, script, window=24_000)
    stage.harness.agent.change_mode("plan")
    async with stage.run(after=["plan it"]) as pilot:
        await stage.main.controller.run("plan", "build")
        await stage.harness.agent.wait_idle()
        for number in range(6):
            await stage.say(f"go on {number}", pilot)
        outcome = await stage.harness.agent.compact()
        assert outcome.problem is None
        entry = stage.harness.path()[-1]
        assert isinstance(entry, CompactionEntry)
        assert [(item.tool, item.text) for item in entry.details.state] == [("plan", PLAN)]


@pytest.mark.parametrize(("key", "runs"), [("y", True), ("n", False)])
async def test_a_command_is_run_outside_the_sandbox_once_when_that_is_confirmed(
    tmp_path: Path, key: str, runs: bool
) -> None:
    stage = real_stage(tmp_path, [Reply("Hello.")])
    async with stage.run() as pilot:
        stage.main.controller.begin("outside", "echo free > made.txt")
        await stage.until_text("Run this once without the sandbox?", pilot)
        assert "echo free > made.txt" in stage.text()
        await until(lambda: stage.main.view is not None and stage.main.view.question.armed, pilot)
        await pilot.press(key)
        await until(lambda: stage.main.view is not None and stage.main.view.question.asked is None)
        ran = [entry for entry in stage.harness.path() if isinstance(entry, ShellEntry)]
        if runs:
            await until(
                lambda: any(isinstance(entry, ShellEntry) for entry in stage.harness.path()), pilot
            )
        else:
            assert not ran


async def test_without_a_command_outside_takes_the_models_last(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("Hello.")])
    async with stage.run() as pilot:
        stage.main.controller.begin("outside", "")
        await stage.until_text("The model has run no commands here", pilot)
