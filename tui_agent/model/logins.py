"""Keys the user entered and tokens of sign-ins: in the system's keyring where there is one, else in a file.

The file, readable for its owner alone, has an entry for each provider; that of a key in the keyring
says so and holds no key. Other running programs see a change at their next request.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import asdict, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tui_agent.errors import UserFacingError
from tui_agent.files.atomic import write_atomically
from tui_agent.json_text import as_dict, as_text
from tui_agent.lazy import dataclass
from tui_agent.paths import config_dir
from tui_agent.session.locks import FileLock

log = logging.getLogger(__name__)

SOURCE = "tui-agent login"
"""How a key of a login is named where others are named by their variable."""
_SERVICE = "tui-agent"
_IN_KEYRING = {"keyring": True}
_BEFORE_END = 60.0
"""Seconds before a token's end at which it is renewed."""
_PATIENCE = 60.0
"""Seconds to wait for another program that renews a token or writes the file."""

Keyring = Any
"""A backend of the library ``keyring``, which is imported only where it is asked for a key."""


class LoginError(UserFacingError):
    """A key can't be kept."""


@dataclass(frozen=True, slots=True)
class Login:
    """A key to a provider: a lasting one, or a token and the one that renews it."""

    key: str = field(repr=False)
    refresh: str = field(default="", repr=False)
    expires: float = 0.0
    """When the key ends, in seconds since the epoch by this machine's clock; 0: nobody said."""
    client: str = ""
    """Whom the token was given to; "" for a key."""

    def is_due(self, refused: str, now: float) -> bool:
        return bool(self.refresh) and (
            bool(self.expires and self.expires < now + _BEFORE_END) or self.key == refused
        )


def system_keyring() -> Keyring | None:
    """Return the system's keyring, None where the library or a service it trusts is missing.

    Takes 100 ms.
    """
    if find_spec("keyring") is None:
        return None
    try:
        backend: Any = import_module("keyring").get_keyring()
        # Below 1 are the one that always fails and those that keep secrets in plain files.
        is_safe = backend.priority >= 1
    except Exception as error:  # noqa: BLE001 - backends raise errors of their own; without one there is the file
        log.warning("The keyring can't be used: %s", type(error).__name__)
        return None
    return backend if is_safe else None


class Logins:
    """The keys of one user, by provider. ``keyring`` finds where they are kept beside the file."""

    def __init__(
        self, path: Path | None = None, keyring: Callable[[], Keyring | None] = system_keyring
    ) -> None:
        self.path = path or config_dir() / "credentials.json"
        self._find_keyring = keyring
        self._stamp: tuple[int, int] | None = None
        self._kept: dict[str, dict[str, Any]] = {}
        self._from_keyring: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._read()))

    def find(self, provider: str) -> Login | None:
        """Return a provider's key, None when there is none or the keyring does not give it."""
        entry = self._read().get(provider)
        if entry is not None and entry.get("keyring"):
            secret = self._keyring_key(provider)
            try:
                if secret.startswith("{"):
                    entry = as_dict(json.loads(secret))
                else:
                    entry = {"key": secret}
            except ValueError:
                entry = None
        if entry is None or not (key := as_text(entry.get("key"))):
            return None
        expires = entry.get("expires", 0)
        texts = {
            name: text for name in ("refresh", "client") if isinstance(text := entry.get(name), str)
        }
        return Login(key, expires=expires if isinstance(expires, int | float) else 0.0, **texts)

    def warm(self) -> None:
        for provider in self:
            self.find(provider)

    def keep(self, provider: str, key: str | Login) -> str:
        """Keep a provider's key in place of the one before; return where it is, in words.

        Raises:
            LoginError: the file can't be written.
        """
        if isinstance(key, Login):
            login = key
        else:
            login = Login(key)
        entry = {name: value for name, value in asdict(login).items() if value}
        with self._alone():
            kept = dict(self._read())
            kept[provider], where = entry, str(self.path)
            try:
                if (keyring := self._find_keyring()) is not None:
                    keyring.set_password(
                        _SERVICE, provider, json.dumps(entry) if login.client else login.key
                    )
                    kept[provider], where = dict(_IN_KEYRING), "the system's keyring"
            except Exception as error:  # noqa: BLE001 - a locked or broken one: there is the file
                log.warning(
                    "The keyring does not take the key of %s: %s", provider, type(error).__name__
                )
            self._write(kept)
        return where

    def forget(self, provider: str) -> bool:
        """Remove a provider's key; False when there was none.

        Raises:
            LoginError: the file can't be written, or the keyring keeps the key.
        """
        with self._alone():
            kept = dict(self._read())
            entry = kept.pop(provider, None)
            if entry is None:
                return False
            keyring = None
            if entry.get("keyring"):
                keyring = self._find_keyring()
            try:
                if keyring is not None:
                    keyring.delete_password(_SERVICE, provider)
            except Exception as error:  # noqa: BLE001 - backends raise errors of their own
                why = f"The keyring keeps the key of {provider}: {type(error).__name__}. Remove it there."
                raise LoginError(why) from None
            self._write(kept)
        return True

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until no other program renews a token: the provider takes a renewal token only once.

        Raises:
            LoginError: another one does not come to an end.
        """
        with closing(self._lock(".renewal")) as lock:
            try:
                async with asyncio.timeout(_PATIENCE):
                    while not lock.take():  # noqa: ASYNC110 - another program's lock tells nobody
                        await asyncio.sleep(0.05)
            except TimeoutError:
                raise LoginError(
                    "Another program does not come to an end renewing a sign-in."
                ) from None
            yield

    # -- the file ---------------------------------------------------------------------------------------------

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            state = self.path.stat()
            if (stamp := (state.st_mtime_ns, state.st_size)) == self._stamp:
                return self._kept
            table = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            self._stamp = None
            self._kept = {}
            return self._kept
        except (OSError, ValueError) as error:
            log.warning("%s can't be read: %s", self.path, error)
            return self._kept
        entries = table.items() if isinstance(table, dict) else ()
        self._stamp, self._kept = (
            stamp,
            {name: entry for name, entry in entries if isinstance(entry, dict)},
        )
        self._from_keyring.clear()
        return self._kept

    def _lock(self, purpose: str) -> FileLock:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return FileLock(self.path.with_suffix(purpose))
        except OSError as error:
            raise LoginError(
                f"{self.path} can't be written: {error.strerror}. Nothing was kept."
            ) from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other programs from writing between reading the file and writing it."""
        with closing(self._lock(".lock")) as lock:
            if not lock.take(timeout=_PATIENCE):
                raise LoginError(f"Another program holds {self.path}. Nothing was kept.")
            self._stamp = None
            yield

    def _write(self, kept: dict[str, dict[str, Any]]) -> None:
        try:
            write_atomically(self.path, json.dumps(kept, indent=1).encode(), mode=0o600)
        except OSError as error:
            raise LoginError(
                f"{self.path} can't be written: {error.strerror}. Nothing was kept."
            ) from None
        self._stamp = None

    # -- the keyring ------------------------------------------------------------------------------------------

    def _keyring_key(self, provider: str) -> str:
        if provider not in self._from_keyring:
            keyring = self._find_keyring()
            key = None
            try:
                key = None
                if keyring is not None:
                    key = keyring.get_password(_SERVICE, provider)
            except Exception as error:  # noqa: BLE001 - backends raise errors of their own
                log.warning(
                    "The keyring does not give the key of %s: %s", provider, type(error).__name__
                )
            self._from_keyring[provider] = key or ""
        return self._from_keyring[provider]
