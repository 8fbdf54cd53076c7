"""A store in a fresh file with a clock that ticks once per look."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tui_agent.session.session import Session
from tui_agent.session.store import Store

OpenSession = Callable[..., Session]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "sessions.db", clock=count(1_000).__next__) as opened:
        yield opened


@pytest.fixture
def session(store: Store) -> Session:
    return Session(store, store.create_session("/project").id, estimate=lambda _entry: 7)


@pytest.fixture
def reopen() -> OpenSession:
    """Open a session again, as another program would: on a connection of its own."""
    stores: list[Store] = []

    def open_again(session: Session, **options: bool) -> Session:
        stores.append(Store(session.store.path, clock=count(5_000).__next__))
        return Session(stores[-1], session.id, estimate=lambda _entry: 7, **options)

    yield open_again
    for opened in stores:
        opened.close()
