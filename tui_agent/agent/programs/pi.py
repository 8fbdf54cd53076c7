"""Lists Pi's settings and models, with the commands that set them up here.

Pi's MCP servers are read by ``foreign_servers``. Source: Pi's documentation of its settings and
models.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.programs.found import (
    ForeignSettings,
    FoundItem,
    ModelOffer,
    effort_command,
    quoted_key,
    set_command,
    settings_files,
    unreadable,
    unused_settings,
)
from tui_agent.foreign_file import ForeignFile, read_of_user
from tui_agent.json_text import as_dict, as_list, as_text, objects
from tui_agent.lazy import LazyPattern

PROGRAM = "Pi"

_SETTINGS = ".pi/agent/settings.json"
_PROJECT_SETTINGS = ".pi/settings.json"
MODELS_FILE = ".pi/agent/models.json"
_INSTEAD = {
    "compaction": "set [compaction] in config.toml",
    "defaultModel": "choose a model with /model, or set model in config.toml",
    "defaultProvider": "write a model's name with its provider: PROVIDER/MODEL",
    "defaultProjectTrust": "you are asked about each project; --trust trusts one without asking",
    "defaultThinkingLevel": "set effort in config.toml, or use /effort",
    "defaultTools": "list the tools of an agent in agents/NAME.md",
    "enabledModels": "/next-model goes through the models that you used recently",
    "extensions": "its extensions are not supported",
    "externalEditor": "set EDITOR",
    "httpProxy": "set HTTPS_PROXY",
    "packages": "its packages are not supported",
    "retry": "set [retry] in config.toml",
    "theme": "choose a theme with /theme",
}
"""For Pi's settings without effect here: how to get their effect in this program."""
_PROVIDERS = {
    "amazon-bedrock": "bedrock",
    "azure-openai-responses": "azure",
    "google": "gemini",
    "google-vertex": "vertex_ai",
    "llama.cpp": "llamafile",
    "openai-codex": "chatgpt",
}
"""This program's ids of Pi's providers, where they differ by more than hyphens."""
_OWN = frozenset({"llamafile", "lm_studio", "ollama"})
"""This program's ids of providers that always run on the user's own servers.

Models on them keep the provider even if Pi's settings name an address.
"""
_APIS = {
    "anthropic-messages": "anthropic",
    "google-generative-ai": "gemini",
    "openai-completions": "openai",
    "openai-responses": "openai",
}
"""For each API in Pi's settings, this program's provider for a server of the user's own."""
_COSTS = {
    "input": "input_price",
    "output": "output_price",
    "cacheRead": "cache_read_price",
    "cacheWrite": "cache_write_price",
}
_VARIABLE = LazyPattern(r"\$\{?([A-Za-z_]\w*)\}?")
_OLD_VARIABLE = LazyPattern(r"[A-Z][A-Z\d_]*_(?:KEY|TOKEN)")
"""Matches a variable as Pi's older versions wrote it, without a dollar sign."""


def read_pi(folders: Folders) -> ForeignSettings:
    """Return Pi's settings and models as ``items``.

    None of them has an effect in this program by itself. An item may name a command that sets it
    up, or give advice.
    """
    items: list[FoundItem] = []
    # The providers come first: a model can be set only if its provider is known.
    models = read_of_user(folders.home, MODELS_FILE)
    if models is not None:
        items += unreadable(PROGRAM, models)
        items += [offer.item(models) for offer in model_offers(models)]
    for file in settings_files(folders, [_SETTINGS], [_PROJECT_SETTINGS]):
        items += unreadable(PROGRAM, file)
        items += unused_settings(PROGRAM, file, (), instead=_instead_of(file, models))
    return ForeignSettings(items=tuple(items))


def _instead_of(file: ForeignFile, models: ForeignFile | None) -> dict[str, str]:
    """Return for each setting how to get its effect here: advice, or a command that sets it."""
    instead = dict(_INSTEAD)
    if model := _default_model(file, models):
        instead["defaultModel"] = set_command("model", model)
    if effort := effort_command(file.table.get("defaultThinkingLevel")):
        instead["defaultThinkingLevel"] = effort
    return instead


def _default_model(file: ForeignFile, models: ForeignFile | None) -> str:
    """Return this program's id of the default model; "" if model or provider is missing."""
    name = as_text(file.table.get("defaultProvider"))
    model = as_text(file.table.get("defaultModel"))
    if not name or not model:
        return ""
    common = models.section("providers", name) if models is not None else {}
    for row in _models_of(common):
        if row["id"] == model:
            return _model_id(name, {**common, **row})
    return f"{_provider_of(name)}/{model}"


def model_offers(file: ForeignFile) -> Iterator[ModelOffer]:
    """Yield the providers and models of ``models.json``."""
    for name, given in file.section("providers").items():
        common = as_dict(given)
        models = _models_of(common)
        overrides = as_dict(common.get("modelOverrides"))
        if not models and common.get("baseUrl"):
            row = _address_and_key(common)
            key = f"providers.{quoted_key(_provider_of(str(name)))}"
            leaves_key = bool(common.get("apiKey")) and "api_key_env" not in row
            yield ModelOffer(PROGRAM, "provider", str(name), key, table=row, leaves_key=leaves_key)
        for model in models:
            own = {**common, **model}
            model_id = _model_id(str(name), own)
            row = {**_address_and_key(own), **_facts(model)}
            if own.get("api") == "openai-responses":
                row["wire"] = "responses"
            yield ModelOffer.of(PROGRAM, model_id, row, key_written=own.get("apiKey"))
        for model_id, changes in overrides.items():
            row = _facts(as_dict(changes))
            yield ModelOffer.of(PROGRAM, f"{_provider_of(str(name))}/{model_id}", row)


def _models_of(provider: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [row for row in objects(provider.get("models")) if as_text(row.get("id"))]


def _model_id(name: str, given: Mapping[str, Any]) -> str:
    """Return this program's id of a model of the provider that Pi calls ``name``.

    ``given`` contains the settings of the provider and of the model.
    """
    return f"{_server_of(name, given)}/{given['id']}"


def _address_and_key(given: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if isinstance(url := given.get("baseUrl"), str):
        row["base_url"] = url
    key = str(given.get("apiKey", ""))
    if variable := _VARIABLE.fullmatch(key):
        row["api_key_env"] = variable[1]
    elif _OLD_VARIABLE.fullmatch(key):
        row["api_key_env"] = key
    return row


def _facts(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the settings say about a model, under this program's names for the fields."""
    row: dict[str, Any] = {}
    for theirs, ours in (("contextWindow", "context_window"), ("maxTokens", "max_output")):
        if _is_number(model.get(theirs)) and model[theirs] >= 1:
            row[ours] = int(model[theirs])
    if isinstance(model.get("reasoning"), bool):
        row["reasoning"] = model["reasoning"]
    if "input" in model:
        row["vision"] = "image" in as_list(model["input"])
    cost = as_dict(model.get("cost"))
    for theirs, ours in _COSTS.items():
        if _is_number(cost.get(theirs)) and cost[theirs] >= 0:
            row[ours] = cost[theirs]
    return row


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12


def _server_of(name: str, given: Mapping[str, Any]) -> str:
    """Return the name of this program's provider for a model of another program.

    This is the provider ``name`` or, for the user's own server, a provider with the same API.
    """
    provider = _provider_of(name)
    if provider in _OWN or not given.get("baseUrl"):
        return provider
    return _APIS.get(str(given.get("api", "")), "openai")


def _provider_of(name: str) -> str:
    return _PROVIDERS.get(name) or re.sub(r"\W", "_", name)
