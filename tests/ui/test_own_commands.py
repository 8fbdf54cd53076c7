"""Commands, skills and agents of the user's own, as they are met on the screen."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.ui_app import Stage, make_stage, screen_text, send, until, write
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.knowledge.commands import UserCommand
from tui_agent.agent.knowledge.knowledge import CommandRow
from tui_agent.app.commands import find
from tui_agent.session.entries import TextPart
from tui_agent.ui.screens.equipment import EquipmentScreen
from tui_agent.ui.screens.help import HelpScreen

ROWS = (
    CommandRow("review", "look at the change", "[BRANCH]"),
    CommandRow("help", "must not hide the real one"),
    CommandRow("branch", "a name of our own comes before another name of /fork"),
    CommandRow("skill:pdf", "reads and fills in PDFs", "[TASK]"),
)


COMMANDS = (
    UserCommand(
        "review", "look at the change", "Review it with @x.md.", model="openai/x", agent="reviewer"
    ),
    UserCommand("fresh", "", "New."),
)


def make(tmp_path: Path) -> tuple[Stage, list[FakeAgent]]:
    agents: list[FakeAgent] = []

    def make_agent(session: Any) -> FakeAgent:
        agent = FakeAgent(session)
        known = agent.ports.knowledge
        known.rows, known.commands = ROWS, COMMANDS
        known.specs = (AgentSpec("reviewer", "reviews", "primary"),)
        agents.append(agent)
        return agent

    return make_stage(tmp_path, make_agent=make_agent), agents


async def enter(pilot: Any, text: str) -> None:
    await send(pilot, f"{text} ")


async def test_they_are_offered_beside_the_built_in_ones(tmp_path: Path) -> None:
    stage, _agents = make(tmp_path)
    async with stage.run() as pilot:
        await write(pilot, "/rev")
        assert str(stage.main.popup.options[0].prompt).startswith("/review ")
        stage.main.prompt.reset()
        names = [command.name for command in stage.main.controller.commands]
        assert names[-3:] == ["review", "branch", "skill:pdf"]
        assert names.count("help") == 1
        assert find("branch", stage.main.controller.commands).name == "branch"
        await enter(pilot, "/help")
        assert isinstance(stage.app.screen, HelpScreen)
        await write(pilot, "review")
        assert "/review [BRANCH]" in screen_text(stage)


async def test_a_skill_is_used_by_the_name_that_codex_gives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, agents = make(tmp_path)
    begun = list[tuple[str, str]]()

    def begin(name: str, arguments: str = "") -> None:
        begun.append((name, arguments))

    async with stage.run() as pilot:
        monkeypatch.setattr(stage.main.controller, "begin", begin)
        await enter(pilot, "$pdf fill it in")
        assert begun == [("skill:pdf", "fill it in")]
        await enter(pilot, "$HOME is wrong")
        await until(lambda: agents[0].sent, pilot)
        assert begun == [("skill:pdf", "fill it in")]


async def test_one_is_sent_filled_in_with_the_model_and_agent_it_wants(tmp_path: Path) -> None:
    stage, agents = make(tmp_path)
    async with stage.run() as pilot:
        await enter(pilot, "/review main branch")
        await until(lambda: agents[0].sent, pilot)
        [(parts, is_later)] = agents[0].sent
        assert [part.text for part in parts if isinstance(part, TextPart)] == [
            "Review it with @x.md.\n\nmain branch"
        ]
        assert not is_later
        assert (agents[0].model, agents[0].mode) == ("openai/x", "reviewer")
        told = "Not attached, there is no such file: x.md."
        await until(lambda: told in stage.toasts, pilot)
        await enter(pilot, "/fresh")
        await until(lambda: len(agents[0].sent) == 2, pilot)
        await enter(pilot, "/revview")
        await until(lambda: "Did you mean /review" in str(stage.main.notice.render()), pilot)


async def test_agent_changes_to_another_kind_asks_which_and_lists_them(tmp_path: Path) -> None:
    stage, agents = make(tmp_path)
    async with stage.run() as pilot:
        await enter(pilot, "/agent")
        await until(lambda: "● build" in screen_text(stage), pilot)
        await pilot.press("down", "enter")
        await until(lambda: stage.app.screen is stage.main and agents[0].mode == "reviewer", pilot)
        assert stage.main.status.mode == "reviewer"
        await enter(pilot, "/agent build")
        assert stage.main.status.mode == agents[0].mode == "build"
        await enter(pilot, "/agent nobody")
        assert "Available: build, reviewer." in str(stage.main.notice.render())


async def test_a_style_is_chosen_by_name_and_given_up(tmp_path: Path) -> None:
    stage, agents = make(tmp_path)
    async with stage.run() as pilot:
        await enter(pilot, "/style")
        notice = stage.main.notice
        await until(lambda: "There are no output styles yet" in str(notice.render()), pilot)
        agents[0].ports.knowledge.specs = (AgentSpec("short", "few", "primary", is_style=True),)
        await enter(pilot, "/style short")
        await until(lambda: stage.main.status.mode == agents[0].mode == "short", pilot)
        await enter(pilot, "/style nobody")
        await until(lambda: "Available: default, short." in str(notice.render()), pilot)
        await enter(pilot, "/style default")
        await until(lambda: agents[0].mode == "build", pilot)


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("agent", "● build"),
        ("skills", "The agent loads a skill"),
        ("tools", "Built in:"),
        ("mcp", "No servers."),
    ],
)
async def test_what_the_agent_works_with_is_one_page(
    tmp_path: Path, command: str, first: str
) -> None:
    stage, _agents = make(tmp_path)
    async with stage.run((80, 50)) as pilot:
        await enter(pilot, f"/{command}")
        await until(lambda: isinstance(stage.app.screen, EquipmentScreen), pilot)
        await until(
            lambda: str(stage.app.screen.query_one("#about").render()).startswith(first), pilot
        )  # type: ignore[attr-defined]
        shown = screen_text(stage)
        assert "reads and fills in PDFs" in shown
        assert "look at the change" not in shown
