"""Models that are set up in other programs are found, and each offer is a setting that is accepted."""

import json
from pathlib import Path

import pytest

from tui_agent.agent.programs.model_lists import offered_models
from tui_agent.config import load_config, set_value

PI = {
    "providers": {
        "bench": {
            "baseUrl": "http://localhost:9/v1",
            "api": "openai-completions",
            "apiKey": "very-secret",
            "models": [{"id": "qwen:7b", "contextWindow": 64000}],
            "modelOverrides": {"other": {"contextWindow": 1000}},
        },
        "anthropic": {"models": [{"id": "without-address"}]},
    }
}
OPENCODE = {
    "provider": {
        "lab": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "http://lab:8000/v1", "apiKey": "{env:LAB_KEY}"},
            "models": {"glm": {"limit": {"context": 128000, "output": 8000}}, "odd": None},
        },
        "gate": {
            "npm": "@ai-sdk/anthropic",
            "options": {"baseURL": "http://gate/v1"},
            "models": {"claude-x": {}},
        },
        "anthropic": {"models": {"claude-y": {}}},
    }
}
CODEX = """
model = "gpt-oss"
model_provider = "corp"
[model_providers.corp]
base_url = "https://llm.corp/v1"
env_key = "CORP_KEY"
wire_api = "responses"
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path / ".pi/agent/models.json", json.dumps(PI))
    write(tmp_path / ".config/opencode/opencode.json", json.dumps(OPENCODE))
    write(tmp_path / ".codex/config.toml", CODEX)
    return tmp_path


def test_models_with_an_address_are_offered_and_no_key_is_copied(home: Path) -> None:
    offers = offered_models(home)
    assert [(offer.program, offer.model) for offer in offers] == [
        ("Pi", "openai/qwen:7b"),
        ("OpenCode", "openai/glm"),
        ("OpenCode", "openai/odd"),
        ("OpenCode", "anthropic/claude-x"),
        ("Codex", "openai/gpt-oss"),
    ]
    assert [offer.program for offer in offers if offer.leaves_key] == ["Pi"]
    path = home / "config.toml"
    for offer in offers:
        set_value(offer.key, dict(offer.table), path)
    assert "very-secret" not in path.read_text()
    models = load_config(path, environ={}).config.models
    assert models["openai/qwen:7b"].context_window == 64000
    glm = models["openai/glm"]
    assert (glm.base_url, glm.api_key_env, glm.max_output) == (
        "http://lab:8000/v1",
        "LAB_KEY",
        8000,
    )
    codex = models["openai/gpt-oss"]
    assert (codex.base_url, codex.api_key_env, codex.wire) == (
        "https://llm.corp/v1",
        "CORP_KEY",
        "responses",
    )


@pytest.mark.parametrize("text", ["", "[]", "{", '{"providers": [1]}', '{"provider": {"x": 3}}'])
def test_odd_files_offer_nothing(tmp_path: Path, text: str) -> None:
    for name in (".pi/agent/models.json", ".config/opencode/opencode.json", ".codex/config.toml"):
        write(tmp_path / name, text)
    assert offered_models(tmp_path) == []
