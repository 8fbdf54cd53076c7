"""Finds how to call a model: its format, address, name at the provider, key and parameters."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tui_agent.json_text import as_dict, as_text
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.model.addresses import Addresses, split
from tui_agent.model.catalog import Catalog, ModelInfo, name_of
from tui_agent.model.errors import Target
from tui_agent.model.keys import Keys
from tui_agent.model.logins import Logins
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.providers import ChatFormat, Endpoint, Provider, WireName, provider_of
from tui_agent.model.redaction import redact
from tui_agent.model.settings import ModelSettings, ProviderSettings

NO_KEY = "none"
"""Placeholder key sent to servers that need none."""

_FOR_LITELLM = {
    "allowed_openai_params",
    "api_key",
    "custom_llm_provider",
    "drop_params",
    "max_retries",
    "num_retries",
    "timeout",
    "stream",
    "stream_options",
    "api_base",
    "base_url",
    "api_version",
    "extra_headers",
    "extra_query",
    "extra_body",
    "organization",
}
"""Options in the settings that are arguments of litellm's call, not fields of a request's body."""

_TINY_TEMPERATURE = 0.2
"""Temperature for tiny models. At the higher default temperatures of servers, these models don't
follow the instructions of ``model.steps``."""
_CREDENTIALS = LazyPattern(r"(?i)auth|cookie|key|token|secret|password")
"""Matches names of headers that hold credentials."""
_VERSIONED = LazyPattern(r"/v\d+\w*$")
_NO_MODEL_SETTINGS = ModelSettings.model_construct()
_NO_PROVIDER_SETTINGS = ProviderSettings.model_construct()
_PATHS = ("/chat/completions", "/responses", "/messages", "/api/chat")


@frozen
class Route:
    """How to call a model.

    If ``wire`` is None, litellm makes the call. In that case, ``parameters`` are its arguments, and
    ``name``, ``base_url``, ``query``, ``options`` and ``chat`` are not used.
    """

    info: ModelInfo
    provider: Provider
    target: Target
    parameters: dict[str, Any] = field(default_factory=dict)
    """Arguments for litellm, without the key. They are empty if the request has a ``wire``, that
    is, if litellm isn't used."""
    key: SecretStr | None = None
    bearer: bool = False
    """Whether to send the key as a bearer token, even if the provider's ``auth`` says otherwise."""
    is_small_server: bool = False
    """Whether the server is a local one, or an OpenAI-compatible one at an address that the user
    set. Such a server may not follow the API's format exactly."""
    end_marks: bool = True
    """Whether the server is expected to mark the end of an answer. If so, an answer without the
    mark may be incomplete."""
    is_own_server: bool = False
    """Whether the model runs on a model server at a private address, such as llama.cpp."""
    is_elsewhere: bool = False
    """Whether the user set the address, so that the server may not be the provider's own."""
    wire: WireName | None = None
    """The provider format of the request; None if litellm makes the call."""
    name: str = ""
    """The provider's name for the model."""
    base_url: str = ""
    """URL to which a wire's path is appended, without a slash at its end."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the provider and of the user's settings, without the key."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Query parameters of the URL."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request's body, from the user's settings."""
    chat: ChatFormat = ChatFormat()
    """The provider's variant of chat completions, with corrections from the user's settings."""

    def secret_headers(self) -> dict[str, str]:
        """Return the headers that carry the key; {} if there is no key."""
        if self.key is None:
            return {}
        return self.provider.key_header(self.key.get_secret_value(), bearer=self.bearer)


