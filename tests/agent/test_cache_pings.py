"""A cache about to be forgotten is pinged where that is expected to save money, and nowhere else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.agents import FixedDirectory, Harness, make_agent
from tests.support.scripted_client import Reply
from tui_agent.agent.cache_pings import MOST_PINGS, USUAL_CHANCE, chance_of_return
from tui_agent.agent.run_budget import RunBudget
from tui_agent.context.request import ModelRequest, request_bytes
from tui_agent.context.settings import CacheSettings, ContextSettings
from tui_agent.model.catalog import Prices
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import Usage
from tui_agent.session.records import Purpose

PRICES = Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6, cache_write_hour=6e-6)
LONG = Usage(input=100, cache_read=80_000, output=10)
PING = Usage(cache_read=80_000, output=1)
ON = CacheSettings(keep_warm=True)


class Clock:
    """Milliseconds since the epoch."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += round(seconds * 1_000)


class Idle(Harness):
    """A session after its first answer, 4 minutes ago."""

    clock: Clock

    @property
    def requests(self) -> Sequence[ModelRequest]:
        found: Sequence[ModelRequest] = self.client.requests
        return found

    async def ping(self) -> bool:
        return await self.agent.cache_pings.ping()

    def paid(self) -> list[float]:
        calls = self.store.side_costs(self.session.id)
        return [call.cost for call in calls if call.purpose is Purpose.PINGS]


async def idle(
    tmp_path: Path,
    *,
    ping: Reply | None = None,
    prices: tuple[Prices, ...] = (PRICES,),
    cache: CacheSettings = ON,
    usage: Usage = LONG,
    **ports: Any,
) -> Idle:
    clock = Clock()
    answer = ping or Reply(".", usage=PING, cost=0.024)
    made = make_agent(
        tmp_path,
        lambda request: answer if request.ping else Reply("Done.", usage=usage),
        window=200_000,
        directory=FixedDirectory(200_000, prices=prices),
        clock=clock,
        session_clock=clock,
        settings=ContextSettings(cache=cache),
        **ports,
    )
    found = Idle(**vars(made))
    found.clock = clock
    await found.say("Hello.")
    clock.wait(240)
    return found


async def test_a_ping_is_the_last_request_and_leaves_nothing_but_its_price(tmp_path: Path) -> None:
    session = await idle(tmp_path)
    before = session.kinds()
    assert await session.ping()
    sent, ping = session.requests
    assert request_bytes(ping) == request_bytes(sent)
    assert (ping.tool_choice, ping.effort, ping.session) == (
        sent.tool_choice,
        sent.effort,
        sent.session,
    )
    assert ping.answer_tokens == 1
    assert session.kinds() == before
    assert session.paid() == [0.024]
    assert session.agent.context.cache_state().seconds_left == 300
    session.clock.wait(200)
    await session.say("Go on.")
    assert request_bytes(session.requests[-1]).startswith(request_bytes(ping))
    assert session.agent.cache_pings.spent() is None


async def test_pings_end_in_a_long_pause_and_begin_again_in_the_next(tmp_path: Path) -> None:
    session = await idle(tmp_path)
    for _ping in range(MOST_PINGS):
        assert await session.ping()
        session.clock.wait(240)
    assert not await session.ping()
    assert len(session.paid()) == MOST_PINGS
    await session.say("Go on.")
    session.clock.wait(240)
    assert await session.ping()


@pytest.mark.parametrize(
    "given",
    [
        {"cache": CacheSettings()},
        {"prices": ()},
        {"prices": (Prices(0, 0, 0, 0),)},
        {"prices": (Prices(3e-6, 15e-6, 3e-6, 3e-6),)},
        {"usage": Usage(input=80_100, output=10)},
        {"usage": Usage(input=100, cache_read=2_000, output=10)},
        {"budget": RunBudget(session=0.01)},
    ],
    ids=["off", "no price", "free", "no discount", "no cache", "small", "over the budget"],
)
async def test_nothing_is_pinged_where_it_can_save_nothing(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    session = await idle(tmp_path, **given)
    assert not await session.ping()
    assert len(session.requests) == 1


async def test_nothing_is_pinged_that_the_next_request_does_not_begin_with(tmp_path: Path) -> None:
    session = await idle(tmp_path)
    session.session.move(session.path()[0].id)
    assert not await session.ping()
    assert len(session.requests) == 1


async def test_whoever_is_always_away_for_hours_is_not_waited_for(tmp_path: Path) -> None:
    session = await idle(tmp_path)
    for _pause in range(12):
        session.clock.wait(4 * 3_600)
        await session.say("Good morning.")
    session.clock.wait(240)
    assert not await session.ping()


@pytest.mark.parametrize(
    ("ping", "said", "paid"),
    [
        (
            Reply(error=ModelError(ErrorKind.OVERLOADED, "Overloaded.")),
            "Can't keep the prompt cache warm",
            [],
        ),
        (Reply(".", usage=Usage(cache_write=80_000), cost=0.3), "was gone before the ping", [0.3]),
    ],
)
async def test_a_ping_in_vain_is_said_and_the_last_of_its_pause(
    tmp_path: Path, ping: Reply, said: str, paid: list[float]
) -> None:
    session = await idle(tmp_path, ping=ping)
    await session.ping()
    session.clock.wait(200)
    assert not await session.ping()
    assert len(session.requests) == 2
    assert sum(said in notice for notice in session.notices()) == 1
    assert session.paid() == paid


async def test_a_provider_that_goes_on_writing_is_cut_off(tmp_path: Path) -> None:
    session = await idle(tmp_path, ping=Reply("word " * 100, hang=True))
    assert await session.ping()
    [paid] = session.paid()
    assert paid == pytest.approx(80_100 * 0.3e-6 + 15e-6)


@given(st.lists(st.floats(0, 1e5), max_size=30), st.floats(1, 1e4), st.floats(0, 300))
def test_the_chance_lies_between_what_is_usual_and_what_was_seen(
    pauses: list[float], away: float, left: float
) -> None:
    cold = away + left
    until = away + 300
    as_long = [pause for pause in pauses if pause > away]
    seen = sum(cold < pause <= until for pause in as_long) / max(1, len(as_long))
    chance = chance_of_return(pauses, away, cold, until)
    if not as_long:
        seen = USUAL_CHANCE
    least, most = sorted((seen, USUAL_CHANCE))
    assert least - 1e-9 <= chance <= most + 1e-9
