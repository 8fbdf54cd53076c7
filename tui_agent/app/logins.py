"""Lists providers, and tries, saves and removes the API keys that the user enters for them.

model/logins.py stores the keys; model/keys.py decides which of several sources a key is taken from.
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui_agent.config import Config
from tui_agent.lazy import frozen
from tui_agent.model.addresses import Addresses, AddressSetting
from tui_agent.model.keys import Keys
from tui_agent.model.logins import SOURCE, Logins, system_keyring
from tui_agent.model.providers import PROVIDERS, Provider
from tui_agent.model.route import wire_base

if TYPE_CHECKING:
    # Only for annotations: these modules import httpx, which isn't needed before the first request.
    from tui_agent.model.discovery import Trial
    from tui_agent.model.sign_in import BrowserSignIn

FIRST = ("anthropic", "openai", "gemini", "openrouter", "mistral", "deepseek", "groq", "xai")
"""Ids of the best-known providers, which are listed first."""


def keys_of(config: Config, logins: Logins | None = None) -> Keys:
    """Return the API keys in the environment, the settings and ``logins``.

    By default, ``logins`` are the keys that /login stored.
    """
    return Keys(
        os.environ,
        providers=config.providers,
        models=config.models,
        logins=Logins() if logins is None else logins,
    )


@frozen
class LoginRow:
    """A provider whose API key can be entered.

    ``source`` says where its key comes from, "" if it has no key.
    """

    id: str
    name: str
    variable: str
    """Name of the environment variable from which the provider's key is read."""
    page: str = ""
    """URL of the web page where the provider's keys are created; "" if unknown."""
    source: str = ""
    is_kept: bool = False
    """Whether the user entered a key in this program, so that it can be removed here."""
    missing: tuple[str, ...] = ()
    """Environment variables that the provider needs besides a key, and that are not set yet."""
    note: str = ""
    """A sentence about signing in to the provider; "" if there is none."""
    signs_in: bool = False
    """Whether the user can sign in with a browser."""


class LoginController:
    """Tries, saves and removes the keys that the user enters in the program.

    All methods except ``try_key`` and ``sign_in`` read files or the keyring, so call them in a
    thread.
    ``config`` returns the current settings.
    """

    def __init__(
        self,
        logins: Logins,
        config: Callable[[], Config],
        first_model: Callable[[], str] = str,
    ) -> None:
        self._logins = logins
        self._config = config
        self.first_model = first_model
        """Returns the id of the model to use at the start; "" if the user has to choose one."""

    def rows(self) -> Sequence[LoginRow]:
        """Return the hosted providers that need an API key, the best-known ones first."""
        keys = keys_of(self._config(), self._logins)
        kept = set(self._logins)
        ids = dict.fromkeys((*FIRST, *PROVIDERS))
        wanted = []
        for name in ids:
            if PROVIDERS[name].keys and PROVIDERS[name].local_url is None:
                wanted.append(PROVIDERS[name])
        rows = []
        for provider in wanted:
            rows.append(
                LoginRow(
                    id=provider.id,
                    name=provider.name,
                    variable=provider.keys[0],
                    page=provider.keys_page,
                    source=key.source if (key := keys.find(provider)) is not None else "",
                    is_kept=provider.id in kept,
                    signs_in=provider.sign_in is not None and not self._place(provider).source,
                    note=provider.sign_in_note,
                    missing=()
                    if self._place(provider).source
                    else tuple(keys.missing_parameters(provider)),
                )
            )
        return rows

    def where(self) -> str:
        """Return where an entered key is saved: the system's keyring, or a file's path."""
        if system_keyring() is not None:
            return "the system's keyring"
        return str(self._logins.path)

    async def try_key(self, provider: str, key: str) -> "Trial":
        """Try a key with a request to the provider, and return the outcome; nothing is saved."""
        from tui_agent.model.discovery import try_key

        asked = PROVIDERS[provider]
        return await try_key(asked, self._place(asked), key)

    def keep_key(self, provider: str, key: str) -> str:
        """Save a key; return sentences that say where, and whether another source takes precedence.

        Raises:
            LoginError: the key can't be saved.
        """
        where = self._logins.keep(provider, key.strip())
        source = self._source(provider)
        before = ""
        if source != SOURCE:
            before = f" {source} takes precedence. Unset it to use this key."
        return f"The key is saved in {where}.{before}"

    def sign_in(self, provider: str) -> "BrowserSignIn":
        """Return a sign-in to use with ``async with``; pass its key to ``keep_key``.

        Raises ValueError if the provider has no sign-in.
        """
        from tui_agent.model.sign_in import BrowserSignIn

        asked = PROVIDERS[provider]
        if asked.sign_in is None:
            raise ValueError(f"{provider} offers no sign-in")
        return BrowserSignIn(asked, asked.sign_in)

    def forget(self, provider: str) -> str:
        """Remove the key that the user entered for a provider, if there is one.

        Returns sentences to show: what was done, and the source that still provides a key, if any.

        Raises:
            LoginError: the key can't be removed.
        """
        if provider in PROVIDERS:
            name = PROVIDERS[provider].name
        else:
            name = provider
        if not self._logins.forget(provider):
            return f"No key was entered for {name}."
        sentences = [f"The key of {name} is removed."]
        if source := self._source(provider):
            sentences.append(f"{source} still provides one.")
        return " ".join(sentences)

    def _source(self, provider: str) -> str:
        """Return the source of a provider's key; "" if the provider has no key."""
        keys = keys_of(self._config(), self._logins)
        key = None
        if provider in PROVIDERS:
            key = keys.find(PROVIDERS[provider])
        if key is not None:
            return key.source
        return ""

    def _place(self, provider: Provider) -> AddressSetting:
        """Return the address that requests to a provider go to, and the setting that defines it."""
        config = self._config()
        place = Addresses(os.environ, config.models, config.providers).of(provider)
        return AddressSetting(wire_base(place.url, provider.wire), place.source)
