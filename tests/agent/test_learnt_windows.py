"""What a provider's refusal taught of a model counts where it was said."""

from pathlib import Path

from tests.support.list_server import ListServer
from tui_agent.model.catalog import Catalog
from tui_agent.model.directory import CatalogDirectory
from tui_agent.model.keys import Keys
from tui_agent.model.served import ServedModel
from tui_agent.model.settings import ModelSettings

MODEL = "openai/gpt-4.1"


def directory(path: Path, url: str | None = None) -> CatalogDirectory:
    settings = {MODEL: ModelSettings(base_url=url)} if url else {}
    return CatalogDirectory(Catalog(settings), path)


def test_what_one_gateway_taught_is_not_the_models_elsewhere(tmp_path: Path) -> None:
    learnt, gateway = tmp_path / "learnt.json", "https://name:word@llm.example.com/v1"
    directory(learnt, gateway).learn_window(MODEL, 8_192)
    assert directory(learnt, gateway).learn_alternating(MODEL)

    assert directory(learnt, gateway).limits(MODEL).window == 8_192
    assert directory(learnt, gateway).traits(MODEL).alternating_roles
    for elsewhere in (None, "https://other.example.com/v1"):
        assert directory(learnt, elsewhere).limits(MODEL).window > 100_000
        assert not directory(learnt, elsewhere).traits(MODEL).alternating_roles
    assert "word" not in learnt.read_text()


def test_a_learnt_window_ends_when_the_server_says_another(tmp_path: Path) -> None:
    url = "http://127.0.0.1:8080/v1"
    known = directory(tmp_path / "learnt.json", url)
    known.learn_window(MODEL, 2_048)
    again = directory(tmp_path / "learnt.json", url)
    assert (again.info(MODEL).context_window, again.info(MODEL).origin) == (2_048, "learnt")

    catalog = Catalog({MODEL: ModelSettings(base_url=url)})
    catalog.served.keep(url, {"any": ServedModel(name="any", window=8_192)})
    restarted = CatalogDirectory(catalog, tmp_path / "learnt.json")

    # A private server that has one model serves it under every name.
    assert (restarted.limits(MODEL).window, restarted.limits(MODEL).origin) == (8_192, "server")


async def test_a_local_server_is_asked_when_work_begins_but_not_what_the_settings_say(tmp_path: Path) -> None:
    row = {"id": "smol", "owned_by": "llamacpp", "meta": {"n_ctx": 4_096}}
    caps = {"chat_template_caps": {"supports_tools": False}}
    with ListServer({"/v1/models": {"data": [row]}, "/props": caps}) as server:
        url = f"{server.url}/v1"
        models = {MODEL: ModelSettings(base_url=url), "openai/set": ModelSettings(base_url=url, context_window=9_000)}
        catalog = Catalog(models)
        known = CatalogDirectory(catalog, None, keys=lambda: Keys({}, models=models))

        await known.refresh("openai/set")
        assert server.asked == []
        await known.refresh(MODEL)
        await known.refresh(MODEL)

    assert [path for path, _headers in server.asked].count("/v1/models") == 1
    assert (known.limits(MODEL).window, known.limits(MODEL).origin) == (4_096, "server")
    assert not known.traits(MODEL).tools
    assert known.traits("openai/gpt-4.1-mini").tools
