"""Changing the model in the middle of a conversation: what it comes to is said, what does not fit is asked about."""

import io
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.real_stage import SUMMARY, RealStage, real_stage, write_modules
from tests.support.scripted_client import Reply, ScriptedClient
from tests.support.ui_app import HOME, Stage, press, screen_text, send, until
from tui_agent.app.model_commands import use_model
from tui_agent.app.services import ModelRow
from tui_agent.config import ConfigError
from tui_agent.context.request import ModelRequest
from tui_agent.context.settings import CacheSettings, ContextSettings
from tui_agent.model.naming import NameStanding, NameVerdict
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    CompactionEntry,
    EffortChangeEntry,
    ModelChangeEntry,
    TextPart,
    Usage,
    UserEntry,
)
from tui_agent.session.session import Session
from tui_agent.ui.screens.dialogs import ChoiceScreen

TALK = "The redirect drops its query because the path was quoted before the query was known. " * 60


def a_stage(tmp_path: Path, *, small: int = 8_192, broken: bool = False) -> RealStage:
    (tmp_path / "stage").mkdir()
    write_modules(tmp_path)

    def script(request: ModelRequest) -> Reply:
        if not request.tools or "<length>" in request.messages[-1].text:
            return (
                Reply(error=ModelError(ErrorKind.NETWORK, "Nothing answers."))
                if broken
                else Reply(SUMMARY)
            )
        return Reply(TALK, usage=None)

    stage = real_stage(tmp_path, script)
    stage.harness.directory.windows["test/small"] = small
    return stage


async def test_the_gauge_is_right_before_the_first_message_to_another_model(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run() as pilot:
        await choose(stage, pilot)
        await until(lambda: stage.harness.agent.context_size().fixed > 1_000, pilot)


def summarisers(stage: RealStage) -> list[str]:
    return [request.model for request in stage.client.requests if not request.tools]


async def choose(stage: RealStage, pilot: Any) -> None:
    stage.main.controller.soon(use_model(stage.main.controller, "test/small"))
    asked = stage.harness.agent
    await until(
        lambda: isinstance(stage.screen, ChoiceScreen) or asked.model == "test/small", pilot
    )
    await pilot.pause()


def parts(turns: int) -> list[str]:
    return [f"Go on with part {turn}." for turn in range(turns)]


async def test_what_fits_is_switched_at_once_and_its_size_is_told(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, small=64_000)
    async with stage.run(after=parts(2)) as pilot:
        await choose(stage, pilot)
        assert stage.harness.agent.model == "test/small"
        told = " ".join(stage.text().split())
        assert "small: the next request takes ~" in told
        assert "of 64k (" in told
        assert "before, it was ~" in told
        assert stage.saved == {"model": "test/small"}


@pytest.mark.parametrize("said", [[], ["hello"]])
async def test_a_model_without_a_key_is_not_the_default_and_says_so(
    tmp_path: Path, said: list[str]
) -> None:
    (tmp_path / "stage").mkdir()
    row = ModelRow("test/small", "test", 64_000, None, None, (), has_key=False)
    stage = real_stage(tmp_path, [Reply("Hello.")], services={"models": lambda: (row,)})
    async with stage.run(after=said) as pilot:
        stage.main.controller.soon(use_model(stage.main.controller, "test/small"))
        await stage.until_text("has no API key and is used in this session only", pilot)
        assert stage.saved == {}


async def test_a_model_that_can_not_be_saved_is_used_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()

    def refuse(_key: str, _value: object) -> None:
        raise PermissionError(13, "Permission denied", "config.toml")

    stage = real_stage(tmp_path, [Reply("Hello.")], services={"save_setting": refuse})
    async with stage.run() as pilot:
        stage.main.controller.soon(use_model(stage.main.controller, "test/small"))
        said = "test/small is used in this session only. config.toml: Permission denied."
        await until(lambda: said in " ".join(stage.text().split()), pilot)
        assert stage.harness.agent.model == "test/small"


async def test_the_settings_are_read_again_before_a_model_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    written = ["test/small"]
    known: set[str] = set()

    def reread() -> tuple[str, ...]:
        if not written:
            raise ConfigError("config.toml has an error in line 3.")
        known.update(written)
        return ("models",)

    def judge(name: str) -> NameVerdict:
        standing = NameStanding.KNOWN if name in known else NameStanding.IMPOSSIBLE
        return NameVerdict(name, standing)

    services = {"reread_settings": reread, "judge_model": judge}
    stage = real_stage(tmp_path, [Reply("Hello.")], services=services)
    async with stage.run() as pilot:
        stage.main.controller.begin("model", "test/small")
        await until(lambda: stage.harness.agent.model == "test/small", pilot)
        written.clear()
        stage.main.controller.begin("model", "test/other")
        await stage.until_text("config.toml has an error in line 3.", pilot)
        assert stage.harness.agent.model == "test/small"


async def test_without_a_screen_what_does_not_fit_is_switched_and_says_so(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply(TALK, usage=None)]), answer=None)
    harness.directory.windows["test/small"] = 8_192
    for text in parts(8):
        await harness.say(text)
    err = io.StringIO()
    assert await run_headless(harness, "/model test/small", err=err) == 0
    assert harness.agent.model == "test/small"
    assert "Non-interactive run; assuming: Switch; clear old outputs and compact" in err.getvalue()


