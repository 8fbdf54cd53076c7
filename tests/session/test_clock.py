"""A clock that is set back, or jumps: what was written keeps its order, is found again, and nothing is cleaned up."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.texts import answered, said, texts
from tests.support.thoroughness import examples
from tui_agent.session.records import DraftText
from tui_agent.session.session import Session
from tui_agent.session.store import Store

DAY = 24 * 3_600_000
NOW = 1_800_000_000_000
"""Milliseconds of some day."""

jumps = st.lists(st.integers(-400 * DAY, 400 * DAY), min_size=1, max_size=6)
"""How far the clock is from the time it should show, look after look."""


def jumping(offsets: list[int]) -> Callable[[], int]:
    looks = iter(range(1_000_000))
    return lambda: NOW + offsets[(look := next(looks)) % len(offsets)] + look


@settings(max_examples=examples(60), deadline=None)
@given(offsets=jumps)
def test_whatever_the_clock_says_nothing_is_lost(offsets: list[int]) -> None:
    """A conversation with two branches ends in the middle of an answer, and is opened again."""
    clock = jumping(offsets)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        with Store(path, clock=clock) as store:
            session = Session(store, store.create_session(folder).id, estimate=lambda _entry: 1)
            session.hold()
            talk = (said("one"), answered("first"), said("two"), answered("second"))
            ids = [session.append(entry).id for entry in talk]
            assert ids == sorted(ids)
            session.move(ids[1])
            session.append(said("another"))
            session.save_draft(DraftText("half an answer"))
        with Store(path, clock=clock) as store:
            assert [info.id for info in store.sessions()] == [session.id]
            again = Session(store, session.id, estimate=lambda _entry: 1)
            again.hold()
            again.recover()
            assert texts(again.path()) == ["one", "first", "another", "half an answer"]
            assert len(again.skeleton()) == len(ids) + 2
            store.purge()
            assert [info.id for info in store.sessions()] == [session.id]
            assert texts(again.path(ids[3])) == ["one", "first", "two", "second"]
