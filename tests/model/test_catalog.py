"""Windows, prices and abilities of models."""

import subprocess
import sys
import tomllib
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from scripts.model_data import price_list
from tests.support.price_file import write_prices
from tui_agent.model.catalog import ASSUMED_WINDOW, Catalog
from tui_agent.model.claude import claude
from tui_agent.model.price_list import PRICES, PriceList
from tui_agent.model.served import ServedModel, ServedModels
from tui_agent.model.settings import ModelSettings, ProviderSettings
from tui_agent.session.effort import Effort
from tui_agent.session.entries import Usage

ROWS = {
    "sample_spec": {"mode": "one of: chat, embedding"},
    "claude-x": {
        "mode": "chat", "litellm_provider": "anthropic", "max_input_tokens": 200_000, "max_output_tokens": 64_000,
        "input_cost_per_token": 3e-6, "output_cost_per_token": 15e-6, "cache_read_input_token_cost": 3e-7,
        "cache_creation_input_token_cost": 3.75e-6, "supports_vision": True, "supports_function_calling": True,
        "supports_reasoning": True, "input_cost_per_token_above_200k_tokens": 6e-6,
        "output_cost_per_token_above_200k_tokens": 22.5e-6,
    },
    "gpt-x": {
        "mode": "chat", "litellm_provider": "openai", "max_input_tokens": 128_000, "max_tokens": 16_000,
        "input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6, "supports_function_calling": True,
    },
    "deepseek/chat-x": {"mode": "chat", "litellm_provider": "deepseek", "max_tokens": 8_192},
    "embed-x": {"mode": "embedding", "litellm_provider": "openai", "max_input_tokens": 8_000},
    "bedrock/us-east-1/claude-x": {"mode": "chat", "litellm_provider": "bedrock", "max_input_tokens": 1},
    "ollama/llama-x": {"mode": "chat", "litellm_provider": "ollama", "max_input_tokens": 8_192},
    "vertex_ai/claude-x": {
        "mode": "chat", "litellm_provider": "vertex_ai-anthropic_models", "max_input_tokens": 200_000,
    },
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_prices(tmp_path / "prices.json", ROWS)


@pytest.fixture
def catalog(path: Path) -> Catalog:
    return Catalog(path=path)


def test_an_unknown_model_gets_an_assumed_window(catalog: Catalog) -> None:
    info = catalog.info("foo/bar")

    assert (info.context_window, info.origin) == (ASSUMED_WINDOW, "assumed")
    assert info.prices == ()
    assert info.cost(Usage(input=5)) is None
    assert not catalog.knows("foo/bar")
    assert not catalog.knows("embed-x")
    assert not catalog.knows("openai/claude-x"), (
        "without a gateway a provider serves its own models only"
    )


def test_prices_count_what_is_cached_and_the_size_of_the_prompt(catalog: Catalog) -> None:
    info = catalog.info("anthropic/claude-x")

    small = info.cost(
        Usage(input=1_000_000 // 10, output=1_000, cache_read=10_000, cache_write=1_000)
    )
    large = info.cost(Usage(input=300_000, output=1_000))

    assert small == pytest.approx(0.3 + 0.015 + 0.003 + 0.00375)
    assert large == pytest.approx(1.8 + 0.0225)


URL = "https://llm.example.com"


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("anthropic/claude-x", {"providers": {"anthropic": ProviderSettings(base_url=URL)}}),
        ("anthropic/claude-x", {"environ": {"ANTHROPIC_BASE_URL": URL}}),
        (
            "openai/us.anthropic.claude-x-20260101-v1:0",
            {"providers": {"openai": ProviderSettings(base_url=URL)}},
        ),
        ("openrouter/anthropic/claude-x:beta", {}),
    ],
)
def test_a_known_model_keeps_what_is_known_of_it_behind_a_gateway(
    path: Path, model: str, settings: dict[str, Any]
) -> None:
    catalog = Catalog(path=path, **settings)
    info = catalog.info(model)

    assert (info.context_window, info.max_output, info.origin) == (200_000, 64_000, "catalog")
    assert (info.vision, info.reasoning) == (True, True)
    assert info.cost(Usage(input=1_000_000 // 10)) == pytest.approx(0.3)
    assert catalog.knows(model)


@pytest.mark.parametrize(
    "url", ["http://localhost:8080/v1", "http://192.168.1.5:8000/v1", "http://gpu-box:8000/v1"]
)
def test_a_model_anybody_may_run_has_the_window_its_server_gave_it(path: Path, url: str) -> None:
    write_prices(path, {**ROWS, "dashscope/qwen9-32b": {
        "mode": "chat", "litellm_provider": "dashscope", "max_input_tokens": 1_000_000, "max_output_tokens": 64_000,
        "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6, "supports_vision": True,
        "supports_function_calling": True,
    }})  # fmt: skip
    catalog = Catalog(providers={"openai": ProviderSettings(base_url=url)}, path=path)

    info = catalog.info("openai/Qwen/Qwen9-32B")

    assert (info.context_window, info.max_output, info.origin) == (ASSUMED_WINDOW, None, "assumed")
    assert info.vision
    assert info.prices == ()
    assert catalog.info("openai/claude-x").context_window == 200_000


@pytest.mark.parametrize(
    ("row", "level"), [({}, "xhigh"), ({"supports_max_reasoning_effort": True}, "max")]
)
def test_the_highest_level_of_a_model_is_that_of_its_row(
    path: Path, row: dict[str, Any], level: str
) -> None:
    write_prices(path, {**ROWS, "gpt-x": {**ROWS["gpt-x"], **row}})
    assert Catalog(path=path).info("openai/gpt-x").max_effort == level


def test_the_levels_of_a_claude_are_those_of_the_price_list() -> None:
    rows = PriceList().all.items()
    told = {name: row for name, row in rows if row.get("supports_max_reasoning_effort")}
    table = {name: known for name in told if (known := claude(name)) is not None}
    assert len(table) > 100
    for name, known in table.items():
        has_xhigh = bool(told[name].get("supports_xhigh_reasoning_effort"))
        assert (Effort.MAX in known.efforts, Effort.XHIGH in known.efforts) == (True, has_xhigh)


def test_what_a_server_said_counts_before_the_file_and_after_the_settings(path: Path) -> None:
    settings = ModelSettings(base_url="http://localhost:8080/v1")
    served = ServedModels()
    told = ServedModel(
        name="gpt-x", window=65_536, vision=True, input_price=1e-6, output_price=2e-6
    )
    served.keep(f"{settings.base_url}/", {"gpt-x": told})
    own = settings.model_copy(update={"context_window": 16_384})

    info = Catalog({"openai/gpt-x": settings}, served=served, path=path).info("openai/gpt-x")
    limited = Catalog({"openai/gpt-x": own}, served=served, path=path).info("openai/gpt-x")

    assert (info.context_window, info.origin, info.vision) == (65_536, "server", True)
    assert info.cost(Usage(input=1_000_000, output=1_000_000)) == pytest.approx(3.0)
    assert (limited.context_window, limited.origin) == (16_384, "config")


def test_a_private_servers_only_model_can_what_it_says_under_every_name(path: Path) -> None:
    here, there = (
        ModelSettings(base_url="http://localhost:8080/v1"),
        ModelSettings(base_url=URL, wire="messages"),
    )
    served = ServedModels()
    for settings in (here, there):
        served.keep(
            settings.base_url or "", {"x": ServedModel(name="x", tools=False, reasoning=False)}
        )
    catalog = Catalog(
        {"anthropic/claude-x": here, "openai/claude-x": there}, served=served, path=path
    )

    own, elsewhere = catalog.info("anthropic/claude-x"), catalog.info("openai/claude-x")
    assert (own.without_tools, own.efforts) == (True, ())
    assert (elsewhere.without_tools, bool(elsewhere.efforts), elsewhere.cache_marks) == (
        False,
        True,
        True,
    )


def test_what_is_served_for_nothing_costs_nothing(catalog: Catalog) -> None:
    assert catalog.info("openrouter/anthropic/claude-x:beta").cache_marks
    assert (
        catalog.info("openrouter/anthropic/claude-x:free").cost(Usage(input=1_000, output=1_000))
        == 0.0
    )


def test_a_subscription_does_not_say_how_large_a_model_is_elsewhere_and_the_window_is_no_limit(
    path: Path,
) -> None:
    copilot = {"mode": "chat", "litellm_provider": "github_copilot", "max_input_tokens": 64_000}
    write_prices(
        path, {"github_copilot/claude-x": {**copilot, "max_output_tokens": 64_000}, **ROWS}
    )
    catalog = Catalog(path=path)

    assert catalog.info("github_copilot/claude-x").context_window == 64_000
    assert catalog.info("github_copilot/claude-x").max_output is None
    assert catalog.info("openrouter/anthropic/claude-x").context_window == 200_000


def test_where_only_hosts_have_a_model_half_of_them_agree_on_its_window(path: Path) -> None:
    windows = {"together_ai": 8_000, "deepinfra": 32_000, "novita": 131_072, "nebius": 131_072}
    write_prices(path, {
        f"{host}/team/unheard-of-7b": {
            "mode": "chat", "litellm_provider": host, "max_input_tokens": window, "input_cost_per_token": 1e-6,
        }
        for host, window in windows.items()
    })  # fmt: skip

    info = Catalog(path=path).info("openrouter/team/unheard-of-7b")

    assert (info.context_window, info.prices) == (32_000, ())


def test_a_claude_newer_than_the_file_has_what_every_claude_has() -> None:
    info = Catalog().info("anthropic/claude-opus-99")

    assert (info.context_window, info.max_output, info.origin) == (200_000, 32_000, "assumed")
    assert info.vision
    assert info.tools
    assert not Catalog().knows("anthropic/claude-opus-99")


def test_what_is_out_of_service_is_not_listed(path: Path) -> None:
    write_prices(path, {**ROWS, "gpt-old": {**ROWS["gpt-x"], "deprecation_date": "2026-03-01"}})
    catalog = Catalog(path=path)

    assert "openai/gpt-old" in [info.id for info in catalog.models(today=date(2026, 3, 1))]
    assert "openai/gpt-old" not in [info.id for info in catalog.models(today=date(2026, 3, 2))]


def test_each_correction_names_its_source_and_day() -> None:
    table = tomllib.loads(PRICES.with_name("corrections.toml").read_text())

    assert table["row"]
    for entry in [*table["row"], *table["family"]]:
        assert entry["source"].startswith("https://")
        assert entry["checked"]


def test_the_list_holds_chat_models_once_and_the_users_first(path: Path) -> None:
    catalog = Catalog({"openai/mine": ModelSettings(base_url="http://localhost/v1")}, path=path)

    names = "openai/mine anthropic/claude-x deepseek/chat-x openai/gpt-x vertex_ai/claude-x"
    assert [info.id for info in catalog.models()] == names.split()


def test_the_list_that_is_shipped_is_what_its_script_makes() -> None:
    source, _comma, date = PriceList().source.partition(", ")
    if source != f"litellm {version('litellm')}":
        pytest.fail("run: python scripts/model_data.py")
    assert PRICES.read_text(encoding="utf-8") == price_list(date=date)


def test_the_list_that_is_shipped_is_read_without_importing_litellm() -> None:
    program = (
        "import sys; from tui_agent.model.catalog import Catalog\n"
        "info = Catalog().info('anthropic/claude-sonnet-4-5')\n"
        "assert info.context_window >= 200_000 and info.prices, info\n"
        "print(sorted({'litellm', 'openai', 'httpx', 'tiktoken'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )

    assert done.stdout.strip() == "[]", done.stderr
