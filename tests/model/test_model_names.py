"""Names of models: spellings that mean the same, slips that are told, names newer than the catalog."""

from pathlib import Path

import pytest

from tests.support.price_file import write_prices
from tui_agent.model.catalog import Catalog
from tui_agent.model.naming import NameStanding, UnknownModelError, broader, spelled
from tui_agent.model.settings import ModelSettings, ProviderSettings


@pytest.mark.parametrize(
    "names",
    [
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4.5", "anthropic.claude-sonnet-4-5", "Claude-4.5-Sonnet"),
        ("gpt-oss-120b", "openai/gpt-oss-120b:free", "openai.gpt-oss-120b-1:0", "accounts/x/models/gpt-oss-120b"),
        ("glm-4.6", "z-ai/glm-4.6:exacto", "zai-org/GLM-4.6", "accounts/fireworks/models/glm-4p6"),
        ("qwen3-32b", "qwen/qwen-3-32b", "Qwen/Qwen3-32B", "qwen3:32b"),
        ("llama-3.3-70b-instruct", "meta-llama/Llama-3.3-70B-Instruct", "us.meta.llama3-3-70b-instruct-v1:0"),
    ],
    ids=lambda names: names[0],
)  # fmt: skip
def test_spellings_of_one_model(names: tuple[str, ...]) -> None:
    assert len({spelled(name) for name in names}) == 1


@pytest.mark.parametrize(
    ("dated", "plain"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("deepseek-v4-flash-0731", "deepseek-v4-flash"),
        ("gemini-3.1-pro-preview", "gemini-3.1-pro"),
    ],
)
def test_a_date_says_no_other_model(dated: str, plain: str) -> None:
    assert spelled(plain) in broader(spelled(dated))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-5", "gpt-5-mini"),
        ("claude-sonnet-4-5", "claude-sonnet-4"),
        ("qwen2-57b-instruct", "qwen2.5-7b-instruct"),
        ("qwen3:8b", "qwen3:32b"),
    ],
)
def test_what_only_looks_alike(one: str, other: str) -> None:
    assert not set(broader(spelled(one))) & set(broader(spelled(other)))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    names = {"claude-sonnet-5": "anthropic", "gpt-5-mini": "openai"}
    rows = {name: {"mode": "chat", "litellm_provider": of} for name, of in names.items()}
    path = write_prices(tmp_path / "catalog.json", rows)
    own = {"openai/my-model": ModelSettings(base_url="http://localhost:1/v1")}
    return Catalog(own, {"groq": ProviderSettings(base_url="http://localhost:2/v1")}, path=path)


@pytest.mark.parametrize(
    ("model", "standing", "similar"),
    [
        ("anthropic/claude-sonnet-5", NameStanding.KNOWN, ()),
        ("claude-sonnet-5", NameStanding.KNOWN, ()),
        ("openai/my-model", NameStanding.KNOWN, ()),
        ("ollama/whatever:4b", NameStanding.KNOWN, ()),
        ("openai/gpt-5-mink", NameStanding.NEW, ("openai/gpt-5-mini",)),
        ("nosuch", NameStanding.IMPOSSIBLE, ()),
        ("claud-sonnet-5", NameStanding.IMPOSSIBLE, ("anthropic/claude-sonnet-5",)),
    ],
)
def test_names(
    catalog: Catalog, model: str, standing: NameStanding, similar: tuple[str, ...]
) -> None:
    verdict = catalog.judge(model)
    assert (verdict.standing, verdict.similar) == (standing, similar)
    assert bool(verdict.sentence) == (standing is not NameStanding.KNOWN)


def test_only_what_can_not_be_is_refused(catalog: Catalog) -> None:
    with pytest.raises(UnknownModelError, match="Did you mean anthropic/claude-sonnet-5"):
        catalog.require("claud-sonnet-5")
    assert "openai/gpt-5-mini" in catalog.require("openai/gpt-5-mink")


@pytest.mark.parametrize(
    ("name", "settings", "only"),
    [
        ("bench", ["openai/bench"], "openai/bench"),
        ("bench", ["openai/bench", "groq/bench"], ""),
        ("bench", ["openai/bench-2"], ""),
        ("openai/bench-3", ["openai/bench"], ""),
        ("both", [], ""),
        ("both", ["openai/both"], "openai/both"),
        ("one", [], "openrouter/maker/one"),
        ("", ["openai/bench"], ""),
    ],
)
def test_a_name_without_its_provider_is_completed_if_one_model_has_it(
    tmp_path: Path, name: str, settings: list[str], only: str
) -> None:
    names = {
        "openrouter/maker/one": "openrouter",
        "openrouter/both": "openrouter",
        "groq/both": "groq",
    }
    rows = {name: {"mode": "chat", "litellm_provider": of} for name, of in names.items()}
    path = write_prices(tmp_path / "catalog.json", rows)
    own = {model: ModelSettings(base_url="http://localhost:1/v1") for model in settings}

    assert Catalog(own, path=path).judge(name).only == only
