"""Finds the address for a model's requests, and says where that address was set."""

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, urlsplit, urlunsplit

from tui_agent.lazy import frozen
from tui_agent.model.providers import PROVIDERS, Provider, provider_of
from tui_agent.model.settings import ModelSettings, ProviderSettings

_USUAL_PORTS = {"http": 80, "https": 443}


@frozen
class AddressSetting:
    """A base URL and where it was set.

    ``source`` is a table of the settings (``providers.openai``), an environment variable, or "" for
    the provider's default.
    """

    url: str
    source: str = ""

    @property
    def is_own(self) -> bool:
        """Whether the user set the address, or it points to this machine or the local network."""
        return bool(self.source) or is_private(self.url)

    @property
    def is_of_one_model(self) -> bool:
        """Whether the address was set for one model only, rather than for its whole provider."""
        return self.source.startswith("models.")

    @property
    def host(self) -> str:
        """The URL's host and port, without a password; the whole URL if it has no host."""
        return split(self.url).netloc.rpartition("@")[2] or self.url


class Addresses:
    """Finds the address to use for a model or provider, and where it comes from.

    The address is taken from the first of these that has one: the settings of the model, the
    settings of the provider, the environment, the provider's default.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        models: Mapping[str, ModelSettings] | None = None,
        providers: Mapping[str, ProviderSettings] | None = None,
    ) -> None:
        self._environ = environ or {}
        self._models = models or {}
        self._providers = providers or {}

    def of(self, provider: Provider, model: str | None = None) -> AddressSetting:
        settings = None
        if model is not None:
            settings = self._models.get(model)
        if settings is not None:
            options = (settings.options.get("api_base"), settings.options.get("base_url"))
            url = next(
                (option for option in options if isinstance(option, str) and option),
                settings.base_url,
            )
            if url:
                return AddressSetting(url, f'models."{model}"')
        common = self._providers.get(provider.id)
        if common is not None and common.base_url:
            return AddressSetting(common.base_url, f"providers.{provider.id}")
        for variable in provider.url_variables:
            if url := self._environ.get(variable):
                return AddressSetting(url, variable)
        return AddressSetting(provider.local_url or provider.url)

    def overridden(self) -> Iterator[tuple[Provider, AddressSetting]]:
        for provider in dict.fromkeys((*PROVIDERS, *self._providers)):
            place = self.of(provider_of(provider))
            if place.source:
                yield provider_of(provider), place


def split(url: str) -> SplitResult:
    """Return the parts of a URL; all empty if it is invalid, for example because of its port."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises if the port is bad
    except ValueError:
        return urlsplit("")
    return parts


def is_same_server(one: str, other: str) -> bool:
    """Return whether two URLs have the same scheme, host and port; False if one has no host."""
    return bool(_origin(one)) and _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str, int] | None:
    parts = split(url)
    if not parts.hostname:
        return None
    scheme = parts.scheme.lower()
    return scheme, parts.hostname, parts.port or _USUAL_PORTS.get(scheme, 0)


def plain_url(url: str) -> str:
    """Return a URL that can be shown and stored.

    It has no user, password, query and trailing slash.
    """
    parts = split(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme.lower(), host.lower(), parts.path.rstrip("/"), "", ""))


def is_private(url: str) -> bool:
    """Return whether a URL's host is this machine or on a private network, without asking DNS.

    Names without a dot count as private, and so do names that end in ``.local`` or the like.
    """
    host = (split(url).hostname or "").lower()
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return bool(host) and (
            "." not in host or host.endswith((".local", ".localhost", ".internal", ".lan"))
        )
