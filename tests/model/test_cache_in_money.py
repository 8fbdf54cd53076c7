"""What a provider's cache held, missed and cost is told alike of every format, in words and as JSON."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.agents import FixedDirectory, make_agent
from tests.support.model_client import Provider
from tests.support.model_server import ModelServer, Turn
from tui_agent.app.controller import Controller
from tui_agent.app.session_reports import cost_json, cost_lines
from tui_agent.app.status_commands import look_up_spending
from tui_agent.context.settings import CacheSettings, ContextSettings
from tui_agent.model.catalog import Catalog
from tui_agent.model.client import ProviderClient
from tui_agent.session.entries import ContextEditEntry

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROMPT = 6_000
WHOLE = {"input": PROMPT, "output": 10}
CACHED = {"input": 100, "cache_read": PROMPT, "output": 10}
MISSED = PROMPT + 100
REREAD = {"input": MISSED, "output": 10}


async def test_hits_misses_and_their_causes_add_up(
    tmp_path: Path, session_client: ProviderClient, session_server: ModelServer, provider: Provider
) -> None:
    # Masked text, a pause, no reason known, and again no reason on a branch that was left.
    usages = [WHOLE, CACHED, REREAD, CACHED, REREAD, CACHED, REREAD, CACHED]
    session_server.play(*(Turn("Done.", usage=usage) for usage in usages))
    clock = SimpleNamespace(now=1_700_000_000_000)
    harness = make_agent(
        tmp_path, session_client, model=provider.model, directory=FixedDirectory(100_000),
        clock=lambda: clock.now, session_clock=lambda: clock.now,
        settings=ContextSettings(cache=CacheSettings(warn_tokens=0)),
    )  # fmt: skip
    session = harness.session
    await harness.say("one")
    await harness.say("two")
    masked = next(entry for entry in harness.path() if entry.kind == "user")
    session.append(ContextEditEntry(target=masked.id, action="mask"))
    await harness.say("three")
    await harness.say("four")
    fork = session.leaf
    clock.now += 400_000
    await harness.say("five")
    await harness.say("six")
    await harness.say("seven")
    session.move(fork)
    harness.agent.context.follow_path()
    await harness.say("eight")
    info = Catalog().info(provider.model)
    services = SimpleNamespace(
        store=harness.store,
        price=lambda model, usage: Catalog().info(model).cost(usage),
        cache_miss_cost=lambda model, tokens: Catalog().info(model).cache_miss_cost(tokens),
    )
    controller = cast(
        "Controller", SimpleNamespace(services=services, clock=lambda: clock.now / 1e3)
    )
    found, names = await look_up_spending(controller, harness.agent)
    causes = {
        "the context was edited": 1,
        "the prompt cache had expired": 1,
        "nothing changed here, and the provider gave no reason": 1,
    }
    told: dict[str, Any] = json.loads(cost_json(found))
    misses = told["cache_misses"]
    assert {why: missed["requests"] for why, missed in misses.items()} == causes
    extra = info.cache_miss_cost(MISSED)
    assert extra
    for missed in misses.values():
        assert missed["tokens"] == MISSED
        assert missed["cost"] == pytest.approx(extra)
    assert told["total"]["cached"] == 4 * PROMPT
    assert told["total"]["cost"] == pytest.approx(sum(row["cost"] for row in told["requests"]))
    said = "\n".join(cost_lines(found, names))
    assert all(why in said for why in causes)
    assert said.count("% of 6.1k cached") == 4
