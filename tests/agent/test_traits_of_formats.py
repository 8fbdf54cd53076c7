"""What a model's format, its server and its refusals tell of it changes its requests."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.list_server import ListServer
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.context.projection import ModelTraits
from tui_agent.model.catalog import Catalog
from tui_agent.model.directory import CatalogDirectory
from tui_agent.model.forms import ServerForm
from tui_agent.model.keys import Keys
from tui_agent.model.learnt import LearntFacts
from tui_agent.model.route import Router
from tui_agent.model.served import ServedModel
from tui_agent.model.settings import ModelSettings
from tui_agent.session.entries import Usage

CLAUDE = "anthropic/claude-opus-5-5"
MINUTE = 60_000


def directory() -> CatalogDirectory:
    catalog = Catalog()
    return CatalogDirectory(
        catalog, LearntFacts(), wire_of=Router(catalog, {"ANTHROPIC_API_KEY": "x"}).wire
    )


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
    harness = make_agent(
        tmp_path, client, model=CLAUDE, directory=directory(), clock=clock, session_clock=clock
    )
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


MODEL = "openai/gpt-4.1"


def learning(path: Path, url: str | None = None) -> CatalogDirectory:
    settings = {MODEL: ModelSettings(base_url=url)} if url else {}
    return CatalogDirectory(Catalog(settings), LearntFacts(path))


def test_what_one_gateway_taught_is_not_the_models_elsewhere(tmp_path: Path) -> None:
    learnt, gateway = tmp_path / "learnt.json", "https://name:word@llm.example.com/v1"
    learning(learnt, gateway).learn_window(MODEL, 8_192)
    facts = LearntFacts(learnt)
    facts.keep_form(
        f"{MODEL} at https://llm.example.com/v1", ServerForm(roles="alternating", pictures=False)
    )

    assert learning(learnt, gateway).limits(MODEL).window == 8_192
    assert learning(learnt, gateway).adaptations(MODEL) == [
        "consecutive messages of one role are joined",
        "no pictures",
    ]
    assert not learning(learnt, gateway).traits(MODEL).vision
    for elsewhere in (None, "https://other.example.com/v1"):
        assert learning(learnt, elsewhere).limits(MODEL).window > 100_000
        assert learning(learnt, elsewhere).adaptations(MODEL) == []
    assert "word" not in learnt.read_text()

    assert learning(learnt, gateway).forget_refusals(MODEL)
    assert learning(learnt, gateway).adaptations(MODEL) == []


def test_alternating_roles_learnt_before_there_were_forms_stay_learnt(tmp_path: Path) -> None:
    learnt = tmp_path / "learnt.json"
    learnt.write_text(json.dumps({"windows": {}, "alternating": [MODEL]}))

    assert learning(learnt).adaptations(MODEL) == ["consecutive messages of one role are joined"]


def test_a_learnt_window_ends_when_the_server_says_another(tmp_path: Path) -> None:
    url = "http://127.0.0.1:8080/v1"
    known = learning(tmp_path / "learnt.json", url)
    known.learn_window(MODEL, 2_048)
    again = learning(tmp_path / "learnt.json", url)
    assert (again.info(MODEL).context_window, again.info(MODEL).origin) == (2_048, "learnt")

    catalog = Catalog({MODEL: ModelSettings(base_url=url)})
    catalog.served.keep(url, {"any": ServedModel(name="any", window=8_192)})
    restarted = CatalogDirectory(catalog, LearntFacts(tmp_path / "learnt.json"))

    # A private server that has one model serves it under every name.
    assert (restarted.limits(MODEL).window, restarted.limits(MODEL).origin) == (8_192, "server")


def test_an_assumed_window_counts_beside_a_stored_one_that_no_longer_does(tmp_path: Path) -> None:
    url = "http://127.0.0.1:8080/v1"
    learning(tmp_path / "learnt.json", url).learn_window(MODEL, 2_048)
    catalog = Catalog({MODEL: ModelSettings(base_url=url)})
    catalog.served.keep(url, {"any": ServedModel(name="any", window=200_000)})
    known = CatalogDirectory(catalog, LearntFacts(tmp_path / "learnt.json"))

    known.learn_window(MODEL, 30_000, named=False)
    assert (known.limits(MODEL).window, known.limits(MODEL).origin) == (30_000, "learnt")

    catalog.served.keep(url, {"any": ServedModel(name="any", window=100_000)})
    catalog.forget()
    assert known.limits(MODEL).window == 100_000


def test_a_window_that_the_provider_names_replaces_an_assumed_one(tmp_path: Path) -> None:
    known = learning(tmp_path / "learnt.json")
    known.learn_window(MODEL, 30_000, named=False)
    known.learn_window(MODEL, 64_000)

    assert known.limits(MODEL).window == 64_000


def test_a_file_is_written_for_token_sizes_that_changed_noticeably(tmp_path: Path) -> None:
    learnt = tmp_path / "learnt.json"
    known = learning(learnt)
    known.learn(MODEL, 10_000, 12_000)
    first = learnt.read_bytes()
    for reported in (12_010, 11_990, 12_050):
        known.learn(MODEL, 10_000, reported)
    assert learnt.read_bytes() == first
    for _ in range(5):
        known.learn(MODEL, 10_000, 14_000)
    assert learning(learnt).counter(MODEL).calibrated(10_000) == pytest.approx(14_000, rel=0.02)


async def test_a_local_server_is_asked_once_but_not_what_the_settings_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui_agent.model.discovery.TIMEOUT", 60.0)
    row = {"id": "smol", "owned_by": "llamacpp", "meta": {"n_ctx": 4_096}}
    caps = {"chat_template_caps": {"supports_tools": False}}
    with ListServer({"/v1/models": {"data": [row]}, "/props": caps}) as server:
        url = f"{server.url}/v1"
        models = {
            MODEL: ModelSettings(base_url=url),
            "openai/set": ModelSettings(base_url=url, context_window=9_000),
        }
        catalog = Catalog(models)
        known = CatalogDirectory(catalog, LearntFacts(), keys=lambda: Keys({}, models=models))

        await known.refresh("openai/set")
        assert server.asked == []
        await known.refresh(MODEL)
        await known.refresh(MODEL)

    assert [path for path, _headers in server.asked].count("/v1/models") == 1
    assert (known.limits(MODEL).window, known.limits(MODEL).origin) == (4_096, "server")
    assert not known.traits(MODEL).tools
    assert known.traits("openai/gpt-4.1-mini").tools
