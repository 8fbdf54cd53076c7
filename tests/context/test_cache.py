"""Where and why a request stops extending the one before, and what the provider still remembers."""

from dataclasses import replace

import pytest

from tui_agent.context.cache import (
    BreakCause,
    CacheState,
    cache_state,
    cached_origins,
    prefix_break,
)
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.settings import CacheSettings
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    ContextEditEntry,
    ModelChangeEntry,
    PruneEntry,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolSchema,
    ToolStatus,
    UserEntry,
)

MODEL = "openai/gpt-4o"
TRAITS = ModelTraits(MODEL)
WARM = CacheState(warm=True, seconds_left=60)
COLD = CacheState(warm=False, seconds_left=0)
READ = ToolSchema(name="read", description="Read", parameters={})
HEAD = SystemEntry(id=1, blocks=("You are an agent.", "Linux"), tools=(READ,), model=MODEL)


def user(number, text="hello"):
    return UserEntry(id=number, parts=(TextPart(text=text),))


def answer(number, *call_ids):
    calls = tuple(ToolCallPart(call_id=c, tool="read", arguments="{}") for c in call_ids)
    return AssistantEntry(id=number, parts=(TextPart(text="ok"), *calls), model=MODEL)


def result(number, call_id):
    return ToolResultEntry(id=number, call_id=call_id, tool="read", status=ToolStatus.COMPLETED, output="d" * 500)


PATH = [HEAD, user(2), answer(3, "a"), result(4, "a"), answer(5), user(6)]
COMPACTION = CompactionEntry(id=7, summary="s", first_kept_id=6, tokens_before=1, tokens_after=1, trigger="manual")


def broken(before, appended, **fields):
    return prefix_break(project(before, TRAITS), project([*before, *appended], TRAITS), appended, **fields)


@pytest.mark.parametrize(
    ("entry", "cause", "index", "origin"),
    [
        (PruneEntry(id=7, targets=(4,), tokens_freed=1, reason="x"), BreakCause.PRUNE, 4, (4,)),
        (ContextEditEntry(id=7, target=3, action="mask"), BreakCause.EDIT, 3, (3,)),
        (COMPACTION, BreakCause.COMPACTION, 2, (7,)),
        (SystemEntry(id=7, blocks=("Other",), tools=(READ,), model=MODEL), BreakCause.HEAD, 0, (7,)),
        (SystemEntry(id=7, blocks=HEAD.blocks, model=MODEL), BreakCause.TOOLS, 0, ()),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_break_names_its_place_and_its_cause(entry, cause, index, origin):
    found = broken(PATH, [entry, user(8)])

    assert (found.cause, found.entry_id, found.index, found.origin) == (cause, 7, index, origin)


def test_another_model_is_a_cause():
    change = ModelChangeEntry(id=7, model="other")
    found = prefix_break(project(PATH, TRAITS), project([*PATH, change], ModelTraits("other")), [change])

    assert (found.part, found.cause, found.entry_id) == ("model", BreakCause.MODEL, 7)


def test_a_result_that_replaces_its_stand_in_is_told_from_a_defect():
    found = broken([HEAD, user(2), answer(3, "a")], [result(4, "a")])

    assert (found.cause, found.entry_id) == (BreakCause.RESULT, 4)


def test_a_move_in_the_tree_is_a_cause():
    old, new = project(PATH, TRAITS), project([*PATH[:5], user(9, "other")], TRAITS)

    assert prefix_break(old, new, [user(9, "other")], moved=True).cause is BreakCause.MOVED
    assert prefix_break(old, new, [user(9, "other")]).cause is BreakCause.UNKNOWN


def test_what_a_warm_cache_holds_is_the_common_start():
    old, new = project(PATH, TRAITS), project([*PATH, answer(7), user(8)], TRAITS)

    assert cached_origins(old, new, WARM) == {1, 2, 3, 4, 5, 6}
    pruned = project([*PATH, PruneEntry(id=7, targets=(4,), tokens_freed=1, reason="x")], TRAITS)
    assert cached_origins(old, pruned, WARM) == {1, 2, 3}
    assert cached_origins(old, replace(new, tools=()), WARM) == frozenset()


def test_a_cold_cache_holds_nothing():
    old, new = project(PATH, TRAITS), project([*PATH, answer(7)], TRAITS)

    assert cached_origins(old, new, COLD) == cached_origins(None, new, WARM) == frozenset()


@pytest.mark.parametrize(
    ("last", "now", "expected"),
    [
        (None, 1_000, COLD),
        (1_000, 1_000, CacheState(warm=True, seconds_left=300)),
        (1_000, 109_000, CacheState(warm=True, seconds_left=192)),
        (1_000, 301_000, COLD),
        (9_000, 1_000, CacheState(warm=True, seconds_left=300)),
    ],
)
def test_a_cache_is_warm_for_its_time_to_live(last, now, expected):
    assert cache_state(last, now, CacheSettings(ttl_seconds=300)) == expected
