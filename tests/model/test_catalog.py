"""Windows, prices and abilities of models."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.model.catalog import ASSUMED_WINDOW, Catalog
from tui_agent.model.settings import ModelSettings, ProviderSettings
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
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(ROWS))
    return path


@pytest.fixture
def catalog(path: Path) -> Catalog:
    return Catalog(path=path)


@pytest.mark.parametrize("model", ["anthropic/claude-x", "claude-x"])
def test_a_known_model(catalog: Catalog, model: str) -> None:
    info = catalog.info(model)

    assert (info.id, info.provider, info.origin) == (model, "anthropic", "catalog")
    assert (info.context_window, info.max_output) == (200_000, 64_000)
    assert info.vision
    assert info.tools
    assert info.reasoning
    assert info.cache_marks


def test_what_stands_within_a_row_is_no_model(path: Path) -> None:
    inner = {"claude-x": {"mode": "part of another"}, "gpt-x": "a word"}
    path.write_text(json.dumps({"other": inner, **ROWS}, indent=4))
    catalog = Catalog(path=path)

    assert catalog.info("anthropic/claude-x").context_window == 200_000
    assert catalog.info("openai/gpt-x").context_window == 128_000
    assert not catalog.knows("other")
    assert not catalog.knows("embed-x")


def test_an_unknown_model_gets_an_assumed_window(catalog: Catalog) -> None:
    info = catalog.info("foo/bar")

    assert (info.context_window, info.origin) == (ASSUMED_WINDOW, "assumed")
    assert info.prices == ()
    assert info.cost(Usage(input=5)) is None
    assert not catalog.knows("foo/bar")


def test_prices_count_what_is_cached_and_the_size_of_the_prompt(catalog: Catalog) -> None:
    info = catalog.info("anthropic/claude-x")

    small = info.cost(Usage(input=1_000_000 // 10, output=1_000, cache_read=10_000, cache_write=1_000))
    large = info.cost(Usage(input=300_000, output=1_000))

    assert small == pytest.approx(0.3 + 0.015 + 0.003 + 0.00375)
    assert large == pytest.approx(1.8 + 0.0225)


def test_a_missing_price_of_cached_tokens_is_that_of_others(catalog: Catalog) -> None:
    assert catalog.info("openai/gpt-x").cost(Usage(cache_read=1_000_000)) == pytest.approx(2.0)


def test_settings_win_over_the_catalog(path: Path) -> None:
    settings = ModelSettings(
        context_window=50_000, max_output=999, vision=True, tools=False, input_price=1, output_price=2
    )
    info = Catalog({"openai/gpt-x": settings}, path=path).info("openai/gpt-x")

    assert (info.context_window, info.max_output, info.origin) == (50_000, 999, "config")
    assert (info.vision, info.tools) == (True, False)
    assert info.cost(Usage(input=1_000_000, output=1_000_000)) == pytest.approx(3.0)


@pytest.mark.parametrize("where", ["model", "provider"])
def test_a_name_on_ones_own_server_says_nothing_of_the_window(path: Path, where: str) -> None:
    url = "http://localhost:8080/v1"
    catalog = (
        Catalog({"openai/gpt-x": ModelSettings(base_url=url)}, path=path)
        if where == "model"
        else Catalog(providers={"openai": ProviderSettings(base_url=url)}, path=path)
    )

    assert catalog.info("openai/gpt-x").origin == "assumed"
    assert catalog.info("openai/gpt-x").context_window == ASSUMED_WINDOW
    assert catalog.info("ollama/llama-x").origin == "assumed"


def test_those_who_pass_requests_on_have_the_makers_window_but_not_its_price(catalog: Catalog) -> None:
    info = catalog.info("openrouter/anthropic/claude-x:beta")

    assert info.context_window == 200_000
    assert info.cache_marks
    assert info.prices == ()


def test_the_list_holds_chat_models_once_and_the_users_first(path: Path) -> None:
    catalog = Catalog({"openai/mine": ModelSettings(base_url="http://localhost/v1")}, path=path)

    assert [info.id for info in catalog.models()] == [
        "openai/mine",
        "anthropic/claude-x",
        "deepseek/chat-x",
        "openai/gpt-x",
        "vertex_ai/claude-x",
    ]


def test_a_misspelt_model_finds_its_neighbours(catalog: Catalog) -> None:
    assert "openai/gpt-x" in catalog.similar("openai/gpt-y")
    assert "anthropic/claude-x" in catalog.similar("claud-x")


def test_the_bundled_file_is_found_without_importing_litellm() -> None:
    program = (
        "import sys\n"
        "from tui_agent.model.catalog import Catalog\n"
        "info = Catalog().info('anthropic/claude-sonnet-4-5')\n"
        "assert info.context_window >= 200_000, info\n"
        "assert info.prices\n"
        "print(sorted({'litellm', 'openai', 'httpx', 'tiktoken'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)

    assert done.stdout.strip() == "[]", done.stderr
