"""A slip in a model's name is told, a name newer than the catalog is not refused."""

import json
from pathlib import Path

import pytest

from tui_agent.model.catalog import Catalog
from tui_agent.model.naming import NameStanding, UnknownModelError, judge, require
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
        ("anthropic/claude-sonnet-5", NameStanding.KNOWN, ()),
        ("claude-sonnet-5", NameStanding.KNOWN, ()),
        ("openai/my-model", NameStanding.KNOWN, ()),
        ("groq/whatever-runs-there", NameStanding.KNOWN, ()),
        ("ollama/whatever:4b", NameStanding.KNOWN, ()),
        ("openai/gpt-5-mink", NameStanding.NEW, ("openai/gpt-5-mini",)),
        ("mistral/next-year", NameStanding.NEW, ()),
        ("nosuch", NameStanding.IMPOSSIBLE, ()),
        ("claud-sonnet-5", NameStanding.IMPOSSIBLE, ("anthropic/claude-sonnet-5",)),
        ("antropic/claude-sonnet-5", NameStanding.IMPOSSIBLE, ("anthropic/claude-sonnet-5",)),
        ("openai/", NameStanding.IMPOSSIBLE, ("openai/my-model",)),
        ("openai/two words", NameStanding.IMPOSSIBLE, ("openai/my-model",)),
        ("openai/nope", NameStanding.NEW, ("openai/my-model",)),
    ],
)
def test_names(catalog: Catalog, model: str, standing: NameStanding, similar: tuple[str, ...]) -> None:
    verdict = judge(model, catalog)
    assert (verdict.standing, verdict.similar) == (standing, similar)
    assert bool(verdict.sentence) == (standing is not NameStanding.KNOWN)


def test_only_what_can_not_be_is_refused(catalog: Catalog) -> None:
    with pytest.raises(UnknownModelError, match="Did you mean anthropic/claude-sonnet-5"):
        require("claud-sonnet-5", catalog)
    assert "openai/gpt-5-mini" in require("openai/gpt-5-mink", catalog)
    assert require("openai/gpt-5-mini", catalog) == ""
