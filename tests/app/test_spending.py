"""What a session has cost: all of it, whatever branch one is on, and where it went."""

import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.long_walk import walked
from tests.support.thoroughness import examples
from tui_agent.agent.timeline import Step
from tui_agent.app.spending import Spending, session_spending, spending_sections
from tui_agent.cli.main import run
from tui_agent.cli.sessions import open_store
from tui_agent.context.cache import BreakCause, CacheMiss
from tui_agent.session.entries import (
    AssistantEntry,
    RaceEntry,
    RaceRunner,
    SystemEntry,
    TextPart,
    Usage,
)
from tui_agent.session.records import Purpose, Reported
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
    return session_spending(
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
    assert found.purposes[Purpose.OTHER].cost == pytest.approx(0.125)
    assert found.purposes[Purpose.SUMMARIES].cost == pytest.approx(0.02)
    assert sum(spent.cost for spent in found.branches.values()) == pytest.approx(total - 0.625)
    assert sum(spent.cost for spent in found.models.values()) == pytest.approx(total - 0.125)
    assert sum(found.days.values()) == pytest.approx(total - 0.125)
    [left] = [key for key in found.branches if key]
    assert names[left] == "Try it with a cookie."


def answered(cost: float) -> AssistantEntry:
    usage = Usage(input=1_000, output=10)
    return AssistantEntry(parts=(TextPart(text="so"),), model=MODEL, usage=usage, cost=cost)


def test_money_is_told_by_what_it_was_spent_on(store: Store) -> None:
    session = a_session(store)
    session.append(answered(1.0))
    start = session.leaf
    ran = [session.beside(start).append_many([answered(cost), answered(cost)]) for cost in (2, 4)]
    runners = tuple(
        RaceRunner(name=str(branch[0].id), root=branch[0].id, leaf=branch[-1].id) for branch in ran
    )
    session.move(ran[1][-1].id)
    session.append(RaceEntry(prompt="try", start=start, runners=runners, taken=2))
    session.append(answered(8.0))
    for purpose, cost in (
        (Purpose.GOALS, 0.25),
        (Purpose.SIDE_QUESTIONS, 0.5),
        (Purpose.RACES, 0.125),
        (Purpose.SUMMARIES, 0.75),
        (Purpose.SUMMARIES, -0.75),
    ):
        session.add_cost(cost, purpose)
    found, names = found_in(session, store)
    assert {purpose: spent.cost for purpose, spent in found.purposes.items()} == {
        Purpose.ANSWERS: 9.0,
        Purpose.RACES: 12.125,
        Purpose.GOALS: 0.25,
        Purpose.SIDE_QUESTIONS: 0.5,
    }
    assert found.total.cost == 21.875
    other = a_session(store)
    other.append(answered(0.125))
    assert list(store.spent_by_day(datetime.now().astimezone(), 1).values()) == [22.0]
    said = dict(spending_sections(found, names))
    assert [row.split("  ")[-1].strip() for row in said["By purpose"]] == [
        "races",
        "answers",
        "side questions",
        "goals",
    ]


def step(answer: int, miss: CacheMiss | None = None, read: int = 0) -> Step:
    return Step(
        answer,
        answer - 1,
        0,
        model=MODEL,
        head=1_000,
        total=40_000,
        window=200_000,
        cached=read,
        cost=0.5,
        miss=miss,
    )


def test_each_request_says_what_the_cache_held_and_why_not_the_rest(store: Store) -> None:
    found = Spending()
    found.total.requests = 4
    found.add_step(step(2, CacheMiss(30_000, 0, BreakCause.COLD)), 0.125)
    found.add_step(step(4, CacheMiss(20_000, 5_000, BreakCause.COLD), read=5_000), 0.25)
    found.add_step(step(6, CacheMiss(9_000, 0, None)), None)
    found.add_step(step(8, read=36_000), None)
    said = dict(spending_sections(found, {}))
    assert said["Cache misses, all branches"] == [
        "   ~$0.38  2 requests    45k read again: the prompt cache had expired",
        "        –  1 request     9k read again: nothing changed here, and the provider gave no reason",
    ]
    rows = [" ".join(row.split()).split(" ", 3) for row in said["Requests of this branch"]]
    assert [(row[1], row[3]) for row in rows] == [
        ("#2", "0% of 40k cached 30k read again (~$0.12): the prompt cache had expired"),
        ("#4", "12% of 40k cached 15k read again (~$0.25): the prompt cache had expired"),
        (
            "#6",
            "0% of 40k cached 9k read again: nothing changed here, and the provider gave no reason",
        ),
        ("#8", "90% of 40k cached"),
    ]


@given(
    ages=st.lists(st.tuples(st.floats(0, 240), st.sampled_from([0.25, 0.5, 1.0])), max_size=12),
    days=st.integers(1, 9),
)
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_days_add_up_to_what_was_spent_since_the_first(
    tmp_path: Path, ages: list[tuple[float, float]], days: int
) -> None:
    now = datetime.now().astimezone()
    first = (now - timedelta(days=days - 1)).date()
    at = [0]
    with Store(Path(mkdtemp(dir=tmp_path)) / "s.db", clock=lambda: at[0]) as store:
        expected: dict[date, float] = {}
        at[0] = round(now.timestamp() * 1_000)
        session = a_session(store)
        for number, (hours, cost) in enumerate(ages):
            moment = now - timedelta(hours=hours)
            at[0] = round(moment.timestamp() * 1_000)
            if number % 2:
                session.append(answered(cost))
            else:
                session.add_cost(cost)
            day = datetime.fromtimestamp(moment.timestamp()).date()  # noqa: DTZ006 - local, as people count
            if day >= first:
                expected[day] = expected.get(day, 0.0) + cost
        at[0] = round(now.timestamp() * 1_000)
        session.label(1, "used now")
        session.append(answered(0.0))
        assert store.spent_by_day(now, days) == expected


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
        requests = len(session.reader.requests())
    assert run(["cost", name]) == 0
    text = capsys.readouterr().out
    assert f"${total:.2f} for {requests} requests" in text
    assert "left at #" in text
    assert "$0.00                this branch" in text, "it has cost nothing yet"
    assert run(["cost", name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["total"]["cost"] == pytest.approx(total)
    assert len(told["days"]) > 1
    assert sum(told["days"].values()) == pytest.approx(total)
    assert "current" not in told["branches"]
    assert set(told["kinds"]) == {"answers", "summaries"}
