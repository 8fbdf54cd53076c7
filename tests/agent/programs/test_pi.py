"""Pi's settings and models are listed with the commands that set them up here."""

import json
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.support.knowledge import write
from tui_agent.agent.programs.found import FoundItem
from tui_agent.agent.programs.settings import read_programs
from tui_agent.cli.extensions import folders_of
from tui_agent.cli.main import run
from tui_agent.config import load_config

LOCAL = {
    "baseUrl": "http://localhost:11434/v1",
    "api": "openai-completions",
    "apiKey": "$BENCH_KEY",
    "models": [
        {
            "id": "qwen 'x':7b",
            "reasoning": True,
            "input": ["text", "image"],
            "contextWindow": 32000,
            "maxTokens": 4096,
            "cost": {"input": 1.5, "output": 2, "cacheRead": 0.1, "cacheWrite": 0},
        }
    ],
}
PROVIDERS = {
    "bench": LOCAL,
    "ollama": {**LOCAL, "apiKey": "ollama", "models": [{"id": "plain"}]},
    "anthropic": {
        "baseUrl": "https://proxy.example.com/v1",
        "modelOverrides": {"claude-x": {"contextWindow": 5000}},
    },
    "google": {"baseUrl": "https://g.example.com", "apiKey": "sk-very-secret"},
    "gate": {"baseUrl": "https://gate.example", "api": "anthropic-messages", "models": [{"id": "c"}]},
}  # fmt: skip
SETTINGS = {
    "defaultProvider": "google",
    "defaultModel": "gemini-x",
    "defaultThinkingLevel": "xhigh",
    "theme": "dark",
    "unheard": 1,
}


def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, FoundItem]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path / "project/.git/HEAD", "ref: refs/heads/main\n")
    folders = folders_of(tmp_path / "project", load_config().config)
    items = read_programs(folders, trusted=False).items
    return {item.name: item for item in items if item.program == "Pi"}


def test_each_command_is_accepted_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "home/.pi/agent/models.json", json.dumps({"providers": PROVIDERS}))
    write(tmp_path / "home/.pi/agent/settings.json", json.dumps(SETTINGS))
    items = found(tmp_path, monkeypatch)

    assert set(items) == {
        "qwen 'x':7b", "plain", "anthropic", "claude-x", "google", "c", *SETTINGS
    }  # fmt: skip
    assert not any("very-secret" in item.why for item in items.values())
    for item in items.values():
        if item.why.startswith("tui-agent "):
            command = shlex.split(item.why.partition("; its API key")[0])
            assert run(command[1:]) == 0, (command, capsys.readouterr())
    config = load_config().config
    bench = config.models["openai/qwen 'x':7b"]
    assert (bench.base_url, bench.api_key_env) == (LOCAL["baseUrl"], "BENCH_KEY")
    assert (bench.context_window, bench.max_output) == (32000, 4096)
    assert (bench.reasoning, bench.vision) == (True, True)
    assert (bench.input_price, bench.output_price, bench.cache_read_price) == (1.5, 2, 0.1)
    assert config.models["ollama/plain"].api_key_env is None
    assert "its API key is not copied" in items["plain"].why
    assert config.models["anthropic/c"].base_url == "https://gate.example"
    assert config.models["anthropic/claude-x"].context_window == 5000
    assert config.providers["anthropic"].base_url == "https://proxy.example.com/v1"
    assert config.providers["gemini"].base_url == "https://g.example.com"
    assert (config.model, config.effort) == ("gemini/gemini-x", "xhigh")
    assert items["theme"].why == "choose a theme with /theme"


def test_the_default_model_of_a_server_is_named_as_the_command_for_its_server_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "home/.pi/agent/models.json", json.dumps({"providers": PROVIDERS}))
    settings = {"defaultProvider": "bench", "defaultModel": "qwen 'x':7b"}
    write(tmp_path / "home/.pi/agent/settings.json", json.dumps(settings))

    for item in found(tmp_path, monkeypatch).values():
        if item.why.startswith("tui-agent "):
            assert run(shlex.split(item.why.partition("; its API key")[0])[1:]) == 0
    assert load_config().config.model == "openai/qwen 'x':7b"


def test_values_that_are_refused_here_are_left_out_of_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = {"id": "m", "contextWindow": 0, "maxTokens": -1, "cost": {"input": -1, "output": 2}}
    bench = {**LOCAL, "models": [odd, {"id": ["list"]}]}
    write(tmp_path / "home/.pi/agent/models.json", json.dumps({"providers": {"bench": bench}}))
    settings = {"defaultProvider": None, "defaultModel": None}
    write(tmp_path / "home/.pi/agent/settings.json", json.dumps(settings))

    items = found(tmp_path, monkeypatch)
    assert set(items) == {"m", *settings}
    assert run(shlex.split(items["m"].why)[1:]) == 0
    assert items["defaultModel"].why == "choose a model with /model, or set model in config.toml"


@pytest.mark.parametrize(
    "text",
    [
        "[]", "{", '{"providers": []}', '{"providers": {"a": 1, "b": {"models": 3, "modelOverrides": []}}}',
        '{"providers": {"c": {"models": [1, {"id": 2, "contextWindow": "x", "cost": 5, "input": "text"}]}}}',
        '{"providers": {"c": {"models": [{"id": "x", "contextWindow": 1e999}]}}}',
    ],
)  # fmt: skip
def test_odd_files_are_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    write(tmp_path / "home/.pi/agent/models.json", text)
    write(tmp_path / "home/.pi/agent/settings.json", text)

    for item in found(tmp_path, monkeypatch).values():
        if "config set" in item.why:
            tomllib.loads("x = " + shlex.split(item.why.partition("; its API key")[0])[-1])
