"""Keys a user enters: for the controller's /login, and ``tui-agent login`` and ``logout`` on the command line."""

import asyncio
import getpass
import os
import sys
import termios
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Literal

from tui_agent.app.services import LoginRow
from tui_agent.cli.arguments import UsageError
from tui_agent.cli.models import keys_of
from tui_agent.cli.output import say
from tui_agent.config import Config, load_config, set_value
from tui_agent.model.addresses import Addresses, AddressSetting
from tui_agent.model.keys import Keys
from tui_agent.model.logins import SOURCE, Login, Logins, system_keyring
from tui_agent.model.providers import PROVIDERS, Provider
from tui_agent.model.route import wire_base

if TYPE_CHECKING:
    # It brings in httpx, which nothing needs before the first request.
    from tui_agent.model.key_trial import Trial
    from tui_agent.model.sign_in import BrowserSignIn, DeviceSignIn

FIRST = ("anthropic", "openai", "gemini", "openrouter", "mistral", "deepseek", "groq", "xai")
"""The best known providers, which stand first."""


class LoginController:
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
        wanted = [PROVIDERS[name] for name in ids if PROVIDERS[name].keys and PROVIDERS[name].local_url is None]
        return [
            LoginRow(
                id=provider.id,
                name=provider.name,
                variable=provider.keys[0],
                page=provider.keys_page,
                source=key.source if (key := keys.find(provider)) is not None else "",
                is_kept=provider.id in kept,
                ways=self._ways(provider),
                note=provider.sign_in_note or self._lacks_client(provider),
                missing=() if self._place(provider).source else tuple(keys.missing_parameters(provider)),
            )
            for provider in wanted
        ]

    def where(self) -> str:
        return "the system's keyring" if system_keyring() is not None else str(self._logins.path)

    async def try_key(self, provider: str, key: str) -> "Trial":
        from tui_agent.model.key_trial import try_key, typed

        asked = PROVIDERS[provider]
        return await try_key(asked, self._place(asked), typed(key))

    async def try_variable(self, provider: str, variable: str) -> "Trial":
        from tui_agent.model.key_trial import Trial

        value = os.environ.get(variable, "")
        if not value.strip():
            return Trial("refused", f"{variable} is not set where tui-agent was started.")
        return await self.try_key(provider, value)

    def keep_key(self, provider: str, key: str | Login) -> str:
        """Keep a key from now on; say where, and what counts before it."""
        where = self._logins.keep(provider, key.strip() if isinstance(key, str) else key)
        source = self._source(provider)
        before = f" {source} counts before it: unset that to use this one." if source != SOURCE else ""
        return f"The key is kept in {where}.{before}"

    def sign_in(self, provider: str, way: Literal["browser", "device"]) -> "BrowserSignIn | DeviceSignIn":
        """Return an attempt to sign in, to be entered; what it gives is for ``keep_key``."""
        from tui_agent.model.sign_in import BrowserSignIn, DeviceSignIn

        asked = PROVIDERS[provider]
        if asked.sign_in is None:
            raise ValueError(f"{provider} offers no sign-in")
        kind = BrowserSignIn if way == "browser" else DeviceSignIn
        return kind(asked, asked.sign_in, self._client(asked))

    def keep_variable(self, provider: str, variable: str) -> str:
        """Look for a provider's key in a variable from now on."""
        if variable in PROVIDERS[provider].keys:
            return f"{variable} is looked at by itself."
        path = set_value(f"providers.{provider}.api_key_env", variable).path
        self._changed()
        return f"The name {variable} is kept in {path}."

    def forget(self, provider: str) -> str:
        """Remove a key that was entered, give a token back; say so, and where a key still comes from."""
        name, login = PROVIDERS[provider].name if provider in PROVIDERS else provider, self._logins.find(provider)
        if not self._logins.forget(provider):
            return f"No key of {name} was entered."
        told = [f"The key of {name} is removed."]
        if login is not None and login.client:
            from tui_agent.model.sign_in import sign_out

            told.append(asyncio.run(sign_out(PROVIDERS[provider], login)))
        if source := self._source(provider):
            told.append(f"{source} still gives one.")
        return " ".join(filter(None, told))

    def _keys(self) -> Keys:
        return keys_of(self._config(), self._logins)

    def _source(self, provider: str) -> str:
        key = self._keys().find(PROVIDERS[provider]) if provider in PROVIDERS else None
        return key.source if key is not None else ""

    def _ways(self, provider: Provider) -> tuple[Literal["browser", "device"], ...]:
        how = provider.sign_in
        if how is None or self._place(provider).source or self._lacks_client(provider):
            return ()
        return (*(("browser",) if how.page else ()), *(("device",) if how.device else ()))

    def _client(self, provider: Provider) -> str:
        settings = self._config().providers.get(provider.id)
        return settings.client_id.strip() if settings is not None else ""

    def _lacks_client(self, provider: Provider) -> str:
        """Return a sentence on what signing in to a provider lacks, "" for nothing."""
        how = provider.sign_in
        if how is None or how.gives == "key" or self._client(provider):
            return ""
        return (
            f"To sign in to {provider.name}, register an OAuth app with its maker and set client_id under "
            f"[providers.{provider.id}] in config.toml."
        )

    def _place(self, provider: Provider) -> AddressSetting:
        config = self._config()
        place = Addresses(os.environ, config.models, config.providers).of(provider)
        return AddressSetting(wire_base(place.url, provider.wire), place.source)


