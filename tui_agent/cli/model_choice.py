"""Chooses the model of a new session when no flag and no session names one; builds what is known of models."""

import os
from collections.abc import Callable, Container

from tui_agent.agent.clients import NO_MODEL
from tui_agent.config import Config
from tui_agent.model.demo_catalog import DemoCatalog
from tui_agent.model.directory import CatalogDirectory
from tui_agent.model.keys import Keys
from tui_agent.model.logins import Logins
from tui_agent.model.served import ServedModels
from tui_agent.paths import cache_dir, data_dir

LEARNT = "learnt.json"
"""Where what was learnt of models is kept, in the data directory."""
DEFAULT_MODELS = (
    "anthropic/claude-sonnet-5",
    "openai/gpt-5.6",
    "gemini/gemini-3.1-pro-preview",
    "mistral/mistral-medium-latest",
    "deepseek/deepseek-flash",
    "xai/grok-4.20",
    "openrouter/anthropic/claude-sonnet-5",
)
"""What is used when no model is configured: the first whose provider has a key."""


def catalog_of(config: Config) -> DemoCatalog:
    """Return what is known of models under these settings and this environment."""
    served = ServedModels(cache_dir() / "servers.json")
    return DemoCatalog(config.models, config.providers, environ=os.environ, served=served)


def directory_of(catalog: DemoCatalog) -> CatalogDirectory:
    """Return what is known of models with what was learnt by using them."""
    return CatalogDirectory(catalog, data_dir() / LEARNT)


def keys_of(config: Config, logins: Logins | None = None) -> Keys:
    """Return the keys under these settings and this environment; ``logins`` are those entered, read when left out."""
    return Keys(
        os.environ, providers=config.providers, models=config.models, logins=Logins() if logins is None else logins
    )


def own_models(config: Config) -> tuple[str, ...]:
    """Return the models of the settings that say where their server is; the other tables only correct the catalog."""
    return tuple(name for name, settings in config.models.items() if settings.base_url)


def choose_model(config: Config, providers: Container[str], knows: Callable[[str], bool]) -> str:
    """Return the ``model`` setting, else the only model of a server of the user's, else the first default with a key.

    ``providers`` are those with a key, ``knows`` tells whether the catalog has a model. "" when there is none, or when
    several servers are set up and the user has to say which.
    """
    if config.model:
        return config.model
    own = own_models(config)
    if len(own) == 1:
        return own[0]
    return next(
        (model for model in DEFAULT_MODELS if model.partition("/")[0] in providers and knows(model)),
        NO_MODEL,
    )
