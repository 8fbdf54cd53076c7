"""A slip in a model's name is told, a name newer than the catalog is not refused."""

import json
from pathlib import Path

import pytest

from tui_agent.model.catalog import Catalog
from tui_agent.model.naming import Standing, UnknownModelError, judge, require
from tui_agent.model.settings import ModelSettings, ProviderSettings


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    names = {"claude-sonnet-5": "anthropic", "gpt-5-mini": "openai"}
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps({name: {"mode": "chat", "litellm_provider": of} for name, of in names.items()}))
    own = {"openai/my-model": ModelSettings(base_url="http://localhost:1/v1")}
    return Catalog(own, {"groq": ProviderSettings(base_url="http://localhost:2/v1")}, path=path)


@pytest.mark.parametrize(
    ("model", "standing", "similar"),
    [
        ("anthropic/claude-sonnet-5", Standing.KNOWN, ()),
        ("claude-sonnet-5", Standing.KNOWN, ()),
        ("openai/my-model", Standing.KNOWN, ()),
        ("groq/whatever-runs-there", Standing.KNOWN, ()),
        ("ollama/whatever:4b", Standing.KNOWN, ()),
        ("openai/gpt-5-mink", Standing.NEW, ("openai/gpt-5-mini",)),
        ("mistral/next-year", Standing.NEW, ()),
        ("nosuch", Standing.IMPOSSIBLE, ()),
        ("claud-sonnet-5", Standing.IMPOSSIBLE, ("anthropic/claude-sonnet-5",)),
        ("antropic/claude-sonnet-5", Standing.IMPOSSIBLE, ("anthropic/claude-sonnet-5",)),
        ("openai/", Standing.IMPOSSIBLE, ("openai/my-model",)),
        ("openai/two words", Standing.IMPOSSIBLE, ("openai/my-model",)),
        ("openai/nope", Standing.NEW, ("openai/my-model",)),
    ],
)
def test_names(catalog: Catalog, model: str, standing: Standing, similar: tuple[str, ...]) -> None:
    verdict = judge(model, catalog)
    assert (verdict.standing, verdict.similar) == (standing, similar)
    assert bool(verdict.sentence) == (standing is not Standing.KNOWN)


def test_only_what_can_not_be_is_refused(catalog: Catalog) -> None:
    with pytest.raises(UnknownModelError, match="Did you mean anthropic/claude-sonnet-5"):
        require("claud-sonnet-5", catalog)
    assert "openai/gpt-5-mini" in require("openai/gpt-5-mink", catalog)
    assert require("openai/gpt-5-mini", catalog) == ""