async def test_what_does_not_fit_can_be_compacted_by_the_model_that_can_read_it(
    tmp_path: Path,
) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=parts(8)) as pilot:
        await choose(stage, pilot)
        assert isinstance(stage.screen, ChoiceScreen)
        assert stage.harness.agent.model == "test/model"
        assert "does not fit small" in stage.text()
        await pilot.press("enter")
        await until(lambda: stage.harness.agent.model == "test/small", pilot)
        compaction = next(
            entry for entry in stage.harness.path() if isinstance(entry, CompactionEntry)
        )
        assert compaction.model == "test/model"
        assert set(summarisers(stage)) <= {"test/model"}
        size = stage.harness.agent.context_size()
        assert size.window == 8_192
        assert size.threshold is not None
        assert size.total < size.threshold


async def test_it_can_be_switched_anyway_or_left(tmp_path: Path) -> None:
    stage = a_stage(tmp_path)
    async with stage.run(after=parts(8)) as pilot:
        await choose(stage, pilot)
        await press(pilot, "escape")
        assert stage.harness.agent.model == "test/model"
        assert stage.saved == {}
        await choose(stage, pilot)
        await pilot.press("down", "enter")
        await until(lambda: stage.harness.agent.model == "test/small", pilot)
        assert stage.harness.agent.model == "test/small"
        await stage.say("And now?", pilot)
        size = stage.harness.agent.context_size()
        assert size.total < size.window


async def test_a_compaction_that_fails_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, broken=True)
    async with stage.run(after=parts(8)) as pilot:
        await choose(stage, pilot)
        await pilot.press("enter")
        await stage.until_text("Still using model:", pilot)
        assert stage.harness.agent.model == "test/model"
        assert not any(isinstance(entry, CompactionEntry) for entry in stage.harness.path())


def effort_stage(
    tmp_path: Path, *levels: Effort, reply: Reply | None = None, **agent: Any
) -> RealStage:
    services = {"cache_miss_cost": lambda _model, _tokens: 0.25}
    stage = real_stage(tmp_path, [reply or Reply("An answer.")], services=services, **agent)
    stage.harness.directory.efforts["test/model"] = levels
    return stage


def chosen(stage: RealStage) -> list[Effort | None]:
    return [entry.effort for entry in stage.harness.path() if isinstance(entry, EffortChangeEntry)]


async def test_the_key_offers_what_the_model_has_and_what_is_picked_stands_beside_it(
    tmp_path: Path,
) -> None:
    stage = effort_stage(tmp_path, Effort.LOW, Effort.HIGH)
    async with stage.run() as pilot:
        await pilot.press("f9")
        await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
        assert [part in stage.text() for part in ("● default", "low ", "medium ")] == [
            True,
            True,
            False,
        ]
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
        (
            "much",
            tuple(Effort),
            "There is no effort “much”. The levels are default, off, minimal,",
            None,
        ),
        (
            "max",
            (Effort.LOW, Effort.HIGH),
            "test/model has no effort level max, so high is used.",
            "high",
        ),
        (
            "none",
            tuple(Effort),
            "The level none is called off here. Effort off",
            "off",
        ),
        (
            "xhigh",
            (Effort.LOW, Effort.HIGH),
            "test/model has no effort level xhigh, so high is used.",
            "high",
        ),
        ("low", (), "test/model can't be told how much to think: low has no effect.", None),
    ],
)
async def test_what_was_typed_is_taken_or_answered(
    tmp_path: Path, typed: str, levels: tuple[Effort, ...], told: str, beside: str | None
) -> None:
    stage = effort_stage(tmp_path, *levels)
    async with stage.run((120, 30)) as pilot:
        await send(pilot, f"/effort {typed}")
        await until(lambda: told in " ".join(stage.text().split()), pilot)
        last = stage.text().splitlines()[-1]
        assert ("model (" in last, f"model ({beside})" in last) == (
            beside is not None,
            beside is not None,
        )


