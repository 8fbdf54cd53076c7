"""What a request needs of a path: no less than the whole path gives, and no more than has an effect."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from tests.support.big_session import fill
from tests.support.entry_strategies import paths
from tests.support.numbered import compaction, edit, prune, result
from tests.support.stores import open_store
from tests.support.texts import answered, said
from tests.support.thoroughness import examples
from tui_agent.context.view import resolve
from tui_agent.session.entries import Entry
from tui_agent.session.reading import EntryReader
from tui_agent.session.session import Session


def active(session: Session) -> list[int]:
    return [entry.id for entry in session.active_path()]


def fresh(session: Session) -> Session:
    return Session(session.store, session.id, estimate=lambda _entry: 1)


def test_the_compaction_of_another_branch_does_not_count(session: Session) -> None:
    session.append_many([said("1"), said("2"), compaction(0, 2)])
    session.move(1)
    session.append(said("4"))
    assert active(session) == [1, 4]
    session.undo()
    session.undo()
    assert active(session) == [2, 3]


def test_pinned_entries_come_along_with_their_calls_results_and_prunes(session: Session) -> None:
    session.append_many(
        [
            said("1"),
            answered("2", ("a", "t", "{}"), ("b", "t", "{}")),
            result(0, "a"),
            result(0, "b"),
            said("5"),
            answered("6"),
            edit(0, 3, "pin"),
            edit(0, 5, "pin"),
            edit(0, 5, "restore"),
            prune(0, 4),
            prune(0, 6),
            compaction(0, None),
        ]
    )
    assert active(session) == [2, 3, 4, 7, 8, 9, 10, 12]
    session.append(edit(0, 1, "pin"))
    assert active(session) == [1, 2, 3, 4, 7, 8, 9, 10, 12, 13]
    session.append(edit(0, 3, "restore"))
    assert active(session) == [1, 7, 8, 9, 12, 13, 14]


@given(path=paths(max_size=20))
@settings(max_examples=examples(150), deadline=None)
def test_it_resolves_to_the_same_view_as_the_whole_path(path: list[Entry]) -> None:
    with TemporaryDirectory() as directory, open_store(Path(directory) / "s.db") as store:
        session = Session(store, store.create_session("/").id, estimate=lambda _entry: 1)
        for entry in path:
            session.append(entry)
            session.active_path()
        assert resolve(session.active_path()) == resolve(session.path())
        assert fresh(session).active_path() == session.active_path()
        assert fresh(session).path() == session.path()


def test_only_what_is_needed_is_read(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(session, 3_000, compact_every=1_000)
    opened = fresh(session)
    loaded: list[Entry] = []
    keep = EntryReader.keep
    monkeypatch.setattr(EntryReader, "keep", lambda reader, entries: (loaded.extend(entries), keep(reader, entries)))
    needed = opened.active_path()
    assert len({entry.id for entry in loaded}) == len(needed) < 1_700
