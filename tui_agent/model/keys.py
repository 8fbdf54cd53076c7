"""Finds API keys in the settings, the environment or a login. Keys are never logged."""

from collections.abc import Mapping

from pydantic import SecretStr

from tui_agent.lazy import frozen
from tui_agent.model.addresses import Addresses, is_same_server
from tui_agent.model.logins import SOURCE, Logins
from tui_agent.model.providers import PROVIDERS, Provider, provider_of
from tui_agent.model.settings import ModelSettings, ProviderSettings


@frozen
class Key:
    """An API key. ``source`` tells the user where it comes from: a variable, a table or a login."""

    secret: SecretStr
    source: str


class Keys:
    """Finds the key of a provider or model.

    The following places are searched in this order: the settings of the model, the settings of the
    provider, the provider's environment variables, the keys stored by ``/login``. A key is found
    only for requests to a server that it belongs to: the server that the key's settings table is
    about, the server that the environment sets for the provider, or the provider's own server.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        providers: Mapping[str, ProviderSettings] | None = None,
        models: Mapping[str, ModelSettings] | None = None,
        logins: Logins | None = None,
    ) -> None:
        self._environ = environ
        self._logins = logins
        self._providers = dict(providers or {})
        self._models = dict(models or {})
        self._addresses = Addresses(environ, self._models, self._providers)
        self._environment = Addresses(environ)

    def find(self, provider: Provider, model: str | None = None) -> Key | None:
        """Return the key for requests to a model or, if ``model`` is None, to the provider.

        Returns None if there is no key, or none that belongs to the server to be called.
        """
        for table, settings in self._tables(provider, model):
            if key := self._set_up(table, settings):
                return key
        if self._takes_environment(provider, model):
            for variable in provider.keys:
                if key := self._of(variable):
                    return key
        if self._logins is not None and self._takes_login(provider, model):
            entered = self._logins.find(provider.id)
            if entered is not None:
                return Key(SecretStr(entered), SOURCE)
        return None

    def is_at_provider(self, provider: Provider, model: str | None) -> bool:
        """Return whether a model's requests go to the server set up for the whole provider."""
        place = self._addresses.of(provider, model)
        whole = self._addresses.of(provider)
        return not place.is_of_one_model or is_same_server(place.url, whole.url)

    def _takes_environment(self, provider: Provider, model: str | None) -> bool:
        """Return whether the keys in the provider's environment belong to the model's server."""
        if self._takes_login(provider, model):
            return True
        place = self._addresses.of(provider, model)
        return is_same_server(place.url, self._environment.of(provider).url)

    def _takes_login(self, provider: Provider, model: str | None) -> bool:
        """Return whether a stored key belongs to the model's server.

        Stored keys were entered for the provider at its current address, and tested there.
        """
        place = self._addresses.of(provider, model)
        return self.is_at_provider(provider, model) or is_same_server(place.url, provider.url)

    def _set_up(self, table: str, settings: ModelSettings | ProviderSettings) -> Key | None:
        if settings.api_key is not None and settings.api_key.get_secret_value():
            return Key(settings.api_key, f"api_key under [{table}]")
        if settings.api_key_env:
            return self._of(settings.api_key_env)
        return None

    def _of(self, variable: str) -> Key | None:
        """Return the key in an environment variable, without outer white space; None if empty."""
        value = self._environ.get(variable, "").strip()
        if value:
            return Key(SecretStr(value), variable)
        return None

    def advice(self, provider: Provider, model: str | None = None) -> str:
        """Return advice on how to set a missing key. The advice is a part of a sentence."""
        place = self._addresses.of(provider, model)
        named = [
            settings.api_key_env
            for _table, settings in self._tables(provider, model)
            if settings.api_key_env
        ]
        unsent = [variable for variable in provider.keys if self._of(variable)]
        if named:
            step = f"set {named[0]}"
        elif self._takes_environment(provider, model):
            step = f"set {(*provider.keys, f'{provider.id.upper()}_API_KEY')[0]}"
        elif unsent:
            step = (
                f'set api_key_env = "{unsent[0]}" under [{place.source}]; otherwise the key in '
                f"that variable is sent only to {provider.name}'s own server"
            )
        else:
            step = f"set api_key_env or api_key under [{place.source}]"
        if self._takes_login(provider, model):
            return f"use /login (or tui-agent login {provider.id}), or {step}"
        return step

    def available(self) -> dict[str, str]:
        names = dict.fromkeys((*PROVIDERS, *self._providers, *(self._logins or ())))
        found: dict[str, str] = {}
        for name in names:
            provider = provider_of(name)
            key = self.find(provider)
            if key is not None:
                found[provider.id] = key.source
            elif provider.required and not self.missing_parameters(provider):
                found[provider.id] = provider.variables[provider.required[0]][0]
        return found

    def parameters(self, provider: Provider) -> dict[str, str]:
        """Return the provider's parameters that the environment sets, under litellm's names.

        The address is one of them (``api_base``), the key is not.
        """
        found: dict[str, str] = {}
        for name, variables in provider.variables.items():
            for variable in variables:
                value = self._environ.get(variable)
                if value:
                    found.setdefault(name, value)
        return found

    def missing_parameters(self, provider: Provider) -> list[str]:
        have = self.parameters(provider)
        return [provider.variables[name][0] for name in provider.required if name not in have]

    def _tables(
        self, provider: Provider, model: str | None
    ) -> list[tuple[str, ModelSettings] | tuple[str, ProviderSettings]]:
        tables: list[tuple[str, ModelSettings] | tuple[str, ProviderSettings]] = []
        if model is not None and model in self._models:
            tables.append((f'models."{model}"', self._models[model]))
        if provider.id in self._providers and self.is_at_provider(provider, model):
            tables.append((f"providers.{provider.id}", self._providers[provider.id]))
        return tables