async def test_a_model_without_levels_offers_none(tmp_path: Path) -> None:
    stage = effort_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("f9")
        await stage.until_text("model has no effort levels.", pilot)
        assert not isinstance(stage.screen, ChoiceScreen)


async def test_a_key_goes_round_the_levels_of_the_model(tmp_path: Path) -> None:
    stage = effort_stage(tmp_path, Effort.HIGH, Effort.LOW)
    async with stage.run() as pilot:
        for level in ("low", "high"):
            await pilot.press("alt+t")
            await stage.until_text(f"model ({level})", pilot)
        await pilot.press("alt+t")
        await until(lambda: stage.harness.agent.effort.level is None, pilot)
        assert chosen(stage) == [Effort.LOW, Effort.HIGH, None]


async def test_a_step_that_would_change_nothing_is_left_out(tmp_path: Path) -> None:
    stage = effort_stage(tmp_path, Effort.LOW, Effort.HIGH)
    stage.harness.agent.ports.preset_effort = lambda _model: Effort.LOW
    async with stage.run() as pilot:
        assert stage.harness.agent.effort.level is Effort.LOW
        await pilot.press("alt+t")
        await stage.until_text("model (high)", pilot)
        await pilot.press("alt+t")
        await stage.until_text("model (low)", pilot)


async def test_the_key_for_the_next_level_says_that_there_is_none(tmp_path: Path) -> None:
    stage = effort_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("alt+t")
        await stage.until_text("model has no effort levels.", pilot)


async def test_the_key_for_the_next_level_says_that_there_is_no_other(tmp_path: Path) -> None:
    stage = effort_stage(tmp_path, Effort.LOW)
    stage.harness.agent.ports.preset_effort = lambda _model: Effort.LOW
    async with stage.run() as pilot:
        await pilot.press("alt+t")
        await stage.until_text("model has no other effort level.", pilot)


async def test_what_a_change_may_cost_is_told_where_the_provider_remembers_enough(
    tmp_path: Path,
) -> None:
    reply = Reply("An answer.", usage=Usage(input=100, output=10, cache_write=1_500))
    low = ContextSettings(cache=CacheSettings(warn_tokens=1_000))
    stage = effort_stage(tmp_path, *Effort, reply=reply, settings=low)
    async with stage.run() as pilot:
        await stage.say("go", pilot)
        await send(pilot, "/effort high")
        await stage.until_text("Use effort high?", pilot)
        await pilot.press("enter")
        await stage.until_text("The provider may read 1", pilot)
        assert "about $0.25 more" in " ".join(stage.text().split())


async def test_a_key_goes_round_the_models_used_lately(stage: Stage) -> None:
    haiku = "anthropic/claude-haiku-4-5"
    sonnet = "anthropic/claude-sonnet-4-5"
    for model in (haiku, sonnet, "openai/gpt-5-mini"):
        info = stage.store.create_session(HOME)
        other = Session(stage.store, info.id, estimate=lambda _entry: 1)
        other.append(UserEntry(parts=(TextPart(text="hello"),)))
        other.append(ModelChangeEntry(model=model))
    async with stage.run() as pilot:
        assert stage.agent.model == sonnet
        for model in (haiku, sonnet, haiku):
            await press(pilot, "shift+f2")
            await until(lambda wanted=model: stage.agent.model == wanted, pilot)
        assert "model" not in stage.saved, "in this session only"


async def test_without_another_model_the_key_says_so(stage: Stage) -> None:
    async with stage.run() as pilot:
        await press(pilot, "shift+f2")
        await until(lambda: "No other model was used recently" in screen_text(stage), pilot)


async def test_a_key_goes_back_to_the_model_used_before_in_this_session(stage: Stage) -> None:
    haiku = "anthropic/claude-haiku-4-5"
    sonnet = "anthropic/claude-sonnet-4-5"
    async with stage.run() as pilot:
        stage.agent.session.append(ModelChangeEntry(model=haiku))
        stage.agent.session.append(ModelChangeEntry(model=sonnet))
        for model in (haiku, sonnet):
            await press(pilot, "shift+f2")
            await until(lambda wanted=model: stage.agent.model == wanted, pilot)
