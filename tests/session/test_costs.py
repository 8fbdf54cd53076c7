"""What a session cost, read without parsing its entries."""

from pathlib import Path

from tui_agent.session.entries import AssistantEntry, CompactionEntry, TextPart, UserEntry
from tui_agent.session.session import Session
from tui_agent.session.store import Store


def test_costs_are_those_of_all_branches_and_follow_appends(tmp_path: Path) -> None:
    store = Store(tmp_path / "sessions.db")
    session = Session(store, store.create_session(tmp_path).id, estimate=lambda _entry: 1)
    assert session.reader.costs() == {}
    root = session.append(UserEntry(parts=(TextPart(text="hi"),)))
    first = session.append(AssistantEntry(parts=(), model="m", cost=0.25))
    session.append(AssistantEntry(parts=(), model="m"))
    session.move(root.id)
    second = session.append(
        CompactionEntry(summary="s", first_kept_id=None, tokens_before=9, tokens_after=1, trigger="manual", cost=0.5)
    )
    assert session.reader.costs() == {first.id: 0.25, second.id: 0.5}
    third = session.append(AssistantEntry(parts=(), model="m", cost=1.0))
    assert session.reader.costs()[third.id] == 1.0
    store.close()
