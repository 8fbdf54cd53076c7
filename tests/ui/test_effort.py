"""How much the model thinks, on the screen: picked or typed, shown beside the model, told where it costs or fails."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.real_stage import RealStage, real_stage
from tests.support.scripted_client import Reply
from tests.support.ui_app import press, send, until
from tui_agent.context.settings import CacheSettings, ContextSettings
from tui_agent.session.effort import Effort
from tui_agent.session.entries import EffortChangeEntry, Usage
from tui_agent.ui.screens.dialogs import ChoiceScreen


def a_stage(tmp_path: Path, *levels: Effort, reply: Reply | None = None, **agent: Any) -> RealStage:
    services = {"reread_cost": lambda _model, _tokens: 0.25}
    stage = real_stage(tmp_path, [reply or Reply("An answer.")], services=services, **agent)
    stage.harness.directory.efforts["test/model"] = levels
    return stage


def chosen(stage: RealStage) -> list[Effort | None]:
    return [entry.effort for entry in stage.harness.path() if isinstance(entry, EffortChangeEntry)]


async def test_the_key_offers_what_the_model_has_and_what_is_picked_stands_beside_it(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, Effort.LOW, Effort.HIGH)
    async with stage.run() as pilot:
        await pilot.press("f9")
        await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
        assert [part in stage.text() for part in ("● default", "low ", "medium ")] == [True, True, False]
        await pilot.press("down", "down", "enter")
        await until(lambda: not isinstance(stage.screen, ChoiceScreen), pilot)
        assert stage.harness.agent.effort.level is Effort.HIGH
        await stage.until_text("model (high)", pilot)
        assert "Effort: high" in stage.text()
        await pilot.press("f9")
        await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
        assert "● high" in stage.text()
        await press(pilot, "escape")
        assert chosen(stage) == [Effort.HIGH]


@pytest.mark.parametrize(
    ("typed", "levels", "told", "beside"),
    [
        ("much", tuple(Effort), "There is no effort “much”; there are default, off, minimal,", None),
        ("max", (Effort.LOW, Effort.HIGH), "test/model has no effort max: it is asked for high.", "high"),
        ("xhigh", tuple(Effort), "Effort: max", "max"),
        ("low", (), "test/model can't be told how much to think: low has no effect.", None),
    ],
)
async def test_what_was_typed_is_taken_or_answered(
    tmp_path: Path, typed: str, levels: tuple[Effort, ...], told: str, beside: str | None
) -> None:
    stage = a_stage(tmp_path, *levels)
    async with stage.run((120, 30)) as pilot:
        await send(pilot, f"/effort {typed}")
        await until(lambda: told in " ".join(stage.text().split()), pilot)
        last = stage.text().splitlines()[-1]
        assert ("model (" in last, f"model ({beside})" in last) == (beside is not None, beside is not None)


async def test_a_model_without_levels_offers_none(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("f9")
        await stage.until_text("model can't be told how much to think.", pilot)
        assert not isinstance(stage.screen, ChoiceScreen)


async def test_what_a_change_may_cost_is_told_where_the_provider_remembers_enough(tmp_path: Path) -> None:
    reply = Reply("An answer.", usage=Usage(input=100, output=10, cache_write=1_500))
    low = ContextSettings(cache=CacheSettings(warn_tokens=1_000))
    stage = a_stage(tmp_path, *Effort, reply=reply, settings=low)
    async with stage.run() as pilot:
        await stage.say("go", pilot)
        await send(pilot, "/effort high")
        await stage.until_text("Effort high?", pilot)
        await pilot.press("enter")
        await stage.until_text("The provider may read 1", pilot)
        assert "about $0.25 more" in " ".join(stage.text().split())
