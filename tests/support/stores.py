"""Session files for tests."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from tui_agent.session.entries import Entry, EntryBase
from tui_agent.session.errors import StoreError
from tui_agent.session.session import Session
from tui_agent.session.store import Store


def open_store(path: Path, **options: Any) -> Store:
    """Open a store; a new one is a copy of an empty one, since to make one is to wait for the disk several times."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_empty_file())
        path.chmod(0o600)
    return Store(path, **options)


@cache
def _empty_file() -> bytes:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "sessions.db"
        Store(path).close()
        return path.read_bytes()


@contextmanager
def unable_to_store(
    session: Session, what: type[EntryBase] | Callable[[Entry], bool]
) -> Iterator[None]:
    """Have the session refuse to store some entries inside the context, as on a full disk.

    ``what`` is their class or a predicate.
    """
    store = session.append_many

    def is_refused(entry: Entry) -> bool:
        return isinstance(entry, what) if isinstance(what, type) else what(entry)

    def append_many(entries: Iterable[Entry]) -> list[Entry]:
        given = list(entries)
        if any(map(is_refused, given)):
            raise StoreError("The disk is full.")
        return store(given)

    with patch.object(session, "append_many", append_many):
        yield
