"""Stores API keys, entered or obtained by signing in, in the system's keyring or in a file.

The file, readable only by its owner, contains an entry for each provider. If a key is in the
keyring, the entry only says so. Other running instances see a change at their next request.
"""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tui_agent.errors import UserFacingError
from tui_agent.files.atomic import write_atomically
from tui_agent.json_text import as_dict, as_text
from tui_agent.paths import config_dir
from tui_agent.session.locks import FileLock

log = logging.getLogger(__name__)

SOURCE = "tui-agent login"
"""Display name of a key stored by a login; other keys show their environment variable."""
_SERVICE = "tui-agent"
_IN_KEYRING = {"keyring": True}
_PATIENCE = 60.0
"""Number of seconds to wait if another program has locked the file."""

Keyring = Any
"""A backend of the library ``keyring``. The type is Any because the library is imported only when a
key is needed."""


class LoginError(UserFacingError):
    """Raised if a key can't be stored or removed. The message says why."""


def system_keyring() -> Keyring | None:
    """Return the system's keyring; None if there is no library ``keyring`` or no safe backend.

    This takes about 100 ms.
    """
    if find_spec("keyring") is None:
        return None
    try:
        backend: Any = import_module("keyring").get_keyring()
        # Backends with a priority below 1 always fail or keep secrets in plain files.
        is_safe = backend.priority >= 1
    except Exception as error:  # noqa: BLE001 - backends raise errors of their own; the file is used instead
        log.warning("Could not access the keyring: %s", type(error).__name__)
        return None
    return backend if is_safe else None


class Logins:
    """The user's stored keys, by the provider's id. Iterating over the object yields the ids.

    ``keyring`` returns the system's keyring, None if there is none.
    """

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

    def find(self, provider: str) -> str | None:
        """Return a provider's key; None if none is stored or the keyring doesn't return it."""
        entry = self._read().get(provider)
        if entry is not None and entry.get("keyring"):
            entry = self._entry_in_keyring(provider)
        if entry is None:
            return None
        return as_text(entry.get("key")) or None

    def _entry_in_keyring(self, provider: str) -> dict[str, Any]:
        secret = self._keyring_key(provider)
        if not secret.startswith("{"):
            return {"key": secret}
        try:
            return as_dict(json.loads(secret))  # a token as JSON, stored by an earlier version
        except ValueError:
            return {}

    def warm(self) -> None:
        for provider in self:
            self.find(provider)

    def keep(self, provider: str, key: str) -> str:
        """Store a provider's key, replacing the former one.

        Return where the key is stored: "the system's keyring" or the file's path. Raises LoginError
        if the file can't be written, or if another program keeps it locked.
        """
        with self._alone():
            kept = dict(self._read())
            kept[provider] = {"key": key}
            where = str(self.path)
            try:
                if (keyring := self._find_keyring()) is not None:
                    keyring.set_password(_SERVICE, provider, key)
                    kept[provider] = dict(_IN_KEYRING)
                    where = "the system's keyring"
            except Exception as error:  # noqa: BLE001 - with a locked or broken keyring, the file is used
                log.warning(
                    "Could not store the key of %s in the keyring: %s",
                    provider,
                    type(error).__name__,
                )
            self._write(kept)
        return where

    def forget(self, provider: str) -> bool:
        """Remove a provider's key. Return False if there was none.

        Raises LoginError if the file can't be written, if another program keeps it locked, or if
        the keyring fails to delete the key.
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
                why = f"The keyring didn't delete the key of {provider} ({type(error).__name__}). Delete it there."
                raise LoginError(why) from None
            self._write(kept)
        return True

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
        entries = as_dict(table).items()
        self._stamp = stamp
        self._kept = {name: entry for name, entry in entries if isinstance(entry, dict)}
        self._from_keyring.clear()
        return self._kept

    def _lock(self, purpose: str) -> FileLock:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return FileLock(self.path.with_suffix(purpose))
        except OSError as error:
            raise LoginError(
                f"{self.path} can't be written: {error.strerror}. The file is unchanged."
            ) from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the file against other programs while the ``with`` block reads and writes it.

        Raises LoginError if another program keeps the lock for more than ``_PATIENCE`` seconds, or
        if the lock file can't be written.
        """
        with closing(self._lock(".lock")) as lock:
            if not lock.take(timeout=_PATIENCE):
                raise LoginError(f"Another program has locked {self.path}. The file is unchanged.")
            self._stamp = None
            yield

    def _write(self, kept: dict[str, dict[str, Any]]) -> None:
        try:
            write_atomically(self.path, json.dumps(kept, indent=1).encode(), mode=0o600)
        except OSError as error:
            raise LoginError(
                f"{self.path} can't be written: {error.strerror}. The file is unchanged."
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
                    "Could not read the key of %s from the keyring: %s",
                    provider,
                    type(error).__name__,
                )
            self._from_keyring[provider] = key or ""
        return self._from_keyring[provider]
