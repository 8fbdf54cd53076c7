"""What was written and not sent is found again by whoever comes next, and by nobody else."""

from pathlib import Path

from tui_agent.session.records import Unsent
from tui_agent.session.store import RETENTION_MS, Store

HERE = "/home/ada/shop"


def test_what_was_kept_is_there_for_the_next_program(tmp_path: Path) -> None:
    kept = Unsent("half a thou\ud800ght", ("first", "second"))
    with Store(tmp_path / "s.db") as store:
        store.keep_unsent(HERE, Unsent("an older state"))
        store.keep_unsent(HERE, kept)
    with Store(tmp_path / "s.db") as store:
        assert store.take_unsent("/elsewhere") == Unsent()
        assert store.take_unsent(HERE) == Unsent("half a thou\ufffdght", ("first", "second"))
        assert not store.take_unsent(HERE)


def test_programs_that_live_keep_their_words(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as other, Store(tmp_path / "s.db") as store:
        other.keep_unsent(HERE, Unsent("hers"))
        store.keep_unsent(HERE, Unsent("mine"))
        assert store.take_unsent(HERE).text == "mine"
        assert other.take_unsent(HERE).text == "hers"


def test_what_several_programs_left_comes_back_together(tmp_path: Path) -> None:
    for text in ("one", "two", "one"):
        with Store(tmp_path / "s.db") as store:
            store.keep_unsent(HERE, Unsent(text, (text.upper(),)))
    with Store(tmp_path / "s.db") as store:
        assert store.take_unsent(HERE) == Unsent("one\n\ntwo", ("ONE", "TWO", "ONE"))


def test_nothing_is_kept_of_nothing_and_of_deleted_sessions(tmp_path: Path) -> None:
    now = [1_000]
    with Store(tmp_path / "s.db", clock=lambda: now[0]) as store:
        session = store.create_session("/")
        store.keep_unsent(session.id, Unsent("words"))
        store.keep_unsent(HERE, Unsent("words"))
        store.keep_unsent(HERE, Unsent("  "))
        store.keep_unsent("/old", Unsent("words"))
        store.delete(session.id)
        store.purge()
        now[0] += RETENTION_MS + 1
        assert not store.take_unsent(session.id)
        assert not store.take_unsent(HERE)
        assert not store.take_unsent("/old")
