"""Settings of the interface: the user's own status line, copying what is selected, cursors that blink."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from textual import events

from tests.support.ui_app import STILL, Stage, make_stage, screen_text, until
from tui_agent.config import Config
from tui_agent.session.entries import TextPart, UserEntry
from tui_agent.ui.widgets.user_status import UserStatusLine


def a_stage(tmp_path: Path, command: str | None) -> Stage:
    return make_stage(
        tmp_path, cwd=tmp_path, settings=STILL.model_copy(update={"status_line": command})
    )


def shown(stage: Stage) -> UserStatusLine:
    return stage.main.query_one(UserStatusLine)


async def ran(stage: Stage) -> None:
    running = [worker for worker in stage.app.workers if worker.group == "status line"]
    await stage.app.workers.wait_for_complete(running)


async def test_its_first_line_is_shown_and_it_is_told_what_goes_on(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    stage = a_stage(
        tmp_path, f"cat > {told}; printf '\\033[31mred\\033[0m \\033]0;owned\\007\\nsecond\\n'"
    )
    async with stage.run() as pilot:
        await until(lambda: shown(stage).text, pilot)
        assert shown(stage).text == "red ␛]0;owned␇"
        assert "red ␛" in screen_text(stage)
        state = json.loads(told.read_text())
        assert state["model"] == "anthropic/claude-sonnet-4-5"
        assert state["mode"] == "build"
        assert set(state["context"]) == {"tokens", "window", "percent"}
        stage.agent.append(UserEntry(parts=(TextPart(text="hello"),)))
        await until(
            lambda: json.loads(told.read_text() or "{}").get("session", {}).get("entry") == 1, pilot
        )


async def test_the_example_of_the_documents_prints_a_line(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "docs/examples/status/agent-status"
    stage = a_stage(tmp_path, f"{sys.executable} {example}")
    async with stage.run() as pilot:
        await until(lambda: shown(stage).text, pilot)
        assert f"{tmp_path.name} (main*) | claude-sonnet-4-5 | [" in shown(stage).text
        assert "% of 200,000" in shown(stage).text


async def test_it_is_not_run_while_nothing_changes(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    stage = a_stage(tmp_path, f"echo x >> {runs}; cat > /dev/null; echo ok")
    async with stage.run() as pilot:
        await until(lambda: shown(stage).text == "ok", pilot)
        count = len(runs.read_text().split())
        for _ in range(5):
            stage.main.refresh_facts()
        await pilot.pause()  # lets the timer go off
        await ran(stage)
        assert len(runs.read_text().split()) <= count + 1


@pytest.mark.parametrize("command", ["echo broken >&2; exit 3", "no-such-program-at-all"])
async def test_a_failure_is_told_once(tmp_path: Path, command: str) -> None:
    stage = a_stage(tmp_path, command)
    async with stage.run() as pilot:
        await until(lambda: stage.toasts, pilot)
        for number in range(2):
            stage.agent.append(UserEntry(parts=(TextPart(text=f"hello {number}"),)))
            await pilot.pause()  # lets the timer go off
            await ran(stage)
        (note,) = stage.toasts
        assert note.startswith("status_line: exit code")


async def test_a_command_that_must_not_run_is_not_run(tmp_path: Path) -> None:
    stage = make_stage(
        tmp_path,
        cwd=tmp_path,
        settings=STILL.model_copy(update={"status_line": "touch ran"}),
        problem_of_command=lambda _cwd, command: f"{command} is not trusted",
    )
    async with stage.run() as pilot:
        await until(lambda: stage.toasts, pilot)
        assert stage.toasts == ["status_line: not run: touch ran is not trusted"]
    assert not (tmp_path / "ran").exists()


async def test_without_a_command_there_is_no_line(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, None)
    async with stage.run() as pilot:
        assert not shown(stage).display
        stage.main.apply_settings(Config(ui=STILL.model_copy(update={"status_line": "echo now"})))
        await until(lambda: shown(stage).text == "now", pilot)
        stage.main.apply_settings(Config(ui=STILL))
        assert not shown(stage).display


async def test_the_output_of_a_former_command_is_not_shown(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    stage = a_stage(tmp_path, f"touch {begun}; sleep 1; echo former; exit 3")
    async with stage.run() as pilot:
        await until(begun.exists, pilot)
        stage.main.apply_settings(Config(ui=STILL))
        await ran(stage)
        assert not shown(stage).text
        assert stage.toasts == []


@pytest.mark.parametrize("wanted", [True, False])
async def test_what_is_selected_is_copied_where_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, wanted: bool
) -> None:
    stage = make_stage(tmp_path, settings=STILL.model_copy(update={"copy_on_select": wanted}))
    copied: list[Any] = []
    async with stage.run() as pilot:
        monkeypatch.setattr(stage.app, "copy_to_clipboard", copied.append)
        monkeypatch.setattr(type(stage.main), "get_selected_text", lambda _screen: "some words")
        stage.main.post_message(events.TextSelected())
        await pilot.pause()
        assert copied == (["some words"] if wanted else [])


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_cursor_of_every_field_blinks_or_stands_still_as_the_prompts(
    tmp_path: Path, *, wanted: bool
) -> None:
    settings = STILL.model_copy(update={"cursor_blink": wanted, "reduced_motion": False})
    stage = make_stage(tmp_path, settings=settings)
    async with stage.run() as pilot:
        assert stage.main.prompt.cursor_blink is wanted
        await pilot.press("ctrl+f")
        field = stage.view.find_bar.field
        await until(lambda: stage.app.focused is field and field.cursor_blink is wanted, pilot)