class Router:
    """Finds the route of a model (how it is called) from settings, environment and catalog."""

    def __init__(
        self,
        catalog: Catalog,
        environ: Mapping[str, str],
        *,
        models: Mapping[str, ModelSettings] | None = None,
        providers: Mapping[str, ProviderSettings] | None = None,
        logins: Logins | None = None,
    ) -> None:
        self.environ = dict(environ)
        self.catalog = catalog
        self._models = dict(models or {})
        self._providers = dict(providers or {})
        self.logins = logins
        self._make_keys_and_addresses()

    def use(
        self, models: Mapping[str, ModelSettings], providers: Mapping[str, ProviderSettings]
    ) -> None:
        self._models = dict(models)
        self._providers = dict(providers)
        self.catalog.use(models, providers)
        self._make_keys_and_addresses()

    def _make_keys_and_addresses(self) -> None:
        self.keys = Keys(
            self.environ, providers=self._providers, models=self._models, logins=self.logins
        )
        self._addresses = Addresses(self.environ, self._models, self._providers)

    def wire(self, model: str) -> WireName | None:
        """Return a model's format: from the settings, or else its provider's; None for litellm.

        A provider that neither this program nor litellm knows is taken as the user's own server;
        its format is chat completions.
        """
        provider = provider_of(self.catalog.provider(model))
        settings = self._models.get(model, _NO_MODEL_SETTINGS)
        chosen = settings.wire or self._providers.get(provider.id, _NO_PROVIDER_SETTINGS).wire
        if chosen is None and self.catalog.is_new_provider(provider):
            return "chat"
        if chosen is None:
            wire = provider.wire_of(name_of(model))
            has_responses = any(other == "responses" for _pattern, other in provider.wires)
            only = wire == "chat" and has_responses and self.catalog.info(model).responses_only
            return "responses" if only else wire
        return None if chosen == "litellm" else chosen

    def route(self, model: str) -> Route:
        """Return how to call a model.

        Raises:
            ModelError: the provider needs a key, an address or a parameter that is not set, or the
                address is not valid. The message names the variable or setting.
        """
        info = self.catalog.info(model)
        provider = provider_of(info.provider)
        settings = self._models.get(model, _NO_MODEL_SETTINGS)
        common = self._providers.get(provider.id, _NO_PROVIDER_SETTINGS)
        environment = self.keys.parameters(provider)
        options = settings.options
        place = self._addresses.of(provider, model)
        url = as_text(options.get("api_base") or options.get("base_url")) or (
            place.url if place.source else None
        )
        if url is not None and not (
            split(url).hostname and split(url).scheme.lower() in ("http", "https")
        ):
            raise ModelError(
                ErrorKind.INVALID_REQUEST,
                f"The address “{redact(url)}” can't be used. Check {place.source or 'base_url'}: it must look like "
                "http://localhost:8080/v1.",
            )
        if url is None and self.catalog.is_new_provider(provider):
            raise ModelError(ErrorKind.NOT_FOUND, _no_address(provider))
        key = self.keys.find(provider, model)
        target = Target(
            model=model,
            provider=provider.name if url is None else _host(url),
            address=_host(url or provider.local_url or "") or f"{provider.name}'s API",
            key=key.source if key is not None else self.keys.advice(provider, model),
            has_key=key is not None,
            empty_body_is_overflow=provider.empty_body_is_overflow,
        )
        # A server at an address set by the user may need no key, but a provider's own server always
        # needs one.
        keyless = url is not None and (
            "api_base" not in provider.required or place.source not in provider.url_variables
        )
        missing = self.keys.missing_parameters(provider)
        if missing and url is None and (key is None or provider.id != "bedrock"):
            raise ModelError(
                ErrorKind.AUTH, f"{provider.name} needs {' and '.join(missing)} to be set."
            )
        wants_key = bool(provider.keys) and provider.id != "bedrock" and not provider.local_url
        if key is None and wants_key and not keyless:
            raise ModelError(ErrorKind.AUTH, f"{target.provider} needs a key: {target.key}.")
        secret = key.secret if key is not None else None
        if secret is None and (url or provider.local_url):
            secret = SecretStr(NO_KEY)
        route = Route(
            info,
            provider,
            target,
            key=secret,
            bearer=key is not None and key.source in provider.bearer_keys,
            is_small_server=provider.local_url is not None
            or (url is not None and provider.chat_elsewhere is not None),
            is_own_server=self.catalog.is_own_server(model),
            is_elsewhere=url is not None,
            wire=self.wire(model),
            headers={
                **provider.headers,
                **self._provider_headers(provider, model),
                **settings.headers,
            },
        )
        if route.wire is None:
            return replace(
                route, parameters=_for_litellm(route, settings, {**environment, "api_base": url})
            )
        return _native(route, settings, common, {**environment, "api_base": url})

    def _provider_headers(self, provider: Provider, model: str) -> Mapping[str, str]:
        """Return the headers in the settings of a model's provider.

        If the model's server isn't its provider's, headers with credentials are left out.
        """
        headers = self._providers.get(provider.id, _NO_PROVIDER_SETTINGS).headers
        if self.keys.is_at_provider(provider, model):
            return headers
        return {name: value for name, value in headers.items() if not _CREDENTIALS.search(name)}


