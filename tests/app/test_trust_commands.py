"""``/plugin`` and ``/trust``: what others bring along is shown, and acts once the user agrees."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.app.test_race_commands import Told, do
from tests.support.agents import make_agent
from tests.support.knowledge import write
from tests.support.scripted_client import ScriptedClient
from tui_agent.app.controller import Controller
from tui_agent.app.frontend import Choice
from tui_agent.app.services import OpenRequest
from tui_agent.plugins import PLUGINS, PluginStore
from tui_agent.trust import ProjectState, TrustItem

GUARD = {"PreToolUse": [{"hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/guard"}]}]}


@dataclass
class Answering(Told):
    """A frontend that gives one answer."""

    answer: str = "y"

    async def ask(self, question: Choice) -> str:  # type: ignore[override]
        self.words += [question.question, question.details]
        return self.answer


async def controller_of(tmp_path: Path, frontend: Answering, **services: Any) -> Controller:
    harness = make_agent(tmp_path, ScriptedClient([]))
    controller = Controller(frontend, lambda _event: None)
    controller.attach(harness.services(state_dir=tmp_path / "state", **services))
    await controller.open_or_raise(OpenRequest(harness.session.id))
    return controller


def kit(folder: Path) -> None:
    write(folder / ".claude-plugin/plugin.json", json.dumps({"name": "kit", "version": "1"}))
    write(folder / "skills/ship/SKILL.md", "---\nname: ship\ndescription: d\n---\nx")
    write(folder / "hooks/hooks.json", json.dumps({"hooks": GUARD}))


@pytest.mark.parametrize(("answer", "added"), [("y", ["kit"]), ("n", [])])
async def test_a_plugin_is_shown_before_it_acts(
    tmp_path: Path, answer: str, added: list[str]
) -> None:
    told = Answering(answer=answer)
    kit(tmp_path / "the kit")
    controller = await controller_of(tmp_path, told, cwd=tmp_path)
    assert await do(controller, "plugin", "add 'the kit'")
    assert "Add the plugin kit 1?" in told.words
    shown = told.words[told.words.index("Add the plugin kit 1?") + 1]
    assert "skill: ship" in shown
    assert "hook: PreToolUse: runs " in shown
    store = PluginStore(tmp_path / "state" / PLUGINS)
    assert [plugin.name for plugin in store.plugins()] == added
    assert await do(controller, "plugin")
    if added:
        assert "**kit 1**\n  skill: ship" in told.words[-1]
        assert await do(controller, "plugin", "remove kit")
        assert store.plugins() == []
    else:
        assert "No plugins yet." in told.words[-1]


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("add nowhere", "nowhere is not a folder"),
        ("remove it", "There is no plugin it"),
        ("add 'x", "A quote is not closed"),
        ("fetch x", "Use /plugin, /plugin add"),
    ],
)
async def test_a_plugin_that_cannot_be_managed_is_said(
    tmp_path: Path, argument: str, why: str
) -> None:
    told = Answering()
    controller = await controller_of(tmp_path, told, cwd=tmp_path)
    await do(controller, "plugin", argument)
    assert why in told.words[-1]


@pytest.mark.parametrize(("answer", "kept"), [("y", "trusted"), ("n", None), ("v", "refused")])
async def test_all_that_waits_is_on_one_page_and_one_answer_lets_it_act(
    tmp_path: Path, answer: str, kept: str | None
) -> None:
    rows = (
        TrustItem("hook", "PreToolUse", "runs guard", ".claude/settings.json"),
        TrustItem("command", ".claude/commands/x.md", "x", ".claude/commands/x.md"),
    )
    answers: list[str | None] = []
    told = Answering(answer=answer)
    controller = await controller_of(
        tmp_path,
        told,
        project_state=lambda: ProjectState(rows, "d", refused=True),
        answer_trust=answers.append,
    )
    assert await do(controller, "trust")
    assert answers == [kept]
    assert told.words[1].split("\n") == [
        "hook              PreToolUse  runs guard  (.claude/settings.json)",
        "command           .claude/commands/x.md  x",
    ]
    assert ("Trusted." in told.words[-1]) is (kept == "trusted")


async def test_what_is_trusted_is_listed_and_not_asked_about(tmp_path: Path) -> None:
    told = Answering()
    state = ProjectState((TrustItem("hook", "Stop", "runs x"),), "d", trusted=True)
    controller = await controller_of(tmp_path, told, project_state=lambda: state)
    assert await do(controller, "trust")
    assert "You trust all of the following.\n\nhook              Stop  runs x" in told.words[-1]
