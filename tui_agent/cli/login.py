"""Keys a user enters: what the desk's /login asks for, and ``tui-agent login`` and ``logout`` on the command line."""

import asyncio
import getpass
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui_agent.app.services import LoginRow
from tui_agent.cli.arguments import UsageError
from tui_agent.cli.model_choice import keys_of
from tui_agent.cli.output import say
from tui_agent.config import Config, load_config, set_value
from tui_agent.model.addresses import Addresses, AddressSetting
from tui_agent.model.keys import Keys
from tui_agent.model.logins import SOURCE, Logins, system_keyring
from tui_agent.model.providers import PROVIDERS, Provider
from tui_agent.model.route import wire_base

if TYPE_CHECKING:
    # It brings in httpx, which nothing needs before the first request.
    from tui_agent.model.key_trial import Trial

FIRST = ("anthropic", "openai", "gemini", "openrouter", "mistral", "deepseek", "groq", "xai")
"""The best known providers, which stand first."""


class LoginDesk:
    """Enters, tries and removes keys.

    ``config`` returns the settings as they are now, ``changed`` is called when they were written, ``first_model``
    returns the model a new session would have.
    """

    def __init__(
        self,
        logins: Logins,
        config: Callable[[], Config],
        changed: Callable[[], object] = lambda: None,
        first_model: Callable[[], str] = str,
    ) -> None:
        self._logins = logins
        self._config = config
        self._changed = changed
        self.first_model = first_model
        """Returns the model to begin with, "" when the user has to say."""

    def rows(self) -> Sequence[LoginRow]:
        """Return the providers that take a key, the best known first."""
        keys, kept = self._keys(), set(self._logins)
        ids = dict.fromkeys((*FIRST, *PROVIDERS))
        wanted = (PROVIDERS[name] for name in ids if PROVIDERS[name].keys and PROVIDERS[name].local_url is None)
        return [
            LoginRow(
                id=provider.id,
                name=provider.name,
                variable=provider.keys[0],
                page=provider.keys_page,
                source=key.source if (key := keys.find(provider)) is not None else "",
                is_kept=provider.id in kept,
                missing=() if self._place(provider).source else tuple(keys.missing_parameters(provider)),
            )
            for provider in wanted
        ]

    def where(self) -> str:
        """Say where a key would be kept."""
        return "the system's keyring" if system_keyring() is not None else str(self._logins.path)

    async def try_key(self, provider: str, key: str) -> "Trial":
        """Try a key at its provider."""
        from tui_agent.model.key_trial import try_key, typed

        asked = PROVIDERS[provider]
        return await try_key(asked, self._place(asked), typed(key))

    async def try_variable(self, provider: str, variable: str) -> "Trial":
        """Try the key in a variable at its provider."""
        from tui_agent.model.key_trial import Trial

        value = os.environ.get(variable, "")
        if not value.strip():
            return Trial("refused", f"{variable} is not set where tui-agent was started.")
        return await self.try_key(provider, value)

    def keep_key(self, provider: str, key: str) -> str:
        """Keep a key from now on; say where, and what counts before it."""
        from tui_agent.model.key_trial import typed

        where = self._logins.keep(provider, typed(key).secret.get_secret_value())
        source = self._source(provider)
        before = f" {source} counts before it: unset that to use this one." if source != SOURCE else ""
        return f"The key is kept in {where}.{before}"

    def keep_variable(self, provider: str, variable: str) -> str:
        """Look for a provider's key in a variable from now on."""
        if variable in PROVIDERS[provider].keys:
            return f"{variable} is looked at by itself."
        path = set_value(f"providers.{provider}.api_key_env", variable).path
        self._changed()
        return f"The name {variable} is kept in {path}."

    def forget(self, provider: str) -> str:
        """Remove a key that was entered; say so, and where a key still comes from."""
        name = PROVIDERS[provider].name if provider in PROVIDERS else provider
        if not self._logins.forget(provider):
            return f"No key of {name} was entered."
        source = self._source(provider)
        return f"The key of {name} is removed." + (f" {source} still gives one." if source else "")

    def _keys(self) -> Keys:
        return keys_of(self._config(), self._logins)

    def _source(self, provider: str) -> str:
        key = self._keys().find(PROVIDERS[provider]) if provider in PROVIDERS else None
        return key.source if key is not None else ""

    def _place(self, provider: Provider) -> AddressSetting:
        config = self._config()
        place = Addresses(os.environ, config.models, config.providers).of(provider)
        return AddressSetting(wire_base(place.url, provider.wire), place.source)


# -- the command line ---------------------------------------------------------------------------------------------


def run_login(arguments: Namespace) -> int:
    """Take a key from the terminal, unseen, or from standard input; try it and keep it."""
    desk = _desk()
    provider = _named(desk.rows(), arguments.provider)
    if provider.missing:
        say(f"{provider.name} needs {' and '.join(provider.missing)} to be set too.", file=sys.stderr)
        return 1
    if arguments.env:
        return _keep(
            asyncio.run(desk.try_variable(provider.id, arguments.env)),
            lambda: desk.keep_variable(provider.id, arguments.env),
            force=arguments.force,
        )
    key = _entered(provider)
    if not key.strip():
        raise UsageError("There is no key: type or paste it, or pipe it in.")
    return _keep(
        asyncio.run(desk.try_key(provider.id, key)), lambda: desk.keep_key(provider.id, key), force=arguments.force
    )


def run_logout(arguments: Namespace) -> int:
    """Remove a key that was entered."""
    desk = _desk()
    kept = [row for row in desk.rows() if row.is_kept]
    if not kept:
        say("No key was entered with tui-agent login.", file=sys.stderr)
        return 1
    row = _named(kept, arguments.provider)
    say(desk.forget(row.id))
    return 0


def _desk() -> LoginDesk:
    config = load_config().config
    return LoginDesk(Logins(), lambda: config)


def _named(rows: Sequence[LoginRow], name: str) -> LoginRow:
    """Return the provider of a name; without one, the only one there is or the one the user types."""
    if not name and len(rows) == 1:
        return rows[0]
    if not name and sys.stdin.isatty():
        for row in rows:
            say(f"{'✓' if row.source else ' '} {row.id:<20} {row.name:<24} {row.source or row.variable}")
        name = input("Provider: ").strip()
    found = next((row for row in rows if name.lower() in {row.id, row.name.lower()}), None)
    if found is None:
        known = ", ".join(row.id for row in rows)
        raise UsageError(
            f"There is no provider “{name}”. There are: {known}." if name else f"Name a provider: {known}."
        )
    return found


def _entered(provider: LoginRow) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    if provider.page:
        say(f"Keys are made at {provider.page}")
    return getpass.getpass(f"Key of {provider.name} (not shown): ")


def _keep(trial: "Trial", keep: Callable[[], str], *, force: bool) -> int:
    """Keep a key whose trial did not fail; one that could not be tried is kept where the user wants it."""
    if trial.verdict == "accepted" or (force and trial.verdict == "unknown"):
        say(f"{trial.sentence} {keep()}")
        return 0
    can_keep = trial.verdict == "unknown"
    advice = " --force keeps it all the same." if can_keep and not sys.stdin.isatty() else ""
    say(f"{trial.sentence}{advice}", file=sys.stderr)
    if can_keep and sys.stdin.isatty() and input("Keep it all the same? [y/N] ").strip().lower() in {"y", "yes"}:
        say(keep())
        return 0
    return 1
