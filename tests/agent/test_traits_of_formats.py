"""What the format a model is spoken to in changes of its requests: images in results, reasoning, the cache's hour."""

from collections.abc import Iterator
from pathlib import Path

from tests.support.agents import make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.context.projection import ModelTraits
from tui_agent.model.catalog import Catalog
from tui_agent.model.directory import CatalogDirectory
from tui_agent.model.route import Router
from tui_agent.session.entries import Usage

CLAUDE = "anthropic/claude-opus-5-5"
MINUTE = 60_000


def directory() -> CatalogDirectory:
    catalog = Catalog()
    return CatalogDirectory(catalog, None, wire_of=Router(catalog, {"ANTHROPIC_API_KEY": "x"}).wire)


def formed(model: str) -> tuple[bool, bool, bool]:
    traits: ModelTraits = directory().traits(model)
    return traits.images_in_results, traits.bound_reasoning, traits.hour_cache


def test_each_format_takes_what_it_has_a_place_for() -> None:
    assert formed(CLAUDE) == (True, True, True)
    assert formed("anthropic/claude-sonnet-4-5") == (True, False, True)
    assert formed("bedrock/anthropic.claude-opus-5-5") == (False, False, False)
    assert formed("openai/gpt-4o") == (False, False, False)


async def test_after_a_pause_the_cache_is_asked_to_keep_for_an_hour(tmp_path: Path) -> None:
    now = 1_700_000_000_000

    def clock() -> int:
        return now

    client = ScriptedClient([Reply("Yes.", usage=Usage(input=50_000, output=10))])
    harness = make_agent(tmp_path, client, model=CLAUDE, directory=directory(), clock=clock, session_clock=clock)
    asked: list[str] = []
    for minutes in after(1, 20, 1, 30):
        now += minutes * MINUTE
        was_warm = harness.agent.context.cache_state().warm
        await harness.say("Go on.")
        asked.append(f"{client.requests[-1].cache_ttl} {'warm' if was_warm else 'cold'}")
    assert asked == ["5m cold", "5m warm", "1h cold", "1h warm", "1h warm"]


def after(*minutes: int) -> Iterator[int]:
    """Yield how long each message waits, the first not at all."""
    yield 0
    yield from minutes