def _native(
    route: Route,
    settings: ModelSettings,
    common: ProviderSettings,
    environment: Mapping[str, str | None],
) -> Route:
    provider = route.provider
    options = dict(settings.options)
    name = route.info.name
    if provider.model_name is not None:
        name = provider.model_name(name)
    url = environment.get("api_base") or provider.local_url or provider.url
    given = {**environment, **options}
    said = {key: value for key, value in given.items() if isinstance(value, str)}
    address = Endpoint(url)
    if provider.address is not None and route.wire is not None:
        address = provider.address(url, name, route.wire, said)
    headers = {**route.headers, **as_dict(options.get("extra_headers"))}
    if organization := said.get("organization"):
        headers = {"openai-organization": organization, **headers}
    fields = {key: value for key, value in options.items() if key not in _FOR_LITELLM}
    if route.info.tiny:
        fields = {"temperature": _TINY_TEMPERATURE, **fields}
    chat = provider.chat
    if (
        provider.chat_elsewhere is not None
        and route.is_elsewhere
        and not re.search(provider.own_names, name)
    ):
        chat = provider.chat_elsewhere
    if back := settings.reasoning_back or common.reasoning_back:
        chat = replace(chat, reasoning_back=back)
    return replace(
        route,
        name=name,
        base_url=wire_base(address.url, route.wire),
        query={**address.query, **as_dict(options.get("extra_query"))},
        headers=headers,
        options={**fields, **as_dict(options.get("extra_body"))},
        chat=chat,
    )


def wire_base(url: str, wire: WireName | None) -> str:
    """Return the base URL to which the wire's path is appended, without a slash at its end.

    A path such as ``/chat/completions`` in the user's URL is removed; for Ollama, so are ``/v1``
    and ``/api``. For Anthropic's format, ``/v1`` is added if the URL has no version, because
    ANTHROPIC_BASE_URL is usually set without one.
    """
    url = url.rstrip("/")
    for path in _PATHS:
        url = url.removesuffix(path)
    if wire == "ollama":
        return url.removesuffix("/v1").removesuffix("/api")
    if wire == "messages" and not _VERSIONED.search(url):
        return f"{url}/v1"
    return url


def _for_litellm(
    route: Route, settings: ModelSettings, environment: Mapping[str, str | None]
) -> dict[str, Any]:
    provider = route.provider
    model = route.info.id
    parameters: dict[str, Any] = {}
    for key, value in environment.items():
        if value is not None:
            parameters[key] = value
    credentials = parameters.get("vertex_credentials")
    if credentials and not credentials.lstrip().startswith("{"):
        # litellm's process has a different working directory.
        parameters["vertex_credentials"] = str(Path(credentials).expanduser().absolute())
    if address := parameters.get("api_base") or provider.local_url:
        parameters["api_base"] = address.rstrip("/")
    prefix, slash, name = model.partition("/")
    if provider.id == "ollama":
        model = f"ollama_chat/{name if slash else model}"
    elif not slash:
        model = f"{provider.id}/{model}"
    elif provider_of(prefix).id == provider.id:
        # litellm knows the provider by its own name, not by the short names accepted here.
        model = f"{provider.id}/{name}"
    parameters["model"] = model
    if route.headers:
        parameters["extra_headers"] = dict(route.headers)
    if provider.id == "ollama":
        # Without a size, Ollama silently cuts a request to its default of a few thousand tokens.
        parameters["num_ctx"] = route.info.context_window
    return parameters | settings.options


def _no_address(provider: Provider) -> str:
    """Return the message for an unknown provider without an address."""
    command = f"tui-agent config set providers.{provider.id}.base_url URL"
    choice = "Choose another model with /model"
    return (
        f"There is no provider “{provider.id}”. {choice}. For a server of your own, run: {command}"
    )


def _host(url: str) -> str:
    parts = split(url)
    if parts.port:
        port = f":{parts.port}"
    else:
        port = ""
    if parts.hostname:
        return f"{parts.hostname}{port}"
    return url
