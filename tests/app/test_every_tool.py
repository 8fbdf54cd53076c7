"""Every tool as a person meets it: its card on the screen, and its call in an editor."""

import json
from pathlib import Path
from typing import Any

from acp.schema import (
    AllowedOutcome,
    RequestPermissionResponse,
    ToolCallProgress,
    ToolCallStart,
)

from tests.support.agents import Harness, make_agent
from tests.support.every_tool import Use, files_in, ports, uses, web
from tests.support.real_stage import real_stage
from tests.support.scripted_client import Call, Reply
from tests.support.ui_app import press, until
from tui_agent.acp.session import EditorSession
from tui_agent.acp.updates import Prompt
from tui_agent.app.services import OpenRequest
from tui_agent.context.request import ModelRequest
from tui_agent.session.entries import ToolStatus


class Worker:
    """Plays a model that calls one tool after the other."""

    def __init__(self, todo: list[Use]) -> None:
        self.todo = todo
        self.at = 0

    def __call__(self, request: ModelRequest) -> Reply:
        said = "\n".join(message.text for message in request.messages)
        if "You explore." in said:
            return Reply("Nothing there.")
        if self.at >= len(self.todo):
            return Reply("Done.")
        use = self.todo[self.at]
        self.at += 1
        return Reply(calls=(Call(use.tool, json.dumps(use.told(said))),))


def worked(harness: Harness, todo: list[Use]) -> list[str]:
    """Return what went wrong: nothing."""
    results = harness.results()
    assert len(results) == len(todo)
    return [
        f"{use.tool} {use.arguments}: {result.output}"
        for use, result in zip(todo, results, strict=True)
        if result.status is not ToolStatus.COMPLETED or use.says not in result.output
    ]


async def test_on_the_screen(tmp_path: Path) -> None:
    async with web() as server:
        todo = uses(server.port)
        stage = real_stage(tmp_path, Worker(todo), **ports(server, tmp_path))
        files_in(stage.harness.agent.ports.cwd)
        async with stage.run(size=(80, 24)) as pilot:
            stage.harness.agent.submit("Use them all.")
            await stage.until_text("Which colour?", pilot)
            assert "calm" in stage.text()
            await until(
                lambda: stage.main.view is not None and stage.main.view.question.armed, pilot
            )
            await press(pilot, "enter")
            await stage.until_text("Done.", pilot)
        assert not worked(stage.harness, todo)


class Editor:
    """Takes the first choice of every question, and keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.asked: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        self.told.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_more: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        outcome = AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return RequestPermissionResponse(outcome=outcome)


async def test_in_an_editor(tmp_path: Path) -> None:
    async with web() as server:
        todo = uses(server.port)
        harness = make_agent(tmp_path, Worker(todo), answer=None, **ports(server, tmp_path))
        files_in(harness.agent.ports.cwd)
        editor = Editor()
        session = EditorSession(editor, harness.services())
        await session.open(OpenRequest())
        assert await session.prompt(Prompt("Use them all.", ())) == "end_turn"
        wrong = worked(harness, todo)
        await session.aclose()
    assert not wrong
    begun = [update for update in editor.told if isinstance(update, ToolCallStart)]
    assert len(begun) == len(todo)
    ended = {
        update.tool_call_id
        for update in editor.told
        if isinstance(update, ToolCallProgress) and update.status == "completed"
    }
    assert ended == {update.tool_call_id for update in begun}
