"""What a provider's refusal taught of a model counts where it was said."""

from pathlib import Path

from tui_agent.model.catalog import Catalog
from tui_agent.model.directory import CatalogDirectory
from tui_agent.model.settings import ModelSettings

MODEL = "openai/gpt-4.1"


def directory(path: Path, url: str | None = None) -> CatalogDirectory:
    settings = {MODEL: ModelSettings(base_url=url)} if url else {}
    return CatalogDirectory(Catalog(settings), path)


def test_a_small_window_of_one_gateway_is_not_the_models_elsewhere(tmp_path: Path) -> None:
    learnt, gateway = tmp_path / "learnt.json", "https://name:word@llm.example.com/v1"
    directory(learnt, gateway).learn_window(MODEL, 8_192)

    assert directory(learnt, gateway).limits(MODEL).window == 8_192
    assert directory(learnt).limits(MODEL).window > 100_000
    assert directory(learnt, "https://other.example.com/v1").limits(MODEL).window > 100_000
    assert "word" not in learnt.read_text()


def test_who_insists_on_alternating_roles_is_a_server(tmp_path: Path) -> None:
    learnt, gateway = tmp_path / "learnt.json", "http://127.0.0.1:8080/v1"

    assert directory(learnt, gateway).learn_alternating(MODEL)
    assert directory(learnt, gateway).traits(MODEL).alternating_roles
    assert not directory(learnt).traits(MODEL).alternating_roles
