"""The pages about a session: what changed in files, background jobs, status; and a new session in its place."""

from pathlib import Path
from typing import Any

import pytest
from textual.events import Paste
from textual.widgets import OptionList

from tests.support.real_stage import RealStage, real_stage
from tests.support.scripted_client import Call, Reply
from tests.support.tree_stage import plant_files, tree_stage, write_files
from tests.support.ui_app import Stage, screen_text, until
from tui_agent.agent.permissions import Action, Rule
from tui_agent.model.demo import DEMO_MODEL
from tui_agent.processes.jobs import Job
from tui_agent.processes.process import Command
from tui_agent.session.entries import TextPart, UserEntry
from tui_agent.ui.inbox import Inbox
from tui_agent.ui.screens.dialogs import ReportScreen
from tui_agent.ui.screens.diff import DiffScreen
from tui_agent.ui.screens.jobs import JobsScreen

COUNTS = "for n in 1 2 3; do echo line $n; done; sleep 600"


async def test_diff_shows_what_changed_since_the_session_began_or_since_an_entry(
    tmp_path: Path,
) -> None:
    stage = tree_stage(tmp_path, planting=plant_files)
    write_files(stage)
    async with stage.run((100, 30)) as pilot:
        stage.stage.main.controller.begin("diff")
        viewer = await stage.asked(DiffScreen)
        assert "4 files changed since the session began" in screen_text(stage.stage)
        assert viewer.query_one("#files", OptionList).option_count == 4
        await pilot.press("escape")
        stage.stage.main.controller.begin("diff", f"#{stage.names['leaf']}")
        await until(
            lambda: "No file changes have been recorded since" in stage.stage.main.notice.message,
            pilot,
        )
        stage.stage.main.controller.begin("diff", "yesterday")
        await until(lambda: "Use /diff" in stage.stage.main.notice.message, pilot)


def with_job(tmp_path: Path, command: str = COUNTS, how: str = "background") -> RealStage:
    """Return a stage whose model starts a job, in the ``background`` or a ``terminal``."""
    call = Call("bash", f'{{"command": "{command}", "{how}": true}}')
    script = [Reply("", (call,)), Reply("Started.")]
    return real_stage(tmp_path, script, rules=(Rule("bash", "*", Action.ALLOW),))


def start_job(stage: RealStage, text: str) -> Job:
    project = stage.harness.agent.ports.project
    command = Command(text.split(), project, environment={}, timeout=60.0)
    return stage.harness.agent.jobs.start(text, command, lambda _data: "")


async def show_started_job(stage: RealStage, pilot: Any) -> None:
    """Have the model start its job, and open the page of jobs."""
    await stage.say("start it", pilot)
    stage.main.controller.begin("jobs")
    await until(lambda: isinstance(stage.screen, JobsScreen), pilot)


async def test_jobs_are_shown_with_their_output_and_stopped(tmp_path: Path) -> None:
    stage = with_job(tmp_path)
    async with stage.run() as pilot:
        stage.main.controller.begin("jobs")
        await until(lambda: "no background jobs" in stage.main.notice.message, pilot)
        await stage.say("start it", pilot)
        stage.main.controller.begin("jobs")
        await until(lambda: isinstance(stage.screen, JobsScreen), pilot)
        await stage.until_text("line 3", pilot)
        assert "1 job running" in stage.text()
        await pilot.press("x")
        await stage.until_text("stopped after", pilot)
        assert not stage.harness.agent.jobs.running
        await pilot.press("escape")
        await stage.main.controller.run("jobs", "stop 1")
        await until(lambda: stage.main.notice.message == "Job 1 has already ended.", pilot)
        await stage.main.controller.run("jobs", "stop 7")
        await until(lambda: "There is no job “7”. Jobs: 1." in stage.main.notice.message, pilot)


async def test_the_clock_of_the_jobs_page_ticks_between_a_new_job_and_its_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = with_job(tmp_path)
    async with stage.run() as pilot:
        await stage.say("start it", pilot)
        stage.main.controller.begin("jobs")
        await stage.until_text("1 job running", pilot)
        monkeypatch.setattr(Inbox, "take", lambda _inbox: ())
        start_job(stage, "sleep 601")
        await stage.until_text("sleep 601", pilot)
        assert isinstance(stage.screen, JobsScreen)


