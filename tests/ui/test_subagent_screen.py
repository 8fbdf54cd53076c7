"""Going into a subagent's session from its card, while it works and afterwards, and back."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_stage import RealStage, real_stage
from tests.support.scripted_client import Call, Reply
from tests.support.ui_app import make_stage, until
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.permissions import Action, Rule
from tui_agent.app.services import OpenHow, OpenRequest
from tui_agent.context.request import ModelRequest
from tui_agent.session.session import Session
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.task import TaskTool
from tui_agent.ui.screens.branch import BranchScreen
from tui_agent.ui.widgets.tree.session_tree import SessionTree

SPECS = (
    AgentSpec("explore", "finds and reads", prompt="You explore."),
    AgentSpec("general", "does", prompt="You do."),
)
TASK = "Find where the redirect loses its query and say which line it is"


def is_child(request: ModelRequest) -> bool:
    return request.messages[0].text.startswith("You explore.")


def stage_with_tasks(tmp_path: Path, child: Reply) -> RealStage:
    def script(request: ModelRequest) -> Reply:
        done = any(message.role == "tool" for message in request.messages)
        if is_child(request):
            return child if done else Reply("I look around.", (Call("ls", '{"path": "."}'),))
        if done:
            return Reply("It is in views.py.")
        return Reply("I ask.", (Call("task", json.dumps({"agent": "explore", "task": TASK})),))

    opened: list[OpenRequest] = []

    def open_session(request: OpenRequest) -> Session:
        opened.append(request)
        if request.how is not OpenHow.READ_ONLY or request.session_id is None:
            return stage.harness.session
        return Session(
            stage.harness.store, request.session_id, estimate=lambda _entry: 1, read_only=True
        )

    stage = real_stage(
        tmp_path,
        script,
        services={"open_session": open_session},
        tools=(*builtin_tools(), TaskTool()),
        agents=SPECS,
        rules=(Rule("task", "*", Action.ALLOW),),
        clock=lambda: (
            1_790_000_000_000
        ),  # what takes longer than a moment is told, on a busy machine too
    )
    return stage


async def enter_card(stage: RealStage, pilot: Any) -> None:
    stage.main.view.transcript.focus()
    for _ in range(8):
        await pilot.pause()
        target = stage.main.view.transcript.focused_target()
        if target is not None and "enter" in target[1].actions:
            break
        await pilot.press("k")
    await pilot.press("o")


async def test_it_is_watched_while_it_works_and_the_parent_goes_on(tmp_path: Path) -> None:
    stage = stage_with_tasks(tmp_path, Reply("It must be in views.py, line 12", hang=True))
    async with stage.run() as pilot:
        stage.harness.agent.submit("where is it lost?")
        await until(stage.client.hanging.is_set, pilot)
        await enter_card(stage, pilot)
        await until(lambda: isinstance(stage.screen, BranchScreen), pilot)
        await stage.until_text("It must be in views.py, line 12", pilot)
        shown = stage.text()
        assert "explore: Find where the redirect loses its query" in shown
        assert "subagent of “where is it lost?”" in shown
        assert "working" in shown
        assert "I look around." in shown
        await pilot.press("escape")
        assert stage.screen is stage.main
        assert stage.harness.agent.running


async def test_in_the_tree_it_hangs_folded_under_its_call_and_is_entered_and_not_gone_to(
    tmp_path: Path,
) -> None:
    stage = stage_with_tasks(tmp_path, Reply("views.py:12 drops it."))
    async with stage.run() as pilot:
        await stage.say("where is it lost?", pilot)
        await stage.until_text("It is in views.py.", pilot)
        leaf = stage.harness.session.leaf
        await pilot.press("ctrl+t")
        await stage.until_text("Session tree", pilot)
        await stage.until_text("Subagent explore: Find where", pilot)
        shown = stage.text()
        assert "1 branch" in shown
        assert "I look around." not in shown
        tree = stage.screen.query_one(SessionTree)
        for _ in range(6):
            line = tree.line
            if line is not None and line.segment.is_beside:
                break
            await pilot.press("k")
        await pilot.press("enter")
        await until(lambda: isinstance(stage.screen, BranchScreen), pilot)
        await stage.until_text("I look around.", pilot)
        assert stage.harness.session.leaf == leaf


async def test_a_session_says_whose_it_is_and_parent_goes_back(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        parent = stage.agent.session.id
        await stage.main.controller.run("parent", "")
        assert "is not a fork of another" in str(stage.main.notice.render())
        child = stage.store.create_session(
            tmp_path, title="look", parent=(parent, 1), agent="explore"
        )
        await stage.main.controller.open(OpenRequest(child.id))
        await pilot.pause()
        assert stage.main.header.note == "explore, a subagent: /parent goes back"
        await stage.main.controller.run("parent", "")
        assert stage.requests[-1].session_id == parent
        assert stage.main.header.note == ""


@pytest.mark.parametrize("size", [(40, 12), (80, 24)])
def test_picture(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    stage = stage_with_tasks(
        tmp_path, Reply("**views.py:12** drops it.\n\n- `redirect(LOGIN_URL)` has no query")
    )
    (tmp_path / "project" / "views.py").write_text("x = 1\n")

    async def act(pilot: Any) -> None:
        await until(lambda: stage.main.view is not None and stage.main.agent is not None, pilot)
        await stage.say("where is it lost?", pilot)
        await stage.until_text("It is in views.py.", pilot)
        await enter_card(stage, pilot)
        await stage.until_text("has no query", pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=act)
