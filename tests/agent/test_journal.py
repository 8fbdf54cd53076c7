"""What is appended to a session is stored before anybody is told, and told only if it was stored."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.texts import said
from tui_agent.agent.channel import EventChannel, Journal
from tui_agent.agent.events import EntryAppended
from tui_agent.session.errors import StoreError
from tui_agent.session.session import Session
from tui_agent.session.store import Store


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Store(tmp_path / "sessions.db", clock=lambda: 1_000) as store:
        yield Session(store, store.create_session("/project").id, estimate=lambda _entry: 1)


def test_what_rests_on_an_entry_changes_after_it_is_stored_and_before_anybody_is_told(session: Session) -> None:
    channel, order = EventChannel(), list[str]()
    channel.subscribe(lambda event: order.append("told" if isinstance(event, EntryAppended) else "else"))
    Journal(session, channel).append(said("one"), lambda: order.append(f"changed at {session.leaf}"))
    assert order == ["changed at 1", "told"]


def test_of_what_could_not_be_stored_nothing_is_told(session: Session) -> None:
    channel, told = EventChannel(), list[object]()
    channel.subscribe(told.append)
    read_only = Session(session.store, session.id, estimate=lambda _entry: 1, read_only=True)
    with pytest.raises(StoreError):
        Journal(read_only, channel).append(said("lost"), lambda: told.append("changed"))
    assert told == []
