"""What the provider's cache missed is noticed after the answer, with its cause; what is expected is not told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply
from tui_agent.agent.agent import Agent
from tui_agent.agent.events import CacheMissed, ToolFinished
from tui_agent.context.cache import BreakCause
from tui_agent.context.settings import CacheSettings, ContextSettings
from tui_agent.session.effort import Effort
from tui_agent.session.entries import Usage

LEAST = ContextSettings(cache=CacheSettings(warn_tokens=10_000))
FIRST = Usage(input=500, cache_write=60_000)
WARM = Usage(input=200, cache_read=60_500, output=20)
MISS = Usage(input=200, cache_write=60_700, output=20)


def agent(tmp_path: Path, *usages: Usage, settings: ContextSettings = LEAST) -> Harness:
    replies = [Reply(f"Answer {number}.", usage=usage) for number, usage in enumerate(usages)]
    return make_agent(tmp_path, replies, settings=settings)


def cause_of_miss(harness: Harness) -> BreakCause | None:
    """Return why the last request missed the cache, which the context map tells in any case."""
    miss = harness.agent.context.watch.miss
    assert miss is not None
    return miss.cause


@pytest.mark.parametrize(("least", "told"), [(0, 0), (61_000, 0), (60_000, 1)])
async def test_a_miss_is_told_from_what_the_settings_say_on(
    tmp_path: Path, least: int, told: int
) -> None:
    harness = agent(
        tmp_path,
        FIRST,
        WARM,
        MISS,
        settings=ContextSettings(cache=CacheSettings(warn_tokens=least)),
    )
    for text in ("one", "two", "three"):
        await harness.say(text)
    assert harness.of(CacheMissed) == [CacheMissed(60_700, 60_700, "test/model", None)] * told
    assert cause_of_miss(harness) is None


@pytest.mark.parametrize(
    ("change", "cause", "told"),
    [
        (lambda agent: agent.edit_context(2, "mask"), BreakCause.EDIT, [BreakCause.EDIT]),
        (lambda agent: agent.change_model("test/other"), None, []),
        (lambda agent: agent.change_effort(Effort.HIGH), BreakCause.EFFORT, []),
    ],
    ids=["edit", "model", "effort"],
)
async def test_what_broke_the_prefix_is_named_and_told_where_it_is_a_surprise(
    tmp_path: Path,
    change: Callable[[Agent], None],
    cause: BreakCause | None,
    told: list[BreakCause],
) -> None:
    harness = agent(tmp_path, FIRST, WARM, MISS)
    await harness.say("one")
    await harness.say("two")
    change(harness.agent)
    changed = harness.session.leaf
    await harness.say("three")
    assert [event.cause for event in harness.of(CacheMissed)] == told
    if cause is not None:
        assert cause_of_miss(harness) is cause
    if cause is BreakCause.EDIT:
        assert harness.agent.context.watch.miss.entry_id == changed


async def test_a_cache_that_cooled_before_the_message_is_no_surprise_but_one_that_cooled_in_a_run_is(
    tmp_path: Path,
) -> None:
    now = [1_790_000_000_000]
    slow = Reply("Wait.", calls=(Call("bash", '{"command": "true"}'),), usage=WARM)
    script = [
        Reply("One.", usage=FIRST),
        slow,
        Reply("Done.", usage=MISS),
        Reply("Late.", usage=MISS),
    ]
    harness = make_agent(
        tmp_path, script, settings=LEAST, clock=lambda: now[0], session_clock=lambda: now[0]
    )
    await harness.say("one")

    def pass_time(event: object) -> None:
        if isinstance(event, ToolFinished):
            now[0] += 400_000

    unsubscribe = harness.agent.channel.subscribe(pass_time)
    await harness.say("two")
    unsubscribe()
    assert [event.cause for event in harness.of(CacheMissed)] == [BreakCause.COLD]
    now[0] += 400_000
    await harness.say("three")
    assert len(harness.of(CacheMissed)) == 1
    assert cause_of_miss(harness) is BreakCause.COLD