# -- the command line ---------------------------------------------------------------------------------------------


def run_login(arguments: Namespace) -> int:
    """Take a key from the terminal, unseen, or from standard input; try it and keep it."""
    controller = _controller()
    provider = _named(controller.rows(), arguments.provider)
    if provider.missing:
        say(f"{provider.name} needs {' and '.join(provider.missing)} to be set too.", file=sys.stderr)
        return 1
    if arguments.env:
        return _keep(
            asyncio.run(controller.try_variable(provider.id, arguments.env)),
            lambda: controller.keep_variable(provider.id, arguments.env),
            force=arguments.force,
        )
    key = asyncio.run(_sign_in(controller, provider)) if provider.ways else _entered(provider)
    if not key:
        return 0
    return _keep(
        asyncio.run(controller.try_key(provider.id, key)),
        lambda: controller.keep_key(provider.id, key),
        force=arguments.force,
    )


def run_logout(arguments: Namespace) -> int:
    controller = _controller()
    kept = [row for row in controller.rows() if row.is_kept]
    if not kept:
        say("No key was entered with tui-agent login.", file=sys.stderr)
        return 1
    row = _named(kept, arguments.provider)
    say(controller.forget(row.id))
    return 0


def _controller() -> LoginController:
    config = load_config().config
    return LoginController(Logins(), lambda: config)


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
    if provider.note:
        say(provider.note, file=sys.stderr)
    if provider.page and sys.stdin.isatty():
        say(f"Keys are made at {provider.page}")
    return _read(f"Key of {provider.name} (not shown): ")


def _read(prompt: str) -> str:
    """Return a line that is typed unseen, or the next one of standard input."""
    text = getpass.getpass(prompt) if sys.stdin.isatty() else sys.stdin.readline()
    if not text.strip():
        raise UsageError("There is no key: type or paste it, or pipe it in.")
    return text


async def _sign_in(controller: LoginController, provider: LoginRow) -> str:
    """Print the page to sign in at, and keep what the browser or a pasted code brings; return a key that is pasted.

    Raises:
        SignInError: it failed.
    """
    async with controller.sign_in(provider.id, provider.ways[-1]) as attempt:
        where = f"with a browser at\n\n  {attempt.url}\n"
        if attempt.code:
            where = f"at\n\n  {attempt.url}\n\nin any browser, with the code\n\n  {attempt.code}\n"
        say(f"Sign in to {provider.name} {where}", file=sys.stderr)
        signing = asyncio.ensure_future(attempt.login())
        try:
            if not attempt.code:
                say(
                    "If the browser is on another machine, paste the address it ends at. A key can be pasted too.",
                    file=sys.stderr,
                )
                text = await _read_beside(signing, f"Address, code or key of {provider.name} (not shown): ")
                if attempt.is_key(text):
                    return text
                if text:
                    attempt.paste(text)
            say(f"You are signed in to {provider.name}. {controller.keep_key(provider.id, await signing)}")
            return ""
        finally:
            signing.cancel()


async def _read_beside(other: "asyncio.Future[Login]", prompt: str) -> str:
    """Return a line that is entered, "" when ``other`` is done before."""
    loop, entered = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def read() -> None:
        try:
            line = partial(_settle, entered, _read(prompt), None)
        except (UsageError, EOFError, OSError) as error:
            line = partial(_settle, entered, "", error)
        # The browser may have come first, and the program be at its end.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(line)

    with _terminal_as_it_was():
        # A line that is waited for in a thread of a pool would hold up the end of the program.
        Thread(target=read, daemon=True).start()
        await asyncio.wait({other, entered}, return_when=asyncio.FIRST_COMPLETED)
    return str(entered.result()) if entered.done() else ""


def _settle(future: "asyncio.Future[str]", text: str, error: Exception | None) -> None:
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(text)


@contextmanager
def _terminal_as_it_was() -> Iterator[None]:
    """Show what is typed again, if reading unseen was given up."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


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
