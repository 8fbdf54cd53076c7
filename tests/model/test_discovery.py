"""Servers are asked for their models, when somebody lists or picks models."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.list_server import ListServer
from tests.support.model_server import ModelServer, refused_url
from tests.support.price_file import write_prices
from tui_agent.model.addresses import Addresses, AddressSetting, is_private
from tui_agent.model.catalog import Catalog
from tui_agent.model.discovery import (
    Server,
    SilentServerError,
    ask,
    refresh,
    servers,
    usual_servers,
)
from tui_agent.model.keys import Keys
from tui_agent.model.providers import PROVIDERS, provider_of
from tui_agent.model.served import ServedModel, ServedModels
from tui_agent.model.settings import ModelSettings, ProviderSettings

PATIENT = 20.0
OPENAI = provider_of("openai")


async def asked(
    answers: dict[str, Any], provider: str = "openai", path: str = "/v1"
) -> dict[str, ServedModel]:
    with ListServer(answers) as server:
        return await ask(
            Server(provider_of(provider), AddressSetting(f"{server.url}{path}")), seconds=PATIENT
        )


@pytest.mark.parametrize(
    ("row", "window"),
    [
        ({"max_model_len": 40_960}, 40_960),
        ({"max_context_length": 131_072, "loaded_context_length": 4_096}, 4_096),
        ({"meta": {"n_ctx_train": 32_768}}, 32_768),
        ({"context_length": 1_000_000, "top_provider": {"context_length": 262_144}}, 262_144),
        ({"context_length": "a lot"}, None),
    ],
)
async def test_windows_in_every_form(row: dict[str, Any], window: int | None) -> None:
    models = await asked({"/v1/models": {"data": [{"id": "m", **row}]}})

    assert models["m"].window == window


async def test_openrouters_list_tells_windows_prices_and_abilities() -> None:
    row = {
        "id": "z-ai/glm-5",
        "context_length": 202_752,
        "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
        "top_provider": {"context_length": 202_752, "max_completion_tokens": 131_072},
        "pricing": {
            "prompt": "0.000001",
            "completion": "0.0000032",
            "input_cache_read": "0.0000002",
        },
        "supported_parameters": ["tools", "reasoning", "max_tokens"],
    }
    drawer = {
        "id": "black/flux",
        "architecture": {"output_modalities": ["image"]},
        "supported_parameters": [],
    }
    auto = {
        "id": "openrouter/auto",
        "pricing": {"prompt": "-1", "completion": "-1"},
        "supported_parameters": [],
    }

    models = await asked({"/v1/models": {"data": [row, drawer, auto]}})

    assert models["z-ai/glm-5"] == ServedModel(
        name="z-ai/glm-5", window=202_752, max_output=131_072, vision=True, tools=True, reasoning=True,
        input_price=1e-6, output_price=3.2e-6, cache_read_price=2e-7,
    )  # fmt: skip
    assert not models["black/flux"].chats
    assert models["openrouter/auto"].input_price is None
    assert models["openrouter/auto"].tools is False


def listed(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"data": list(rows)}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            {
                "/v1/models": listed({"id": "m"}),
                "/props": {"default_generation_settings": {"n_ctx": 16_384}},
            },
            {"window": 16_384, "tools": None, "small": None, "tiny": None},
        ),
        (
            {
                "/v1/models": listed(
                    {"id": "m", "owned_by": "llamacpp", "meta": {"n_params": 630_167_424}}
                ),
                "/props": {"default_generation_settings": {"n_ctx": 16_384}},
            },
            {"window": 16_384, "small": True, "tiny": True},
        ),
        (
            {
                "/v1/models": listed({"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx": 4_096}}),
                "/props": {
                    "default_generation_settings": {"n_ctx": 2_048},
                    "modalities": {"vision": False},
                    "chat_template_caps": {"supports_tools": False, "supports_tool_calls": False},
                },
            },
            {"window": 2_048, "tools": False, "vision": False},
        ),
        (
            {
                "/v1/models": listed({"id": "m"}, {"id": "nomic"}),
                "/api/v0/models": listed(
                    {
                        "id": "m",
                        "type": "vlm",
                        "loaded_context_length": 8_192,
                        "max_context_length": 131_072,
                    },
                    {"id": "nomic", "type": "embeddings", "max_context_length": 2_048},
                ),
            },
            {"window": 8_192, "vision": True},
        ),
    ],
    ids=[
        "llama.cpp",
        "llama.cpp: a model of few parameters",
        "llama.cpp: what its template takes, and the size of a slot",
        "LM Studio: what is loaded",
    ],
)
async def test_what_servers_say_elsewhere(answers: dict[str, Any], said: dict[str, Any]) -> None:
    models = await asked(answers)

    assert {name: getattr(models["m"], name) for name in said} == said
    assert "nomic" not in models or not models["nomic"].chats


@pytest.mark.parametrize(
    ("parameters", "is_small", "is_tiny"),
    [
        (999_999_999, True, True),
        (1_000_000_000, True, False),
        (3_085_938_688, True, False),
        (4e9, False, False),
        (7_615_616_512, False, False),
        (1_000_000_000_000, False, False),
        (0, None, None),
        (True, None, None),
        ("7B", None, None),
    ],
)
async def test_how_small_a_model_is_follows_from_its_parameters(
    parameters: Any, is_small: bool | None, is_tiny: bool | None
) -> None:
    row = {"id": "m", "owned_by": "llamacpp", "meta": {"n_params": parameters}}
    models = await asked({"/v1/models": listed(row)})
    (model,) = models.values()
    assert (model.small, model.tiny) == (is_small, is_tiny)


@pytest.mark.parametrize(("provider", "path"), [("ollama", ""), ("openai", "/v1")])
async def test_ollama_is_asked_for_each_of_its_models(provider: str, path: str) -> None:
    names = ("qwen3:8b", "small", "nomic")
    qwen = {"general.architecture": "qwen3", "qwen3.context_length": 262_144}
    answers = {
        "/v1/models": {"data": [{"id": name} for name in names]},
        "/api/tags": {"models": [{"name": name} for name in names]},
        "/api/show#qwen3:8b": {
            "model_info": qwen,
            "capabilities": ["completion", "tools", "thinking"],
        },
        "/api/show#small": {
            "parameters": "temperature 1\nnum_ctx 4096",
            "capabilities": ["completion", "vision"],
        },
        "/api/show#nomic": {
            "model_info": {"bert.context_length": 2_048},
            "capabilities": ["embedding"],
        },
    }

    large, small, nomic = map((await asked(answers, provider, path)).get, names)

    assert large == ServedModel(
        name="qwen3:8b", window=32_768, tools=True, reasoning=True, vision=False
    )
    assert small == ServedModel(
        name="small", window=4_096, tools=False, reasoning=False, vision=True
    )
    assert nomic is not None
    assert not nomic.chats


async def test_one_odd_model_does_not_hide_the_others() -> None:
    answers = {
        "/api/tags": {"models": ["x", {}, {"name": 7}, {"name": "odd"}, {"name": "small"}]},
        "/api/show#odd": ["no", "object"],
        "/api/show#small": {"parameters": "num_ctx 4096", "capabilities": ["completion"]},
    }
    models = await asked(answers, "ollama", "")
    assert {name: model.window for name, model in models.items()} == {"odd": None, "small": 4_096}


async def test_facts_of_another_type_than_expected_are_left_out() -> None:
    models = await asked(
        {
            "/v1/models": listed({"id": "m", "pricing": {"prompt": 10**400}}),
            "/props": {"n_ctx": 2_048, "modalities": {"vision": "perhaps"}},
        }
    )
    assert (models["m"].window, models["m"].vision) == (2_048, None)


async def test_an_address_without_a_version_is_asked_with_one() -> None:
    models = await asked(
        {"/v1/models": {"data": [{"id": "claude-x", "type": "model"}]}}, "anthropic", ""
    )

    assert models["claude-x"].chats


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"/v1/models": 401}, "needs a key"),
        ({"/v1/models": 500}, "answers with status 500"),
        ({"/v1/models": 302}, "answers with status 302"),
        ({"/v1/models": {"hello": "world"}}, "sends something other than a list of models"),
        ({}, "has no list of models"),
    ],
)
async def test_a_server_that_says_nothing_of_use_is_told_in_a_word(
    answers: dict[str, Any], words: str
) -> None:
    with pytest.raises(SilentServerError, match=words):
        await asked(answers)


def who(environ: dict[str, str], **settings: Any) -> dict[str, dict[str, str]]:
    """Return the servers that are asked, with what they are told."""
    models, providers = settings.get("models", {}), settings.get("providers", {})
    keys = Keys(environ, models=models, providers=providers)
    found = servers(
        Addresses(environ, models, providers), keys, [*models, *settings.get("in_use", ())]
    )
    return {server.place.url: dict(server.headers) for server in found}


def test_gateways_and_local_servers_are_asked_when_there_is_a_key_or_a_model_in_use() -> None:
    assert who({}) == {}
    assert who({"OPENROUTER_API_KEY": "sk-or"}) == {
        "https://openrouter.ai/api/v1": {"authorization": "Bearer sk-or"}
    }
    assert who({}, in_use=["ollama/qwen3"]) == {"http://127.0.0.1:11434": {}}


def test_addresses_of_the_environment_and_the_settings_are_asked_with_their_keys() -> None:
    environ = {
        "OPENAI_BASE_URL": "https://llm.example.com/v1", "OPENAI_API_KEY": "sk-1",
        "ANTHROPIC_API_KEY": "sk-ant", "TEAM_KEY": "sk-team",
    }  # fmt: skip
    providers = {
        "anthropic": ProviderSettings(base_url="https://claude.example.com", api_key_env="TEAM_KEY")
    }

    found = who(environ, providers=providers)

    assert found["https://llm.example.com/v1"] == {"authorization": "Bearer sk-1"}
    assert found["https://claude.example.com"]["x-api-key"] == "sk-team"


def test_the_key_of_the_environment_does_not_go_to_one_models_own_address() -> None:
    models = {
        "openai/here": ModelSettings(base_url="http://localhost:8080/v1"),
        "openai/there": ModelSettings(base_url="https://gpu.example.com/v1", api_key_env="GPU_KEY"),
    }

    found = who({"OPENAI_API_KEY": "sk-1", "GPU_KEY": "sk-gpu"}, models=models)

    assert found == {
        "http://localhost:8080/v1": {}, "https://gpu.example.com/v1": {"authorization": "Bearer sk-gpu"},
    }  # fmt: skip


async def test_a_key_is_sent_to_its_server_and_follows_nobody_elsewhere() -> None:
    with ListServer({"/v1/models": 302}) as server:
        place = Server(OPENAI, AddressSetting(f"{server.url}/v1"), {"authorization": "Bearer sk-1"})
        with pytest.raises(SilentServerError):
            await ask(place, seconds=PATIENT)
        assert [(path, headers["authorization"]) for path, headers in server.asked] == [
            ("/v1/models", "Bearer sk-1")
        ]


@pytest.mark.parametrize("host", ["localhost:1", "[::1]:8080", "10.0.0.5:4000", "gpu-box:8000"])
def test_what_is_of_ones_own_network(host: str) -> None:
    assert is_private(f"http://{host}/v1")
    assert not is_private("https://api.openai.com/v1")
    assert not is_private("")


async def test_answers_are_kept_with_their_age_and_without_secrets(tmp_path: Path) -> None:
    clock = [1_000_000.0]
    path = tmp_path / "servers.json"
    served = ServedModels(path, now=lambda: clock[0])
    with ListServer({"/v1/models": {"data": [{"id": "m", "max_model_len": 9_000}]}}) as server:
        place = AddressSetting(
            f"http://user:hidden@127.0.0.1:{server.port}/v1?token=hidden", "providers.openai"
        )
        served.keep(place.url, {})
        asked = Server(
            OPENAI, AddressSetting(f"{server.url}/v1"), {"authorization": "Bearer hidden"}
        )
        outcomes = await refresh([asked], served, seconds=PATIENT)
    clock[0] += 3 * 86_400 + 5

    again = ServedModels(path, now=lambda: clock[0])

    assert [outcome.problem for outcome in outcomes] == [""]
    assert again.age(place.url) == "3 days ago"
    found = again.answer(f"{server.url}/v1/")
    assert found is not None
    assert found.models["m"].window == 9_000
    assert "hidden" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_silent_server_is_told_and_what_it_said_before_stays() -> None:
    served, url = ServedModels(), refused_url()
    served.keep(url, {"m": ServedModel(name="m", window=9_000)})
    outcomes = await refresh([Server(OPENAI, AddressSetting(url))], served, seconds=PATIENT)

    assert [outcome.problem for outcome in outcomes] == ["not reachable"]
    assert served.answer(url) is not None


@pytest.mark.parametrize("text", ["{", "[]", '{"http://a": 5}', '{"http://a": {"models": {}}}'])
def test_answers_that_cannot_be_read_are_asked_for_anew(tmp_path: Path, text: str) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text)

    assert ServedModels(path).answer("http://a") is None


async def test_servers_of_this_machine_and_their_windows_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_prices(
        tmp_path / "prices.json",
        {"nomic-embed": {"mode": "embedding", "litellm_provider": "ollama"}},
    )
    models = {"qwen3:8b": 40_960, "nomic-embed": 2_048}
    with ModelServer(models=models) as server:
        url = f"http://127.0.0.1:{server.port}"
        places = {
            "ollama": url,
            "hosted_vllm": f"{url}/v1",
            "llamafile": refused_url(),
            "lm_studio": refused_url(),
        }
        for name, place in places.items():
            monkeypatch.setitem(PROVIDERS, name, replace(PROVIDERS[name], local_url=place))
        catalog = Catalog(path=path)
        await refresh(usual_servers(catalog.addresses), catalog.served, seconds=PATIENT)
        windows = {info.id: info.context_window for info in catalog.models()}

    assert windows == {"ollama/qwen3:8b": 32_768, "hosted_vllm/qwen3:8b": 40_960}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "0.0.0.0"])
def test_a_server_of_the_settings_is_not_looked_for_again(host: str) -> None:
    known = [f"http://{host}:8000/v1", "http://example.com:8080/v1", "", "nonsense"]
    named = {"LM_STUDIO_API_BASE": "http://studio.lan:1234/v1"}
    assert [server.provider.name for server in usual_servers(Addresses(named), known)] == [
        "Ollama",
        "llama.cpp",
    ]


def test_only_usual_ports_of_this_machine_are_looked_at() -> None:
    assert {server.host: server.provider.name for server in usual_servers(Addresses())} == {
        "127.0.0.1:11434": "Ollama",
        "127.0.0.1:1234": "LM Studio",
        "127.0.0.1:8080": "llama.cpp",
        "127.0.0.1:8000": "vLLM",
    }
