"""Finds keys in the configuration, the environment or a login. Keys are never logged."""

from collections.abc import Mapping

from pydantic import SecretStr

from tui_agent.lazy import frozen
from tui_agent.model.logins import SOURCE, Logins
from tui_agent.model.providers import PROVIDERS, Provider, provider_of
from tui_agent.model.settings import ModelSettings, ProviderSettings


@frozen
class Key:
    """A key and its ``source`` for messages: a variable, a configuration table, or a login."""

    secret: SecretStr
    source: str


class Keys:
    """Finds the key of a provider or model.

    Tried in this order: the settings of the model, those of the provider, the provider's
    environment variables, a key stored by ``/login``.
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

    def find(self, provider: Provider, model: str | None = None) -> Key | None:
        for table, settings in self._tables(provider, model):
            if key := self._set_up(table, settings):
                return key
        for variable in provider.keys:
            if key := self._of(variable):
                return key
        entered = None
        if self._logins is not None:
            entered = self._logins.find(provider.id)
        if entered is not None:
            return Key(SecretStr(entered), SOURCE)
        return None

    def own(self, model: str) -> Key | None:
        settings = self._models.get(model)
        if settings is None:
            return None
        return self._set_up(f'models."{model}"', settings)

    def _set_up(self, table: str, settings: ModelSettings | ProviderSettings) -> Key | None:
        if settings.api_key is not None and settings.api_key.get_secret_value():
            return Key(settings.api_key, f"api_key under [{table}]")
        if settings.api_key_env:
            return self._of(settings.api_key_env)
        return None

    def _of(self, variable: str) -> Key | None:
        """Return the key in an environment variable, without surrounding space; None if it is empty."""
        value = self._environ.get(variable, "").strip()
        if value:
            return Key(SecretStr(value), variable)
        return None

    def advice(self, provider: Provider, model: str | None = None) -> str:
        named: list[str] = []
        for _table, settings in self._tables(provider, model):
            if settings.api_key_env:
                named.append(settings.api_key_env)
        variable = (named or list(provider.keys) or [f"{provider.id.upper()}_API_KEY"])[0]
        return f"use /login (or tui-agent login {provider.id}), or set {variable}"

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
        """Return the provider's parameters that the environment sets, by litellm's names.

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
        if provider.id in self._providers:
            tables.append((f"providers.{provider.id}", self._providers[provider.id]))
        return tables