async def test_the_selected_job_stays_selected_when_an_older_one_leaves_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.processes.jobs.MAX_ENDED", 1)
    stage = with_job(tmp_path)
    async with stage.run() as pilot:
        await stage.say("start it", pilot)
        jobs = stage.harness.agent.jobs
        ended = start_job(stage, "true")
        selected = start_job(stage, "sleep 601")
        start_job(stage, "sleep 602")
        await ended.ended.wait()
        stage.main.controller.begin("jobs")
        await stage.until_text("3 jobs running", pilot)
        await pilot.press("up")
        await jobs.find(1).stop()
        start_job(stage, "sleep 603")
        await stage.until_text("sleep 603", pilot)
        await pilot.press("x")
        await until(lambda: jobs.running == 2, pilot)
        assert selected.ended.is_set()


async def test_a_person_types_into_the_terminal_of_a_job(tmp_path: Path) -> None:
    stage = with_job(tmp_path, "read name; echo hello $name; read end", "terminal")
    async with stage.run() as pilot:
        await show_started_job(stage, pilot)
        await pilot.press("w")
        await stage.until_text("ctrl+] give the terminal back", pilot)
        job = stage.harness.agent.jobs.find(1)
        await pilot.press(*"Ax", "backspace", *"da w", "enter")
        assert job.is_taken
        await pilot.press("ctrl+right_square_bracket")
        await stage.until_text("w take over", pilot)
        assert not job.is_taken
        await stage.until_text("hello Ada w", pilot)
        await pilot.press("x")
        await stage.until_text("stopped after", pilot)


async def test_a_taken_terminal_gets_the_keys_that_the_program_has_elsewhere(
    tmp_path: Path,
) -> None:
    command = "stty -isig -icanon -ixon -echo; echo go; exec cat -v"
    stage = with_job(tmp_path, command, "terminal")
    async with stage.run() as pilot:
        await show_started_job(stage, pilot)
        await stage.until_text("go", pilot)
        await pilot.press("w", "ctrl+l", "ctrl+p", "ctrl+q", "ctrl+c", "ctrl+z", "ctrl+backslash")
        await stage.until_text("^L^P^Q^C^Z^\\", pilot)
        stage.screen.post_message(Paste("one\r\ntwo<Enter>"))
        await stage.until_text("^\\one\ntwo<Enter>", pilot)
        stage.screen.post_message(Paste("x" * 1_001))
        await stage.until_text("Only 1,000 characters were pasted.", pilot)
        await pilot.press("ctrl+right_square_bracket", "x")
        await stage.until_text("stopped after", pilot)


async def test_status_tells_everything_on_one_page(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("Hello.", cost=0.5), Reply("Again.", cost=0.25)])
    async with stage.run((100, 40)) as pilot:
        await stage.say("hello", pilot)
        leaf = stage.harness.session.leaf
        await stage.say("again", pilot)
        await stage.harness.agent.navigator.go(leaf)
        stage.main.controller.begin("status")
        await until(lambda: isinstance(stage.screen, ReportScreen), pilot)
        text = stage.text()
        for told in (
            "model",
            "thinking",
            "mode",
            "build: asks before",
            "sandbox",
            "rules",
            "prompt cache",
            "compaction",
        ):
            assert told in text
        assert "this branch   $0.50" in text
        assert "all branches  $0.75" in text, "a branch that was left cost something, too"
        await pilot.press("escape")
        await pilot.resize_terminal(80, 24)
        stage.main.controller.begin("cost")
        await stage.until_text("By purpose", pilot)
        assert "all branches  $0.75" in stage.text(), "it begins at the part that was asked for"


async def test_clear_begins_a_new_session_and_says_how_to_come_back(stage: Stage) -> None:
    async with stage.run() as pilot:
        left: Any = stage.agent.session
        stage.agent.append(UserEntry(parts=(TextPart(text="find the bug"),)))
        await stage.main.controller.run("clear")
        await until(lambda: len(stage.agents) == 2, pilot)
        await pilot.pause()
        assert stage.agent.session.id != left.id
        assert f"“find the bug” is kept: /resume {left.id}" in stage.main.notice.message
        await stage.main.controller.run("sessions", left.id)
        await until(lambda: stage.agent.session.id == left.id, pilot)


async def test_the_demo_is_not_replaced_by_another_when_its_model_is_chosen(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.change_model(DEMO_MODEL)
        await stage.main.controller.run("model", DEMO_MODEL)
        await until(lambda: "is the demo already" in stage.main.notice.message, pilot)
        assert len(stage.agents) == 1


async def test_a_new_session_after_the_demo_is_a_demo_again(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.append(UserEntry(parts=(TextPart(text="tour"),)))
        stage.agent.change_model(DEMO_MODEL)
        await stage.main.controller.run("new")
        await until(lambda: len(stage.agents) == 2, pilot)
        assert stage.requests[-1].demo
        await stage.main.controller.run("new")
        await until(lambda: len(stage.agents) == 3, pilot)
        assert not stage.requests[-1].demo, "the open session has a model of its own"
