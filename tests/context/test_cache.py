"""Where and why a request stops extending the one before, and what the provider still remembers."""

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.numbered import MODEL, answer, compaction, edit, prune, result, user
from tui_agent.context.cache import (
    BreakCause,
    CacheState,
    cache_state,
    cache_ttl,
    cached_origins,
    ever_cached,
    prefix_break,
)
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.settings import CacheSettings
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    ModelChangeEntry,
    SystemEntry,
    ToolSchema,
    Usage,
)

TRAITS = ModelTraits(MODEL)
WARM = CacheState(warm=True, seconds_left=60)
COLD = CacheState(warm=False, seconds_left=0)
READ = ToolSchema(name="read", description="Read", parameters={})
HEAD = SystemEntry(id=1, blocks=("You are an agent.", "Linux"), tools=(READ,), model=MODEL)


PATH = [HEAD, user(2), answer(3, "ok", "a"), result(4, "a"), answer(5), user(6)]


def broken(before, appended, **fields):
    return prefix_break(
        project(before, TRAITS), project([*before, *appended], TRAITS), appended, **fields
    )


@pytest.mark.parametrize(
    ("entry", "cause", "index", "origin"),
    [
        (prune(7, 4), BreakCause.PRUNE, 4, (4,)),
        (edit(7, 3, "mask"), BreakCause.EDIT, 3, (3,)),
        (compaction(7, 6), BreakCause.COMPACTION, 2, (7,)),
        (
            SystemEntry(id=7, blocks=("Other",), tools=(READ,), model=MODEL),
            BreakCause.HEAD,
            0,
            (7,),
        ),
        (SystemEntry(id=7, blocks=HEAD.blocks, model=MODEL), BreakCause.TOOLS, 0, ()),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_break_names_its_place_and_its_cause(entry, cause, index, origin):
    found = broken(PATH, [entry, user(8)])

    assert (found.cause, found.entry_id, found.index, found.origin) == (cause, 7, index, origin)


def test_another_model_a_late_result_and_a_move_are_told_from_a_defect():
    change = ModelChangeEntry(id=7, model="other")
    found = prefix_break(
        project(PATH, TRAITS), project([*PATH, change], ModelTraits("other")), [change]
    )

    assert (found.part, found.cause, found.entry_id) == ("model", BreakCause.MODEL, 7)

    found = broken([HEAD, user(2), answer(3, "ok", "a")], [result(4, "a")])

    assert (found.cause, found.entry_id) == (BreakCause.RESULT, 4)

    old, new = project(PATH, TRAITS), project([*PATH[:5], user(9, "other")], TRAITS)

    assert prefix_break(old, new, [user(9, "other")], moved=True).cause is BreakCause.MOVED
    assert prefix_break(old, new, [user(9, "other")]).cause is BreakCause.UNKNOWN


def test_what_a_warm_cache_holds_is_the_common_start_and_a_cold_one_nothing():
    old, new = project(PATH, TRAITS), project([*PATH, answer(7), user(8)], TRAITS)

    assert cached_origins(old, new, WARM) == {1, 2, 3, 4, 5, 6}
    pruned = project([*PATH, prune(7, 4)], TRAITS)
    assert cached_origins(old, pruned, WARM) == {1, 2, 3}
    assert cached_origins(old, replace(new, tools=()), WARM) == frozenset()

    old, new = project(PATH, TRAITS), project([*PATH, answer(7)], TRAITS)

    assert cached_origins(old, new, COLD) == cached_origins(None, new, WARM) == frozenset()


@pytest.mark.parametrize(
    ("last", "now", "expected"),
    [
        (None, 1_000, COLD),
        (1_000, 1_000, CacheState(warm=True, seconds_left=300)),
        (1_000, 301_000, COLD),
        (9_000, 1_000, CacheState(warm=True, seconds_left=300)),
    ],
)
def test_a_cache_is_warm_for_its_time_to_live(last, now, expected):
    assert cache_state(last, now, CacheSettings(ttl_seconds=300)) == expected


AUTO = CacheSettings()
MINUTE = 60_000
START = 1_700_000_000_000


def conversation(
    *gaps: float, first: int = 20_000, more: int = 2_000, model: str = "anthropic/claude"
) -> list[Entry]:
    """Return a path of requests that many minutes apart, of so many tokens, growing by so many."""
    times = [START + round(minutes * MINUTE) for minutes in accumulate(gaps, initial=0)]
    path: list[Entry] = []
    for number, at in enumerate(times):
        usage = Usage(input=first + number * more, output=100)
        path.append(user(2 * number + 1, created_at=at))
        path.append(
            answer(2 * number + 2, model=model, usage=usage, started_at=at, created_at=at + 1_000)
        )
    return path


def asked(path: list[Entry], after_minutes: float) -> str:
    """Return what a request that long after the last one asks for."""
    last = max(entry.started_at for entry in path if isinstance(entry, AssistantEntry))
    return cache_ttl(path, AUTO, last + round(after_minutes * MINUTE))


def test_what_is_set_is_asked_for_and_else_what_the_pauses_of_the_model_make_cheaper():
    path = conversation(10, 10, 10)
    assert cache_ttl(path, CacheSettings(ttl="5m"), START) == "5m"
    assert cache_ttl([], CacheSettings(ttl="1h"), START) == "1h"

    path = conversation(1, 20, *[1] * 20)
    assert asked(path, 1) == "1h"  # because of the 20 minutes, not of this one
    assert asked(conversation(1, 1, 1), 4.9) == "5m"

    path = conversation(20, 20, 20, 20)
    assert cache_ttl(path, AUTO) == "1h"
    answers = [entry for entry in path if isinstance(entry, AssistantEntry)]
    turns = [
        entry.model_copy(update={"model": f"anthropic/{at % 2}"})
        for at, entry in enumerate(answers)
    ]
    assert cache_ttl(turns, AUTO) == "5m"


@given(st.lists(st.floats(0.1, 200), max_size=12), st.floats(0.1, 4.9))
def test_a_request_asks_for_what_the_one_before_did_while_that_is_cached(
    gaps: list[float], soon: float
):
    path = conversation(*gaps)
    assert asked(path, soon) == cache_ttl(path, AUTO)


@given(st.lists(st.floats(0.1, 200), min_size=1, max_size=12))
def test_the_choice_is_the_cheaper_one_of_what_was_paid(gaps: list[float]):
    first, more = 20_000, 2_000

    def paid(kept: float, write: float) -> float:
        price, size = write * first, first
        for gap in gaps:
            price += (0.1 * size + write * more) if gap <= kept else write * (size + more)
            size += more
        return price

    path = conversation(*[*gaps[:-1], max(gaps[-1], 5.1)], first=first, more=more)
    gaps = [*gaps[:-1], max(gaps[-1], 5.1)]
    assert (cache_ttl(path, AUTO) == "1h") == (paid(60, 2.0) < paid(5, 1.25))


def test_whether_a_model_was_ever_cached_is_told_by_its_own_answers():
    written = answer(3, usage=Usage(input=1, cache_write=5))
    read = answer(3, usage=Usage(input=1, cache_read=5))
    new = answer(4, usage=Usage(input=9))
    assert ever_cached([user(2), written, new, answer(5), user(6)], MODEL)
    assert ever_cached([user(2), read, new], MODEL)
    assert not ever_cached([user(2), read, new], "other")
    assert not ever_cached([user(2), read.model_copy(update={"model": "other"}), new], MODEL)
    assert not ever_cached([user(2), new, answer(5)], MODEL)


def test_a_cache_of_an_hour_is_warm_for_an_hour():
    assert cache_state(0, 600_000, AUTO, ttl="5m") == CacheState(warm=False, seconds_left=0)
    assert cache_state(0, 600_000, AUTO, ttl="1h") == CacheState(warm=True, seconds_left=3_000)
    assert not cache_state(0, 3_600_000, AUTO, ttl="1h").warm
