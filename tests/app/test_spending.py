"""What a session has cost: all of it, whatever branch one is on, and where it went."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.long_walk import walked
from tui_agent.app.spending import Purpose, Spending, look_up, spending_sections
from tui_agent.cli.main import run
from tui_agent.cli.sessions import open_store
from tui_agent.session.entries import AssistantEntry, SystemEntry, TextPart, Usage
from tui_agent.session.records import Reported
from tui_agent.session.session import Session
from tui_agent.session.store import Store

MODEL = "test/model"


def price(model: str, usage: Reported) -> float | None:
    """Three dollars for a million tokens read, a tenth of it from the cache."""
    return (
        None
        if model != MODEL
        else (usage.input * 3 + usage.cache_read * 0.3 + usage.output * 15) / 1e6
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "sessions.db") as store:
        yield store


def a_session(store: Store) -> Session:
    session = Session(
        store, store.create_session("/project").id, estimate=lambda entry: entry.tokens or 10
    )
    session.append(SystemEntry(blocks=("You are an agent.",), model=MODEL, tokens=1_200))
    return session


def found_in(session: Session, store: Store) -> tuple[Spending, dict[int, str]]:
    records = session.reader.requests()
    return look_up(
        session, store, records, session.departures(record.id for record in records), price
    )


def test_every_way_of_adding_up_comes_to_the_same(store: Store) -> None:
    session = a_session(store)
    walked(session, model=MODEL)
    child = Session(
        store,
        store.create_session("/p", parent=(session.id, 1), agent="x").id,
        estimate=lambda _entry: 1,
    )
    child.append(
        AssistantEntry(
            parts=(TextPart(text="so"),), model="small", usage=Usage(input=100, output=9), cost=0.5
        )
    )
    session.add_cost(0.5)
    session.add_cost(0.125)
    found, names = found_in(session, store)
    total = sum(session.reader.costs().values()) + session.info.side_cost
    assert found.total.cost == pytest.approx(total)
    cached = sum(record.cache_read for record in session.reader.requests())
    assert found.total.saved == pytest.approx(cached * 2.7e-6)
    assert sum(spent.cost for spent in found.purposes.values()) == pytest.approx(total)
    assert found.purposes[Purpose.SUBAGENTS].cost == 0.5
    assert found.purposes[Purpose.TITLES].cost == pytest.approx(0.125)
    assert found.purposes[Purpose.SUMMARIES].cost == pytest.approx(0.02)
    assert sum(spent.cost for spent in found.branches.values()) == pytest.approx(total - 0.625)
    assert sum(spent.cost for spent in found.models.values()) == pytest.approx(total - 0.125)
    assert sum(found.days.values()) == pytest.approx(total - 0.125)
    [left] = [key for key in found.branches if key]
    assert names[left] == "Try it with a cookie."


def test_an_unknown_price_is_told_and_not_taken_for_nothing(store: Store) -> None:
    session = a_session(store)
    session.append(
        AssistantEntry(
            parts=(TextPart(text="so"),), model="new/model", usage=Usage(input=10, output=2)
        )
    )
    sections = spending_sections(*found_in(session, store))
    [(_, lines), *_] = sections
    assert lines == ["No price for 1 request", "10 sent (0% from the cache), 2 answered"]
    said = "\n".join(line for _, rows in sections for line in rows)
    assert said.lower().count("price") == 1, "once, not in every row"
    assert "unknown" not in said


def test_the_command_line_tells_the_same_as_text_and_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"TUI_AGENT_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    with open_store() as store:
        session = a_session(store)
        walked(session, model=MODEL)
        session.move(None)
        name, total = session.id, sum(session.reader.costs().values())
    assert run(["cost", name]) == 0
    text = capsys.readouterr().out
    assert f"${total:.2f} for {len(session.reader.requests())} requests" in text
    assert "left at #" in text
    assert "$0.00                this branch" in text, "it has cost nothing yet"
    assert run(["cost", name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["total"]["cost"] == pytest.approx(total)
    assert len(told["days"]) > 1
    assert sum(told["days"].values()) == pytest.approx(total)
    assert "current" not in told["branches"]
    assert set(told["kinds"]) == {"answers", "summaries"}
