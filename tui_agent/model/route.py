"""Where a request goes: which name and parameters litellm is called with for a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from tui_agent.model.catalog import Catalog, ModelInfo
from tui_agent.model.errors import Target, missing_key
from tui_agent.model.keys import Key, Keys
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.providers import Provider, provider_of
from tui_agent.model.settings import ModelSettings, ProviderSettings

NO_KEY = "none"
"""Sent to servers that want no key: clients insist on having one."""


@dataclass(frozen=True, slots=True)
class Route:
    """How to call a model. ``parameters`` are litellm's, without the key, which stays wrapped until it is sent."""

    info: ModelInfo
    provider: Provider
    target: Target
    parameters: dict[str, Any] = field(default_factory=dict)
    key: SecretStr | None = None
    is_small_server: bool = False
    """An OpenAI-compatible server of the user's own choice, not held to every word of the format."""

    def call(self) -> dict[str, Any]:
        """Return the parameters with the key."""
        secret = {"api_key": self.key.get_secret_value()} if self.key is not None else {}
        return {**self.parameters, **secret}


class Router:
    """Finds the route of a model from settings, environment and catalog."""

    def __init__(
        self,
        catalog: Catalog,
        environ: Mapping[str, str],
        *,
        models: Mapping[str, ModelSettings] | None = None,
        providers: Mapping[str, ProviderSettings] | None = None,
    ) -> None:
        self.environ = dict(environ)
        self._catalog = catalog
        self._models = dict(models or {})
        self._providers = dict(providers or {})
        self.keys = Keys(self.environ, providers=self._providers, models=self._models)

    def use(self, models: Mapping[str, ModelSettings], providers: Mapping[str, ProviderSettings]) -> None:
        """Know models and providers from now on as the user set them up, while the program runs."""
        self._models, self._providers = dict(models), dict(providers)
        self._catalog.use(models, providers)
        self.keys = Keys(self.environ, providers=self._providers, models=self._models)

    def add(self, model: str, settings: ModelSettings) -> None:
        """Know a model from now on as the user set it up, while the program runs."""
        self._models[model] = settings
        self._catalog.add(model, settings)
        self.keys = Keys(self.environ, providers=self._providers, models=self._models)

    def route(self, model: str) -> Route:
        """Return how to call a model.

        Raises:
            ModelError: the provider needs a key or an address that is not set; the message names the variable.
        """
        info = self._catalog.info(model)
        provider = provider_of(info.provider)
        settings = self._models.get(model, ModelSettings())
        common = self._providers.get(provider.id, ProviderSettings())
        base_url = settings.base_url or common.base_url
        key = self.keys.find(provider, model)
        target = Target(
            model=model,
            provider=provider.name if base_url is None else _host(base_url),
            address=_host(base_url or provider.local_url or "") or f"{provider.name}'s API",
            key=key.source if key is not None else self.keys.advice(provider, model),
            empty_body_is_overflow=provider.empty_body_is_overflow,
        )
        parameters = self._parameters(provider, base_url)
        self._require(provider, base_url, key, target)
        parameters["model"] = _litellm_name(model, provider)
        if headers := {**common.headers, **settings.headers}:
            parameters["extra_headers"] = headers
        if settings.reasoning_effort is not None:
            parameters["reasoning_effort"] = settings.reasoning_effort
        if provider.id == "ollama":
            # Ollama cuts what is over its default of a few thousand tokens without a word, unless told the size.
            parameters["num_ctx"] = info.context_window
        parameters |= settings.options
        is_small = provider.local_url is not None or (provider.id == "openai" and base_url is not None)
        secret = key.secret if key is not None else None
        if secret is None and (base_url or provider.local_url):
            secret = SecretStr(NO_KEY)
        return Route(info, provider, target, parameters, secret, is_small_server=is_small)

    def _parameters(self, provider: Provider, base_url: str | None) -> dict[str, Any]:
        parameters: dict[str, Any] = dict(self.keys.parameters(provider))
        credentials = parameters.get("vertex_credentials")
        if credentials and not credentials.lstrip().startswith("{"):
            # The host works in another directory.
            parameters["vertex_credentials"] = str(Path(credentials).expanduser().absolute())
        address = base_url or parameters.get("api_base") or provider.local_url
        if address:
            parameters["api_base"] = address.rstrip("/")
        return parameters

    def _require(self, provider: Provider, base_url: str | None, key: Key | None, target: Target) -> None:
        missing = self.keys.missing_parameters(provider)
        if missing and base_url is None and (key is None or provider.id != "bedrock"):
            raise ModelError(ErrorKind.AUTH, f"{provider.name} needs {' and '.join(missing)} to be set.")
        wants_key = bool(provider.keys) and provider.id != "bedrock" and not provider.local_url
        if key is None and base_url is None and wants_key:
            raise missing_key(target)


def _litellm_name(model: str, provider: Provider) -> str:
    prefix, slash, name = model.partition("/")
    if provider.id == "ollama":
        return f"ollama_chat/{name if slash else model}"
    if not slash:
        return f"{provider.id}/{model}"
    # litellm knows the provider by its own name, not by the short ones accepted here.
    return f"{provider.id}/{name}" if provider_of(prefix).id == provider.id and prefix != provider.id else model


def _host(url: str) -> str:
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.hostname}{port}" if parts.hostname else url
