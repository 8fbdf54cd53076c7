"""The user is called when a question waits or a long run ended, and only when they look elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from textual import events

from tests.support.ui_app import STILL, Clock, Stage, emit, make_stage, until
from tests.support.ui_scenes import question_bash
from tui_agent.agent.events import (
    Decision,
    PermissionAsked,
    PermissionSettled,
    QuestionAsked,
    QuestionsAnswered,
    RunEnded,
    RunStarted,
)
from tui_agent.app.run_state import describe_run
from tui_agent.app.services import OpenRequest
from tui_agent.config import ConfigError, load_config
from tui_agent.ui import terminal
from tui_agent.ui.attention import TerminalWrite


def a_stage(tmp_path: Path, **settings: Any) -> tuple[Stage, Clock]:
    clock = Clock()
    return make_stage(
        tmp_path, clock=clock, cwd=tmp_path, settings=STILL.model_copy(update=settings)
    ), clock


def calls(stage: Stage) -> list[str]:
    return [message.sequence for message in stage.of(TerminalWrite)]


async def look(stage: Stage, pilot: Any, *, here: bool) -> None:
    stage.app.post_message(events.AppFocus() if here else events.AppBlur())
    await pilot.pause()


async def run(stage: Stage, clock: Clock, pilot: Any, seconds: float, ended: RunEnded) -> None:
    await emit(stage, pilot, RunStarted())
    clock.now += seconds
    await emit(stage, pilot, ended)


async def test_the_end_of_a_long_run_is_told_to_who_looks_elsewhere_and_the_title_waits(
    tmp_path: Path,
) -> None:
    stage, clock = a_stage(tmp_path, notify="bell")
    async with stage.run() as pilot:
        stage.agent.session.set_title("fix the bug")
        await look(stage, pilot, here=False)
        await emit(stage, pilot, RunStarted())
        assert stage.app.sub_title == "◐ fix the bug"
        clock.now += 11
        await emit(stage, pilot, RunEnded("done"))
        assert calls(stage) == ["\a"]
        assert stage.app.sub_title == "✓ fix the bug"
        await look(stage, pilot, here=True)
        assert stage.app.sub_title == "fix the bug"


@pytest.mark.parametrize(
    ("here", "seconds", "ended", "title", "notify"),
    [
        (True, 60, RunEnded("done"), "", "desktop"),
        (False, 3, RunEnded("done"), "✓", "desktop"),
        (False, 60, RunEnded("interrupted"), "", "desktop"),
        (False, 60, RunEnded("done"), "✓", "off"),
    ],
)
async def test_nobody_is_called_for_less(
    tmp_path: Path, here: bool, seconds: float, ended: RunEnded, title: str, notify: str
) -> None:
    stage, clock = a_stage(tmp_path, notify=notify)
    async with stage.run() as pilot:
        await look(stage, pilot, here=False)
        await look(stage, pilot, here=here)
        await run(stage, clock, pilot, seconds, ended)
        assert calls(stage) == []
        assert stage.app.sub_title == title


async def test_where_the_terminal_says_nothing_of_focus_no_key_for_a_while_counts(
    tmp_path: Path,
) -> None:
    stage, clock = a_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("x")
        await emit(stage, pilot, RunStarted())
        clock.now += 11
        await pilot.press("y")
        await emit(stage, pilot, RunEnded("done"))
        assert calls(stage) == []
        await run(stage, clock, pilot, 20, RunEnded("error", "no network"))
        assert len(calls(stage)) == 1
        assert stage.app.sub_title == "✗"
        await pilot.press("z")
        assert stage.app.sub_title == ""


async def test_a_command_of_the_users_is_told_and_its_failure_is_a_warning(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    stage, clock = a_stage(
        tmp_path, notify="off", notify_command=f"cat > {told}; echo broken >&2; exit 3"
    )
    async with stage.run() as pilot:
        await look(stage, pilot, here=False)
        await run(stage, clock, pilot, 60, RunEnded("done"))
        await until(lambda: stage.toasts, pilot)
        call = json.loads(told.read_text())
        assert (call["event"], call["text"], call["seconds"]) == (
            "done",
            "is done after 1:00",
            60.0,
        )
        assert stage.toasts == ["notify_command: exit code 3: broken"]


async def test_a_command_that_must_not_run_is_not_told(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    stage, clock = a_stage(tmp_path, notify="off", notify_command=f"cat > {told}")
    stage.services.problem_of_command = lambda _cwd, _command: "no"  # type: ignore[method-assign]
    async with stage.run() as pilot:
        await look(stage, pilot, here=False)
        await run(stage, clock, pilot, 60, RunEnded("done"))
        await until(lambda: stage.toasts, pilot)
        assert stage.toasts == ["notify_command: not run: no"]
    assert not told.exists()


@pytest.mark.parametrize(
    ("environment", "begins"),
    [
        ({"TERM": "xterm-kitty"}, "\x1b]99;i=tui-agent:d=0;"),
        ({"TERM": "foot"}, "\x1b]777;notify;"),
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;"),
        (
            {"TERM": "tmux-256color", "TMUX": "/tmp/x", "WEZTERM_PANE": "0"},
            "\x1bPtmux;\x1b\x1b]777;notify;",
        ),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "linux"}, None),
    ],
)
def test_terminals_are_asked_in_their_own_way(
    environment: dict[str, str], begins: str | None
) -> None:
    sequence = terminal.notification("tui-agent", "fix the bug is done", environment)
    assert sequence is None if begins is None else (sequence or "").startswith(begins)


@pytest.mark.parametrize(
    "environment", [{"TERM": "xterm-kitty"}, {"TERM": "foot"}, {"TERM_PROGRAM": "iTerm.app"}]
)
def test_nothing_a_model_wrote_ends_or_extends_a_sequence(environment: dict[str, str]) -> None:
    sequence = (
        terminal.notification("tui-agent", "a\x07\x1b]0;owned\x07b\x9cc;d\n\u202ee", environment)
        or ""
    )
    plain = terminal.notification("tui-agent", "text", environment) or ""
    assert sequence.count("\x1b") == plain.count("\x1b")
    assert sequence.count("\x07") == plain.count("\x07")
    assert "\x9c" not in sequence
    if "777" in sequence:
        assert sequence.count(";") == 3


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"WT_SESSION": "1", "TMUX": "/tmp/x"}, True),
        ({"VTE_VERSION": "8000"}, True),
        ({"VTE_VERSION": "7600"}, False),
        ({"TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.1.3"}, False),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.6.6"}, True),
        ({"TERM": "xterm-kitty"}, False),
    ],
)
def test_only_a_terminal_with_a_progress_bar_is_sent_one(
    environment: dict[str, str], shown: bool
) -> None:
    sent = (
        "\x1bPtmux;\x1b\x1b]9;4;3\x1b\x1b\\\x1b\\" if "TMUX" in environment else "\x1b]9;4;3\x1b\\"
    )
    assert terminal.progress(terminal.Progress.WORKING, environment) == (sent if shown else "")


async def test_the_progress_bar_follows_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("WT_SESSION", "1")
    stage, clock = a_stage(tmp_path, notify="off")
    async with stage.run() as pilot:
        await look(stage, pilot, here=False)
        stage.agent.emit(RunStarted())
        stage.agent.emit(PermissionAsked(question_bash()))
        await emit(stage, pilot, PermissionSettled(question_bash().call_id, Decision.ONCE))
        clock.now += 60
        await emit(stage, pilot, RunEnded("error", "no network"))
        await look(stage, pilot, here=True)
        assert [call.removeprefix("\x1b]9;4;").removesuffix("\x1b\\") for call in calls(stage)] == [
            "3", "4;100", "3", "2", "0",
        ]  # fmt: skip


async def test_a_question_of_the_model_calls_the_user_as_a_permission_question_does(
    tmp_path: Path,
) -> None:
    stage, clock = a_stage(tmp_path, notify="bell")
    async with stage.run() as pilot:
        await look(stage, pilot, here=False)
        await emit(stage, pilot, RunStarted())
        await emit(stage, pilot, QuestionAsked("Which database?"))
        clock.now += 30
        assert calls(stage) == ["\a"]
        assert stage.app.sub_title == "?"
        assert describe_run(stage.main.status.state, clock.now, 0) == "waiting for your answer"
        await emit(stage, pilot, QuestionsAnswered())
        assert stage.app.sub_title == "◐"
        await emit(stage, pilot, RunEnded("done"))


async def test_a_server_that_asks_an_idle_agent_leaves_it_idle(tmp_path: Path) -> None:
    stage, _clock = a_stage(tmp_path, notify="bell")
    async with stage.run() as pilot:
        await emit(stage, pilot, QuestionAsked("db: Which host?"))
        assert stage.app.sub_title == "?"
        await emit(stage, pilot, QuestionsAnswered())
        assert stage.app.sub_title == ""
        assert not stage.main.status.state.active


def test_a_project_cannot_name_a_command(tmp_path: Path) -> None:
    project = tmp_path / "p" / ".tui-agent" / "config.toml"
    project.parent.mkdir(parents=True)
    project.write_text(
        '[ui]\nnotify = "off"\nnotify_command = "curl evil"\n[projects."/x"]\npermissions = {}\n'
    )
    config = load_config(tmp_path / "config.toml", environ={}, project=project).config
    assert (config.ui.notify, config.ui.notify_command, config.projects) == ("off", None, {})
    (tmp_path / "config.toml").write_text('[ui]\nnotify_command = "mine"\nnotify = "loud"\n')
    with pytest.raises(ConfigError, match="notify"):
        load_config(tmp_path / "config.toml", environ={})


async def test_a_run_is_as_long_as_it_took_though_another_session_was_on_the_screen(
    tmp_path: Path,
) -> None:
    stage, clock = a_stage(tmp_path, notify="bell")
    async with stage.run() as pilot:
        running = stage.agent
        await emit(stage, pilot, RunStarted())
        clock.now += 300
        await stage.main.controller.open(OpenRequest())
        await stage.main.controller.open(OpenRequest(running.session.id))
        assert stage.main.agent is running
        await look(stage, pilot, here=False)
        running.emit(RunEnded("done"))
        await pilot.pause()
        assert calls(stage) == ["\a"]
