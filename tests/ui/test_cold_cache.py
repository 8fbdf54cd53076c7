"""A long conversation that the provider has forgotten is told of before it is paid for, once for each time it cools."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import FixedDirectory, make_agent
from tests.support.real_stage import SUMMARY, RealStage, real_stage
from tests.support.scripted_client import Reply, ScriptedClient
from tests.support.ui_app import Clock, press, until
from tui_agent.context.request import ModelRequest
from tui_agent.context.settings import CacheSettings, CompactionSettings, ContextSettings
from tui_agent.model.catalog import Prices
from tui_agent.session.entries import Usage
from tui_agent.ui.screens.compact import CompactScreen
from tui_agent.ui.screens.dialogs import ChoiceScreen

CACHED = Usage(input=300, cache_read=2_800, output=20)
"""Few enough tokens to be believed for the few words that are sent."""
LONG = Usage(input=100, cache_read=80_000, output=10)
FORGOTTEN = "The prompt cache has expired"
OFFER = "The prompt cache expires within a minute: compacting now"


def a_stage(
    tmp_path: Path, clock: Clock, *, usage: Usage = CACHED, least: int = 2_000
) -> RealStage:
    (tmp_path / "stage").mkdir()
    return real_stage(
        tmp_path,
        partial(reply, usage=usage),
        services={"clock": clock, "cache_miss_cost": lambda _model, tokens: tokens * 3e-6},
        **timed(clock, least=least),
    )


def reply(request: ModelRequest, *, usage: Usage = CACHED) -> Reply:
    return Reply("Done.", usage=usage) if request.tools else Reply(SUMMARY)


def timed(clock: Clock, *, least: int = 2_000) -> dict[str, Any]:
    """Return how an agent is made that lives by a clock and warns from so many tokens on."""
    return {
        "clock": lambda: int(clock.now * 1000),
        "session_clock": lambda: int(clock.now * 1000),
        "settings": ContextSettings(
            cache=CacheSettings(warn_tokens=least),
            compaction=CompactionSettings(keep_recent=100, summary_share=0.005),
        ),
        "window": 100_000,
    }


async def test_the_next_key_after_a_pause_says_what_the_next_request_reads_anew(
    tmp_path: Path,
) -> None:
    clock = Clock()
    stage = a_stage(tmp_path, clock)
    async with stage.run() as pilot:
        await stage.say("Hello.", pilot)
        await pilot.press("h")
        assert FORGOTTEN not in stage.text()
        clock.now += 7 * 3600  # the machine slept: no timer has run
        await press(pilot, "e")
        assert (
            f"{FORGOTTEN}: the next request reads 3.1k tokens again, about $0.0094 more."
            in " ".join(stage.text().split())
        )
        assert "f4 compact first" in " ".join(stage.text().split())
        assert "cold" in stage.text()
        stage.main.notice.clear()
        await press(pilot, "y")
        assert FORGOTTEN not in stage.text()  # told once
        await press(pilot, "f4")
        assert isinstance(stage.screen, CompactScreen)


async def test_it_is_told_at_the_moment_the_cache_cools_and_when_it_does_so_again(
    tmp_path: Path,
) -> None:
    clock = Clock()
    stage = a_stage(tmp_path, clock)
    async with stage.run() as pilot:
        await stage.say("Hello.", pilot)
        clock.now += 299.4
        stage.main.refresh_facts()  # the gauge's timer is set anew, for a moment
        clock.now += 5
        await until(lambda: FORGOTTEN in stage.text(), pilot)
        await stage.say("Hello.", pilot)
        assert FORGOTTEN not in stage.text()
        clock.now += 400
        await press(pilot, "h")
        assert FORGOTTEN in stage.text()


async def test_compacting_is_offered_in_the_last_minute_and_once(tmp_path: Path) -> None:
    clock = Clock()
    stage = a_stage(tmp_path, clock)
    async with stage.run() as pilot:
        for _turn in range(4):
            await stage.say("word " * 600, pilot)
        clock.now += 200
        stage.main.controller.frontend.refresh_facts()
        stage.main.view.cold_cache.check()
        await pilot.pause()
        assert OFFER not in stage.text()
        clock.now += 50
        stage.main.view.cold_cache.check()
        await until(lambda: OFFER in " ".join(stage.text().split()), pilot)
        assert "cheaper." in stage.text()
        stage.main.notice.clear()
        stage.main.view.cold_cache.check()
        await pilot.pause()
        assert OFFER not in stage.text()
        clock.now += 60
        await press(pilot, "h")
        await until(lambda: FORGOTTEN in " ".join(stage.text().split()), pilot)


async def test_compacting_is_offered_in_each_session_though_entries_have_the_same_numbers(
    tmp_path: Path,
) -> None:
    clock = Clock()
    (tmp_path / "other").mkdir()
    other = make_agent(tmp_path / "other", ScriptedClient(reply), **timed(clock))
    stage = a_stage(tmp_path, clock)
    sessions = [other, stage.harness]
    stage.services.open_session = lambda _request: sessions[-1].session  # type: ignore[method-assign]
    stage.services.make_agent = lambda _session: sessions.pop().agent  # type: ignore[method-assign]
    async with stage.run() as pilot:
        for harness in (stage.harness, other):
            for _turn in range(4):
                await harness.say("word " * 600)
            clock.now += 250
            stage.main.view.cold_cache.check()
            await until(lambda: OFFER in " ".join(stage.text().split()), pilot)
            if sessions:
                await stage.main.controller.run("new")
                await until(lambda: stage.main.controller.agent is other.agent, pilot)
                stage.main.notice.clear()


@pytest.mark.parametrize(
    ("usage", "least"),
    [(Usage(input=300, cache_read=1_200), 2_000), (Usage(input=3_000), 2_000), (CACHED, 0)],
)
async def test_nothing_is_said_of_what_is_small_never_cached_or_not_wanted(
    tmp_path: Path, usage: Usage, least: int
) -> None:
    clock = Clock()
    stage = a_stage(tmp_path, clock, usage=usage, least=least)
    async with stage.run() as pilot:
        await stage.say("Hello.", pilot)
        clock.now += 3600
        await press(pilot, "h")
        assert FORGOTTEN not in stage.text()


async def test_a_miss_is_one_calm_line_with_its_price_and_its_cause_and_told_of_in_the_map(
    tmp_path: Path,
) -> None:
    stage = a_stage(tmp_path, Clock(), usage=Usage(input=300, cache_write=2_800))
    async with stage.run((120, 30)) as pilot:
        for text in ("one", "two"):
            await stage.say(text, pilot)
        line = "Cache missed: 3.1k of 3.1k tokens were read again, about $0.0093 more"
        assert f"{line}: nothing changed here" in " ".join(stage.text().split())
        await press(pilot, "ctrl+g")
        facts = [line.strip() for line in stage.text().splitlines() if "request: " in line]
        assert [line.partition(":")[0] for line in facts] == ["Next request", "Last request"]
        assert line in facts[1]


async def test_a_switch_asks_what_it_makes_the_provider_read_anew(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, Clock())
    async with stage.run() as pilot:
        await stage.say("Hello.", pilot)
        agent = stage.harness.agent
        before = agent.effort.chosen, agent.model
        for command, argument in (("effort", "high"), ("model", "test/other")):
            stage.main.controller.begin(command, argument)
            await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
            assert "3.1k tokens of this conversation are cached" in " ".join(stage.text().split())
            await pilot.press("down", "down", "enter")
            await until(lambda: not isinstance(stage.screen, ChoiceScreen), pilot)
            assert (agent.effort.chosen, agent.model) == before


async def test_the_cache_is_pinged_while_that_pays_and_then_compacting_is_offered(
    tmp_path: Path,
) -> None:
    clock = Clock()
    (tmp_path / "stage").mkdir()
    stage = real_stage(
        tmp_path,
        lambda request: Reply(
            "Done.", usage=Usage(cache_read=80_000, output=1) if request.ping else LONG, cost=0.024
        ),
        services={"clock": clock, "cache_miss_cost": lambda _model, tokens: tokens * 3e-6},
        clock=lambda: int(clock.now * 1000),
        session_clock=lambda: int(clock.now * 1000),
        settings=ContextSettings(
            cache=CacheSettings(warn_tokens=2_000, keep_warm=True),
            compaction=CompactionSettings(keep_recent=100, summary_share=0.005),
        ),
        directory=FixedDirectory(100_000, prices=(Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6),)),
    )
    async with stage.run((120, 100)) as pilot:
        for _turn in range(4):
            await stage.say("word " * 600, pilot)
        for spent in ("$0.02", "$0.05"):
            clock.now += 250
            stage.main.view.cold_cache.check()
            await stage.until_text(f"kept warm {spent}", pilot)
            assert OFFER not in " ".join(stage.text().split())
        assert "kept warm $0.05" in stage.text()
        clock.now += 250
        stage.main.view.cold_cache.check()
        await until(lambda: OFFER in " ".join(stage.text().split()), pilot)
        assert sum(request.ping for request in stage.client.requests) == 2
        stage.main.controller.begin("status")
        await until(lambda: "Pings that kept" in stage.text(), pilot)
        said = stage.text()
        assert said.count("prompt cache was about to expire (cache.keep_warm)") == 2
        assert "keeping the cache warm" in said
        assert "a ping is" in said
