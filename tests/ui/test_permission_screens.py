"""Rules that can be looked at and taken back, modes in the status line, and the question about a project's things."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.ui_app import Stage, make_stage, press, run_command, screen_text, until
from tui_agent.agent.permissions import DEFAULT_RULES, Action, Rule
from tui_agent.trust import ProjectState, TrustItem
from tui_agent.ui.screens.permissions import PermissionsScreen

RULES = (
    *DEFAULT_RULES,
    Rule("bash", "rm *", Action.DENY, "user"),
    Rule("bash", "npm *", Action.ALLOW, "project"),
    Rule("bash", "make *", Action.ALLOW, "here"),
    Rule("bash", "git commit *", Action.ALLOW, "session"),
)


class RuledAgent(FakeAgent):
    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self.left: list[Rule] = list(RULES)
        self.removed: list[tuple[int, Rule]] = []
        self.tools.gate = self  # type: ignore[assignment]

    def rules(self) -> tuple[Rule, ...]:
        return tuple(self.left)

    def is_fixed(self, rule: Rule) -> str | None:
        return "It is built in." if rule.source == "default" else None

    def remove(self, rule: Rule) -> bool:
        self.removed.append((self.left.index(rule), rule))
        self.left.remove(rule)
        return True

    def restore(self, rule: Rule) -> None:
        place, known = self.removed.pop()
        assert known == rule
        self.left.insert(place, rule)


def ruled_stage(tmp_path: Path, **services: Any) -> Stage:
    agents: list[RuledAgent] = []

    def make_agent(session: Any) -> RuledAgent:
        agents.append(RuledAgent(session))
        return agents[-1]

    stage = make_stage(tmp_path, make_agent=make_agent, **services)
    stage.agents = agents  # type: ignore[assignment]
    return stage


async def test_every_rule_is_shown_with_where_it_is_kept_the_strongest_first(
    tmp_path: Path,
) -> None:
    stage = ruled_stage(tmp_path)
    async with stage.run((120, 30)) as pilot:
        await run_command(stage, pilot, "permissions")
        await until(lambda: isinstance(stage.app.screen, PermissionsScreen), pilot)
        lines = [
            line
            for line in screen_text(stage).splitlines()
            if any(a in line for a in ("allow ", "deny ", "ask "))
        ]
        shown = [" ".join(line.split()) for line in lines if "first match" not in line]
        assert shown[:7] == [
            "allow bash git commit * this session, until the program ends",
            "allow bash make * your config.toml, for this project",
            "allow bash npm * .tui-agent/config.toml of this project",
            "deny bash rm * your config.toml",
            "allow skill * built in",
            "allow read * built in",
            "ask * * built in",
        ]
        # What no rule says is said in words, and can be searched for.
        assert "ask secrets: .env, keys, credentials even where reading is allowed" in shown
        assert "allow any command in the sandbox, by mode" in shown
        assert "docs/permissions.md" in screen_text(stage)
        assert "type to narrow" not in screen_text(stage), "everything is shown"
        await press(pilot, *"command", "enter")
        assert "in the sandbox, by mode" in screen_text(stage)
        assert "git commit *" not in screen_text(stage)
        assert "your own rules override it" in stage.toasts[0]
        await pilot.press("escape")
        await press(pilot, *"deny")
        assert "git commit" not in screen_text(stage)


@pytest.mark.parametrize(
    ("downs", "forgotten", "is_kept"),
    [(0, "git commit *", False), (1, "make *", True), (3, "rm *", True)],
)
async def test_a_rule_is_removed(tmp_path: Path, downs: int, forgotten: str, is_kept: bool) -> None:
    asked: list[Rule] = []
    kept: list[Rule] = []
    stage = ruled_stage(tmp_path, forget_rule=asked.append, keep_rule=kept.append)
    async with stage.run((120, 30)) as pilot:
        await run_command(stage, pilot, "permissions")
        await press(pilot, *["down"] * downs, "enter")
        assert "Remove it from" in screen_text(stage)
        await press(pilot, "enter")
        assert [rule.pattern for rule in asked] == [forgotten]
        assert len(stage.agent.left) == len(RULES) - 1  # type: ignore[attr-defined]
        await press(pilot, "ctrl+z")
        assert tuple(stage.agent.left) == RULES  # type: ignore[attr-defined]
        assert [rule.pattern for rule in kept] == ([forgotten] if is_kept else [])


async def test_a_rule_of_the_session_can_be_kept_for_later(tmp_path: Path) -> None:
    kept: list[Rule] = []
    stage = ruled_stage(tmp_path, keep_rule=kept.append)
    async with stage.run((120, 30)) as pilot:
        await run_command(stage, pilot, "permissions")
        await press(pilot, "enter", "down", "enter")
        assert [rule.pattern for rule in kept] == ["git commit *"]
        assert len(stage.agent.left) == len(RULES)  # type: ignore[attr-defined]


async def test_a_rule_that_cannot_be_removed_says_why_and_stays(tmp_path: Path) -> None:
    stage = ruled_stage(tmp_path, forget_rule=lambda _rule: "Edit the project's file.")
    async with stage.run((120, 30)) as pilot:
        await run_command(stage, pilot, "permissions")
        await press(pilot, "down", "down", "enter", "enter")
        await pilot.pause()
        assert len(stage.agent.left) == len(RULES)  # type: ignore[attr-defined]
        assert stage.toasts == ["Edit the project's file."]


async def test_yolo_has_to_be_named_and_looks_like_it(stage: Stage) -> None:
    async with stage.run((100, 30)) as pilot:
        await run_command(stage, pilot, "mode", "yolo")
        assert stage.agent.mode == "yolo"
        status = stage.main.status.render()
        styles = {status.plain[span.start : span.end]: span.style for span in status.spans}
        ground = styles["yolo"].background  # type: ignore[union-attr]
        assert ground is not None
        assert ground.a == 1, "it is drawn"
        assert "runs everything that no rule denies" in screen_text(stage)
        await run_command(stage, pilot, "mode", "nonsense")
        assert stage.agent.mode == "yolo"
        assert "build, auto-edit, plan, yolo" in screen_text(stage)
        await press(pilot, "shift+tab")
        assert stage.agent.mode == "build"


STATE = ProjectState(
    (
        TrustItem("setting", "model", "x/y"),
        TrustItem("hook", ".tui-agent/hooks/after.sh", "curl evil.example \x1b[2J"),
        TrustItem(
            "MCP server", "db", "runs npx db-server --and more words than a line of text has"
        ),
    ),
    digest="d",
)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [(["enter"], None), (["n"], None), (["escape"], None), (["y"], "trusted"), (["v"], "refused")],
)
async def test_what_a_project_brings_along_is_shown_and_asked_about_before_anything_opens(
    tmp_path: Path, keys: list[str], answer: str | None
) -> None:
    answers: list[str | None] = []
    stage = make_stage(tmp_path, trust_question=lambda: STATE, answer_trust=answers.append)
    async with stage.app.run_test(size=(100, 30)) as pilot:
        await until(lambda: stage.main.view is not None and stage.view.question.armed, pilot)
        text = screen_text(stage)
        for shown in (
            "Do you trust",
            "3 items",
            "setting",
            "x/y",
            "curl evil.example ␛[2J",
            "runs npx db-server --and more words than a line of text has",
        ):
            assert shown in text
        assert stage.requests == []
        await pilot.press(*keys)
        await until(lambda: stage.requests, pilot)
        assert answers == [answer]
