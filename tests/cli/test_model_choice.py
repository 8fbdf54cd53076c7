"""The model of a new session when no flag names one."""

from collections.abc import Mapping

import pytest

from tui_agent.cli.models import DEFAULT_MODELS, choose_model
from tui_agent.config import Config

MINE = {"base_url": "http://localhost:8080/v1", "context_window": 32_768}


@pytest.mark.parametrize(
    ("models", "providers", "chosen"),
    [
        ({"openai/my-model": MINE}, (), "openai/my-model"),
        ({"openai/my-model": MINE}, ("anthropic",), "openai/my-model"),
        ({"openai/one": MINE, "openai/two": MINE}, (), ""),
        ({"openai/one": MINE, "openai/two": MINE}, ("anthropic",), DEFAULT_MODELS[0]),
        ({"anthropic/claude-haiku-4-5": {"threshold": "80%"}}, ("anthropic",), DEFAULT_MODELS[0]),
        ({}, (), ""),
    ],
)
def test_the_only_server_of_the_settings_is_used_and_a_correction_of_the_catalog_is_none(
    models: Mapping[str, object], providers: tuple[str, ...], chosen: str
) -> None:
    assert choose_model(Config.model_validate({"models": models}), providers, lambda _model: True) == chosen


def test_what_the_settings_say_counts_first() -> None:
    config = Config.model_validate({"model": "openai/other", "models": {"openai/my-model": MINE}})
    assert choose_model(config, ("anthropic",), lambda _model: True) == "openai/other"
