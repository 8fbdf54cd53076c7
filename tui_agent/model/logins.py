"""Keys the user entered in the program: kept in the system's keyring where there is one, else in a file of their own.

The file, readable for its owner alone, has an entry for each provider; that of a key in the keyring says so and holds
no key. Other running programs see a change at their next request.
"""

import json
import logging
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from pydantic import SecretStr

from tui_agent.errors import UserFacingError
from tui_agent.files.atomic import write_atomically
from tui_agent.paths import config_dir

log = logging.getLogger(__name__)

SOURCE = "tui-agent login"
"""How a key of a login is named where others are named by their variable."""
_SERVICE = "tui-agent"
_IN_KEYRING = {"keyring": True}


class LoginError(UserFacingError):
    """A key can't be kept."""


class Keyring(Protocol):
    """The part of the library ``keyring`` that is used."""

    def get_password(self, service: str, user: str) -> str | None: ...

    def set_password(self, service: str, user: str, password: str) -> None: ...

    def delete_password(self, service: str, user: str) -> None: ...


def system_keyring() -> Keyring | None:
    """Return the system's keyring, None where the library or a service it trusts is missing. Takes 100 ms."""
    if find_spec("keyring") is None:
        return None
    try:
        backend: Any = import_module("keyring").get_keyring()
        # Below 1 are the one that always fails and those that keep secrets in plain files.
        is_safe = backend.priority >= 1
    except Exception as error:  # noqa: BLE001 - what backends raise is theirs; without one there is the file
        log.warning("The keyring can't be used: %s", type(error).__name__)
        return None
    return backend if is_safe else None


class Logins:
    """The keys of one user, by provider. ``keyring`` finds where they are kept beside the file."""

    def __init__(self, path: Path | None = None, keyring: Callable[[], Keyring | None] = system_keyring) -> None:
        self.path = path or config_dir() / "credentials.json"
        self._find_keyring = keyring
        self._stamp: tuple[int, int] | None = None
        self._kept: dict[str, dict[str, Any]] = {}
        self._from_keyring: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._read()))

    def find(self, provider: str) -> SecretStr | None:
        """Return a provider's key, None when there is none or the keyring does not give it."""
        entry = self._read().get(provider)
        if entry is None:
            return None
        key = self._keyring_key(provider) if entry.get("keyring") else entry.get("key")
        return SecretStr(key) if isinstance(key, str) and key else None

    def warm(self) -> None:
        """Read what is in the keyring, which may take a moment, or ask for its password."""
        for provider in self:
            self.find(provider)

    def keep(self, provider: str, key: str) -> str:
        """Keep a provider's key in place of the one before; return where it is, in words.

        Raises:
            LoginError: the file can't be written.
        """
        kept = dict(self._read())
        if self._put_into_keyring(provider, key):
            kept[provider], where = dict(_IN_KEYRING), "the system's keyring"
            self._from_keyring[provider] = key
        else:
            kept[provider], where = {"key": key}, str(self.path)
        self._write(kept)
        return where

    def forget(self, provider: str) -> bool:
        """Remove a provider's key; False when there was none.

        Raises:
            LoginError: the file can't be written, or the keyring keeps the key.
        """
        kept = dict(self._read())
        entry = kept.pop(provider, None)
        if entry is None:
            return False
        if entry.get("keyring"):
            self._remove_from_keyring(provider)
        self._from_keyring.pop(provider, None)
        self._write(kept)
        return True

    @property
    def is_exposed(self) -> bool:
        """Whether others may read the file."""
        return self.path.is_file() and bool(self.path.stat().st_mode & 0o077)

    # -- the file ---------------------------------------------------------------------------------------------

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            state = self.path.stat()
            if (stamp := (state.st_mtime_ns, state.st_size)) == self._stamp:
                return self._kept
            table = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            self._stamp, self._kept = None, {}
            return self._kept
        except (OSError, ValueError) as error:
            log.warning("%s can't be read: %s", self.path, error)
            return self._kept
        entries = table.items() if isinstance(table, dict) else ()
        self._stamp, self._kept = stamp, {name: entry for name, entry in entries if isinstance(entry, dict)}
        self._from_keyring.clear()
        return self._kept

    def _write(self, kept: dict[str, dict[str, Any]]) -> None:
        try:
            write_atomically(self.path, json.dumps(kept, indent=1).encode(), mode=0o600)
        except OSError as error:
            raise LoginError(f"{self.path} can't be written: {error.strerror}. Nothing was kept.") from None
        self._stamp = None

    # -- the keyring ------------------------------------------------------------------------------------------

    def _keyring_key(self, provider: str) -> str | None:
        if provider not in self._from_keyring:
            keyring, key = self._find_keyring(), None
            try:
                key = keyring.get_password(_SERVICE, provider) if keyring is not None else None
            except Exception as error:  # noqa: BLE001 - what backends raise is theirs
                log.warning("The keyring does not give the key of %s: %s", provider, type(error).__name__)
            self._from_keyring[provider] = key or ""
        return self._from_keyring[provider]

    def _put_into_keyring(self, provider: str, key: str) -> bool:
        keyring = self._find_keyring()
        if keyring is None:
            return False
        try:
            keyring.set_password(_SERVICE, provider, key)
        except Exception as error:  # noqa: BLE001 - a locked or broken one: there is the file
            log.warning("The keyring does not take the key of %s: %s", provider, type(error).__name__)
            return False
        return True

    def _remove_from_keyring(self, provider: str) -> None:
        keyring = self._find_keyring()
        try:
            if keyring is not None:
                keyring.delete_password(_SERVICE, provider)
        except Exception as error:  # noqa: BLE001 - what backends raise is theirs
            raise LoginError(
                f"The keyring keeps the key of {provider}: {type(error).__name__}. Remove it there."
            ) from None
