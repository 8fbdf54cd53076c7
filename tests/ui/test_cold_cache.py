"""A long conversation that the provider has forgotten is told of before it is paid for, once for each time it cools."""

from pathlib import Path
from typing import Any

from tests.support.real_stage import SUMMARY, RealStage, real_stage
from tests.support.scripted_client import Reply
from tests.support.ui_app import NOW, press, until
from tui_agent.context.settings import CacheSettings, ContextSettings
from tui_agent.session.entries import Usage
from tui_agent.ui.screens.compact import CompactScreen
from tui_agent.ui.screens.dialogs import ChoiceScreen

CACHED = Usage(input=300, cache_read=2_800, output=20)
"""Few enough tokens to be believed for the few words that are sent."""
FORGOTTEN = "The provider has forgotten this conversation"


class Clock:
    """Seconds and milliseconds since the epoch; a test lets them pass."""

    def __init__(self) -> None:
        self.now = NOW

    def seconds(self) -> float:
        return self.now

    def milliseconds(self) -> int:
        return int(self.now * 1000)


def a_stage(
    tmp_path: Path,
    clock: Clock,
    *,
    usage: Usage = CACHED,
    least: int = 2_000,
    text: str = "Done.",
    window: int = 100_000,
) -> RealStage:
    (tmp_path / "stage").mkdir()
    services: dict[str, Any] = {"clock": clock.seconds, "reread_cost": lambda _model, tokens: tokens * 3e-6}
    settings = ContextSettings(cache=CacheSettings(warn_tokens=least))
    return real_stage(
        tmp_path,
        lambda request: Reply(text, usage=usage) if request.tools else Reply(SUMMARY),
        services=services,
        clock=clock.milliseconds,
        session_clock=clock.milliseconds,
        settings=settings,
        window=window,
    )


async def test_the_next_key_after_a_pause_says_what_the_next_request_reads_anew(tmp_path: Path) -> None:
    clock = Clock()
    stage = a_stage(tmp_path, clock)
    async with stage.run() as pilot:
        await stage.say("Hello.", pilot)
        await pilot.press("h")
        assert FORGOTTEN not in stage.text()
        clock.now += 7 * 3600  # the machine slept: no timer has run
        await press(pilot, "e")
        assert f"{FORGOTTEN}: the next request reads 3.1k tokens anew, about $0.0094 more." in " ".join(
            stage.text().split()
        )
        assert "f4 compact first" in stage.text()
        assert "cold" in stage.text()
        stage.main.notice.clear()
        await press(pilot, "y")
        assert FORGOTTEN not in stage.text()  # told once
        await press(pilot, "f4")
        assert isinstance(stage.screen, CompactScreen)


async def test_it_is_told_again_when_the_cache_cools_again(tmp_path: Path) -> None:
    clock = Clock()
    stage = a_stage(tmp_path, clock)
    async with stage.run() as pilot:
        for _ in range(2):
            await stage.say("Hello.", pilot)
            assert FORGOTTEN not in stage.text()
            clock.now += 400
            await press(pilot, "h")
            assert FORGOTTEN in stage.text()


async def test_it_is_told_at_the_moment_the_cache_cools(tmp_path: Path) -> None:
    clock = Clock()
    stage = a_stage(tmp_path, clock)
    async with stage.run() as pilot:
        await stage.say("Hello.", pilot)
        clock.now += 299.4
        stage.main.refresh_facts()  # the gauge's timer is set anew, for a moment
        clock.now += 5
        await until(lambda: FORGOTTEN in stage.text(), pilot)


async def test_nothing_is_said_of_what_is_small_never_cached_or_not_wanted(tmp_path: Path) -> None:
    cases = [
        {"usage": Usage(input=300, cache_read=1_200)},
        {"usage": Usage(input=3_000)},
        {"least": 0},
    ]
    for number, case in enumerate(cases):
        clock = Clock()
        place = tmp_path / str(number)
        place.mkdir()
        stage = a_stage(place, clock, **case)  # type: ignore[arg-type]
        async with stage.run() as pilot:
            await stage.say("Hello.", pilot)
            clock.now += 3600
            await press(pilot, "h")
            assert FORGOTTEN not in stage.text()


async def test_a_miss_is_one_calm_line_with_its_price_and_its_cause_and_told_of_in_the_map(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, Clock(), usage=Usage(input=300, cache_write=2_800))
    async with stage.run((120, 30)) as pilot:
        for text in ("one", "two"):
            await stage.say(text, pilot)
        line = "Cache missed: 3.1k of 3.1k tokens were read anew, ~$0.0093 more"
        assert f"{line}: nothing changed here" in " ".join(stage.text().split())
        await press(pilot, "ctrl+g")
        facts = [line.strip() for line in stage.text().splitlines() if "request: " in line]
        assert [line.partition(":")[0] for line in facts] == ["Next request", "Last request"]
        assert line in facts[1]


async def test_a_switch_asks_what_it_makes_the_provider_read_anew(tmp_path: Path) -> None:
    stage = a_stage(tmp_path, Clock())
    async with stage.run() as pilot:
        await stage.say("Hello.", pilot)
        for command, before in (("effort", stage.harness.agent.effort.chosen), ("model", stage.harness.agent.model)):
            argument = "high" if command == "effort" else "test/other"
            stage.main.controller.begin(command, argument)
            await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
            assert "3.1k tokens of this conversation in its cache" in " ".join(stage.text().split())
            await pilot.press("down", "down", "enter")
            await until(lambda: not isinstance(stage.screen, ChoiceScreen), pilot)
            now = stage.harness.agent.effort.chosen if command == "effort" else stage.harness.agent.model
            assert now == before
