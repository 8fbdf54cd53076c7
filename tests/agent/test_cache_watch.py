"""What the provider's cache missed is noticed after the answer, with its cause; what is expected is not told."""

from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.events import CacheMissed, ToolFinished
from tui_agent.context.cache import BreakCause
from tui_agent.context.settings import CacheSettings, ContextSettings
from tui_agent.session.effort import Effort
from tui_agent.session.entries import Usage

LEAST = ContextSettings(cache=CacheSettings(warn_tokens=10_000))
FIRST = Usage(input=500, cache_write=60_000)
WARM = Usage(input=200, cache_read=60_500, output=20)
MISS = Usage(input=200, cache_write=60_700, output=20)


class Clock:
    """Milliseconds since the epoch; a test lets them pass."""

    def __init__(self) -> None:
        self.now = 1_790_000_000_000

    def __call__(self) -> int:
        return self.now


def agent(tmp_path: Path, *usages: Usage, settings: ContextSettings = LEAST) -> Harness:
    replies = [Reply(f"Answer {number}.", usage=usage) for number, usage in enumerate(usages)]
    return make_agent(tmp_path, ScriptedClient(replies), settings=settings)


async def test_a_miss_that_nothing_here_explains_is_told(tmp_path: Path) -> None:
    harness = agent(tmp_path, FIRST, WARM, MISS)
    for text in ("one", "two", "three"):
        await harness.say(text)
    assert harness.of(CacheMissed) == [CacheMissed(60_700, 60_700, "test/model", None)]
    assert harness.agent.context.watch.miss is not None
    assert harness.agent.context.watch.miss.cause is None


async def test_the_next_hit_takes_the_miss_away_and_hits_say_nothing(tmp_path: Path) -> None:
    harness = agent(tmp_path, FIRST, MISS, WARM)
    for text in ("one", "two"):
        await harness.say(text)
    assert harness.agent.context.watch.miss is not None
    await harness.say("three")
    assert harness.agent.context.watch.miss is None
    assert len(harness.of(CacheMissed)) == 1


@pytest.mark.parametrize(("least", "told"), [(0, 0), (61_000, 0), (60_000, 1)])
async def test_a_setting_says_from_when_on_it_is_worth_a_word(tmp_path: Path, least: int, told: int) -> None:
    harness = agent(tmp_path, FIRST, MISS, settings=ContextSettings(cache=CacheSettings(warn_tokens=least)))
    for text in ("one", "two"):
        await harness.say(text)
    assert len(harness.of(CacheMissed)) == told
    assert harness.agent.context.watch.miss is not None  # the context map tells anyway


async def test_what_broke_the_prefix_is_named(tmp_path: Path) -> None:
    harness = agent(tmp_path, FIRST, WARM, MISS)
    for text in ("one", "two"):
        await harness.say(text)
    user = next(entry.id for entry in harness.path() if entry.kind == "user")
    harness.agent.edit_context(user, "mask")
    await harness.say("three")
    assert [event.cause for event in harness.of(CacheMissed)] == [BreakCause.EDIT]
    miss = harness.agent.context.watch.miss
    assert miss is not None
    assert miss.entry_id == next(entry.id for entry in harness.path() if entry.kind == "context_edit")


async def test_another_model_is_no_surprise(tmp_path: Path) -> None:
    harness = agent(tmp_path, FIRST, WARM, MISS)
    for text in ("one", "two"):
        await harness.say(text)
    harness.agent.change_model("test/other")
    await harness.say("three")
    assert harness.of(CacheMissed) == []


async def test_another_effort_is_no_surprise_and_the_map_names_it(tmp_path: Path) -> None:
    harness = agent(tmp_path, FIRST, WARM, MISS)
    for text in ("one", "two"):
        await harness.say(text)
    harness.agent.change_effort(Effort.HIGH)
    await harness.say("three")
    assert harness.of(CacheMissed) == []
    miss = harness.agent.context.watch.miss
    assert miss is not None
    assert miss.cause is BreakCause.EFFORT


async def test_a_cache_that_cooled_before_the_message_is_no_surprise_but_one_that_cooled_in_a_run_is(
    tmp_path: Path,
) -> None:
    clock = Clock()
    slow = Reply("Wait.", calls=(Call("bash", '{"command": "true"}'),), usage=WARM)
    script = [Reply("One.", usage=FIRST), slow, Reply("Done.", usage=MISS), Reply("Late.", usage=MISS)]
    harness = make_agent(tmp_path, ScriptedClient(script), settings=LEAST, clock=clock, session_clock=clock)
    await harness.say("one")

    def pass_time(event: object) -> None:
        if isinstance(event, ToolFinished):
            clock.now += 400_000

    unsubscribe = harness.agent.subscribe(pass_time)
    await harness.say("two")
    unsubscribe()
    assert [event.cause for event in harness.of(CacheMissed)] == [BreakCause.COLD]
    clock.now += 400_000
    await harness.say("three")
    assert len(harness.of(CacheMissed)) == 1
    miss = harness.agent.context.watch.miss
    assert miss is not None
    assert miss.cause is BreakCause.COLD
