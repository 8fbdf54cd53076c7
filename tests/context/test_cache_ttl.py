"""Whether five minutes or an hour of cache is asked for, from the pauses of the conversation itself."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.context.cache import CacheState, cache_state, cache_ttl
from tui_agent.context.settings import CacheSettings
from tui_agent.session.entries import AssistantEntry, Entry, TextPart, Usage, UserEntry

AUTO = CacheSettings()
MINUTE = 60_000
START = 1_700_000_000_000


def conversation(*gaps: float, first: int = 20_000, more: int = 2_000, model: str = "anthropic/claude") -> list[Entry]:
    """Return a path of requests that many minutes apart, of so many tokens, growing by so many."""
    times = [START + round(minutes * MINUTE) for minutes in accumulate(gaps, initial=0)]
    path: list[Entry] = []
    for number, at in enumerate(times):
        usage = Usage(input=first + number * more, output=100)
        path.append(UserEntry(id=2 * number + 1, parts=(TextPart(text="Go on."),), created_at=at))
        path.append(
            AssistantEntry(
                id=2 * number + 2,
                parts=(TextPart(text="Done."),),
                model=model,
                usage=usage,
                started_at=at,
                created_at=at + 1_000,
            )
        )
    return path


def asked(path: list[Entry], after_minutes: float) -> str:
    """Return what a request that long after the last one asks for."""
    last = max(entry.started_at for entry in path if isinstance(entry, AssistantEntry))
    return cache_ttl(path, AUTO, last + round(after_minutes * MINUTE))


def test_what_is_set_is_asked_for_whatever_the_pauses_are():
    path = conversation(10, 10, 10)
    assert cache_ttl(path, CacheSettings(ttl="5m"), START) == "5m"
    assert cache_ttl([], CacheSettings(ttl="1h"), START) == "1h"


def test_it_changes_its_mind_only_when_nothing_is_cached_any_more():
    path = conversation(1, 20, *[1] * 20)
    assert asked(path, 1) == "1h"  # because of the 20 minutes, not of this one
    assert asked(conversation(1, 1, 1), 4.9) == "5m"


def test_a_model_that_others_take_turns_with_finds_nothing_of_theirs():
    path = conversation(20, 20, 20, 20)
    assert cache_ttl(path, AUTO) == "1h"
    answers = [entry for entry in path if isinstance(entry, AssistantEntry)]
    turns = [entry.model_copy(update={"model": f"anthropic/{at % 2}"}) for at, entry in enumerate(answers)]
    assert cache_ttl(turns, AUTO) == "5m"


@given(st.lists(st.floats(0.1, 200), max_size=12), st.floats(0.1, 4.9))
def test_a_request_asks_for_what_the_one_before_did_while_that_is_cached(gaps: list[float], soon: float):
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


def test_a_cache_of_an_hour_is_warm_for_an_hour():
    assert cache_state(0, 600_000, AUTO, ttl="5m") == CacheState(warm=False, seconds_left=0)
    assert cache_state(0, 600_000, AUTO, ttl="1h") == CacheState(warm=True, seconds_left=3_000)
    assert not cache_state(0, 3_600_000, AUTO, ttl="1h").warm
