"""docs/models.md: what it says is so."""

import re
import tomllib
from pathlib import Path

import pytest

from tui_agent.config import load_config
from tui_agent.model.catalog import Catalog
from tui_agent.model.errors import Cause, Failure, Target, classify
from tui_agent.model.keys import Keys
from tui_agent.model.naming import judge
from tui_agent.model.protocol import ModelError
from tui_agent.model.providers import provider_of
from tui_agent.model.route import Router
from tui_agent.model.settings import ModelSettings, ProviderSettings
from tui_agent.session.effort import Effort

TEXT = (Path(__file__).parents[1] / "docs/models.md").read_text(encoding="utf-8")
SETTINGS = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
TARGET = Target("openai/m", "OpenAI", "api.example", Keys({}).advice(provider_of("openai")))


@pytest.mark.parametrize("block", SETTINGS, ids=lambda block: block.splitlines()[0])
def test_settings_are_taken_without_a_warning(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_AGENT_CONFIG_DIR", str(tmp_path))
    (tmp_path / "config.toml").write_text(block)
    (tmp_path / "config.toml").chmod(0o600)

    assert load_config().warnings == ()
    assert tomllib.loads(block)


@pytest.mark.parametrize(
    "line",
    [
        'effort = "high"',
        '[cache]\nttl = "1h"',
        '[models."anthropic/claude-opus-5"]\ncache_marks = false',
        '[models."openai/gpt-5.6"]\noptions = { reasoning = { summary = "detailed" } }',
        '[models."openai/mine"]\nreasoning_back = "reasoning_content"',
        '[models."openai/mine"]\nreasoning_back = "as_received"',
        "[retry]\nmax_retry_after = 600",
    ],
)
def test_settings_named_in_the_text_are_taken(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_AGENT_CONFIG_DIR", str(tmp_path))
    (tmp_path / "config.toml").write_text(line)

    assert load_config().warnings == ()


def test_a_model_is_one_however_a_gateway_spells_it() -> None:
    names = re.findall(r"`(openai/[\w./:-]*claude[\w./:-]*|anthropic/claude-sonnet-4-5)`", TEXT)
    catalog = Catalog(providers={"openai": ProviderSettings(base_url="https://llm.example.com/v1")})

    infos = [catalog.info(name) for name in names]

    assert len(infos) == 3
    assert len({(info.context_window, info.max_output, info.vision, info.prices) for info in infos}) == 1
    assert infos[0].origin == "catalog"


def test_any_server_of_anthropics_format_can_be_used() -> None:
    settings = next(tomllib.loads(block) for block in SETTINGS if 'wire = "messages"' in block)
    providers = {name: ProviderSettings(**table) for name, table in settings["providers"].items()}

    route = Router(Catalog(providers=providers), {"MINIMAX_API_KEY": "k"}, providers=providers).route(
        "minimax/MiniMax-M3"
    )

    assert (route.wire, route.base_url) == ("messages", "https://api.minimax.io/anthropic/v1")


def test_azure_has_one_address_or_one_for_each_deployment() -> None:
    environ = {"AZURE_API_KEY": "k", "AZURE_API_BASE": "https://x.openai.azure.com"}
    dated = {**environ, "AZURE_API_VERSION": "2024-10-21"}

    assert Router(Catalog(), environ).route("azure/gpt-4o").base_url == "https://x.openai.azure.com/openai/v1"
    assert Router(Catalog(), dated).route("azure/gpt-4o").base_url.endswith("/openai/deployments/gpt-4o")


def test_what_is_assumed_of_newer_and_local_models() -> None:
    claude = Catalog().info("anthropic/claude-opus-99")
    local = Catalog({"openai/my-model": ModelSettings(base_url="http://localhost:8080/v1")}).info("openai/my-model")

    assert (claude.context_window, claude.max_output) == (200_000, 32_000)
    assert (local.context_window, local.origin) == (32_768, "assumed")


def test_levels_named_are_the_ones_there_are() -> None:
    assert ", ".join(Effort) in TEXT


CAUSES: dict[str, Cause] = {"Nothing answers at": "refused", "The certificate of": "certificate"}
FAILURES = {
    "refuses the key": Failure("no", 401),
    "doesn't know": Failure("no", 404),
    "limits the rate of requests": Failure("no", 429),
    "The request is larger than": Failure("prompt is too long", 400),
    "could not read what": Failure('{"error": {"code": "tool_use_failed", "message": "no"}}', 400),
}


def test_every_complaint_that_is_explained_is_made_in_these_words() -> None:
    said = [classify(Failure(cause=cause), TARGET, now=0.0).message for cause in CAUSES.values()]
    said += [classify(failure, TARGET, now=0.0).message for failure in FAILURES.values()]
    with pytest.raises(ModelError) as unset:
        Router(Catalog(), {}).route("openai/gpt-4o")
    said += [
        unset.value.message,
        judge("openai/nothing-like-it", Catalog()).sentence,
        "answers stop in the middle",
    ]
    rows = [row for row in TEXT.rpartition("| it says | do |")[2].splitlines()[2:] if row.startswith("|")]
    assert len(rows) > 5

    for row in rows:
        explained = row.split("|")[1].strip()
        pieces = [piece.strip() for piece in re.split(r"…|\bX\b|NAME|MODEL", explained) if piece.strip()]
        assert any(all(piece in sentence for piece in pieces) for sentence in said), explained
