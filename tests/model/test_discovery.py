"""Servers on this machine, found when asked for."""

import socket

from tests.support.model_server import ModelServer
from tui_agent.model.discovery import Place, discover
from tui_agent.model.settings import ModelSettings


async def test_servers_and_their_windows_are_found() -> None:
    models = {"qwen3:8b": 40_960, "nomic-embed-text": 2_048}
    with ModelServer(models=models) as server, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        places = [
            Place("Ollama", server.port),
            Place("vLLM", server.port),
            Place("LM Studio", server.port),
            Place("llama.cpp", nobody.getsockname()[1]),
        ]
        found = await discover(places, seconds=5)

    by_id = {(model.server, model.id): model.settings for model in found}
    assert by_id["Ollama", "ollama/qwen3:8b"].context_window == 32_768
    assert by_id["Ollama", "ollama/qwen3:8b"].base_url == f"http://127.0.0.1:{server.port}"
    assert by_id["vLLM", "openai/qwen3:8b"].context_window == 40_960
    assert by_id["LM Studio", "openai/qwen3:8b"].base_url == f"http://127.0.0.1:{server.port}/v1"
    assert not [
        model for model in found if model.server == "llama.cpp" or ("embed" in model.id and model.server != "Ollama")
    ]


async def test_somebody_else_on_the_port_is_no_server() -> None:
    with ModelServer() as server:
        assert await discover([Place("Ollama", server.port), Place("vLLM", server.port)], seconds=5) == []


async def test_a_server_of_the_settings_is_asked_at_its_address_and_named_as_there() -> None:
    with ModelServer(models={"qwen3:8b": 40_960}) as server, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        here = ModelSettings(base_url=f"http://127.0.0.1:{server.port}/v1", context_window=9_000)
        gone = ModelSettings(base_url=f"http://127.0.0.1:{nobody.getsockname()[1]}/v1")
        own = {"openai/qwen3:8b": here, "openai/gone": gone, "openai/known": ModelSettings(context_window=5_000)}
        found = await discover([Place("vLLM", server.port)], own=own, seconds=5)
    assert [(model.id, model.settings) for model in found] == [("openai/qwen3:8b", here)]
