"""Which entries of a path count, and what edits and prunes made of them."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tests.support.numbered import answer, compaction, edit, prune, result, user
from tui_agent.context.context_status import Standing, together
from tui_agent.context.context_status_cache import standings
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.view import EntryState, resolve
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    EffortChangeEntry,
    Entry,
    ModeChangeEntry,
    ModelChangeEntry,
    PinnedText,
    SystemEntry,
)


def ids(view):
    return [entry.id for entry in view.entries]


def test_the_last_compaction_keeps_what_it_names_and_supersedes_earlier_ones():
    view = resolve([user(1), compaction(2, 1), user(3), answer(4), compaction(5, 3), user(6)])

    assert view.compaction.id == 5
    assert ids(view) == [3, 4, 6]


def test_the_last_head_model_mode_and_effort_count():
    path = [
        SystemEntry(id=1, blocks=("a",), model="one", mode="plan"),
        ModelChangeEntry(id=2, model="two"),
        ModeChangeEntry(id=3, mode="build"),
        user(4),
    ]

    view = resolve(path)
    assert (view.system.id, view.model, view.mode) == (1, "two", "build")
    later = resolve([*path, SystemEntry(id=5, blocks=("b",), model="three", mode="plan")])
    assert (later.system.id, later.model, later.mode) == (5, "three", "plan")
    assert (resolve([]).system, resolve([]).model, resolve([]).mode) == (None, None, None)

    path = [user(1), EffortChangeEntry(id=2, effort=Effort.HIGH), user(3)]

    assert resolve(path[:1]).effort is None
    assert resolve([*path, SystemEntry(id=4, blocks=(), model="m")]).effort.effort is Effort.HIGH
    assert resolve([*path, EffortChangeEntry(id=4, effort=None)]).effort.effort is None


def test_the_latest_edit_of_a_target_wins_but_for_prunes_of_pinned_ones():
    path = [result(1, "a"), prune(2, 1)]
    assert resolve(path).state(1) is EntryState.PRUNED
    assert resolve([*path, edit(3, 1, "restore")]).state(1) is EntryState.LIVE
    assert resolve([*path, edit(3, 1, "mask")]).state(1) is EntryState.MASKED
    assert resolve([*path, edit(3, 1, "restore"), prune(4, 1)]).state(1) is EntryState.PRUNED

    view = resolve([result(1, "a"), edit(2, 1, "pin"), prune(3, 1)])

    assert view.state(1) is EntryState.PINNED
    assert view.is_open(1)

    path = [result(1, "a"), prune(2, 1, keep_chars=2_000)]
    assert resolve(path).kept_chars == {1: 2_000}
    assert resolve([*path, prune(3, 1)]).kept_chars == {}
    assert resolve([*path, edit(3, 1, "restore")]).kept_chars == {}

    assert resolve([edit(1, 2, "drop"), user(2)]).states == {}


def test_results_answer_the_calls_before_them_in_order_and_go_with_the_answer():
    view = resolve([answer(1, "ok", "a", "b"), result(2, "b"), result(3, "a")])

    assert [entry.id for entry in view.results[1]] == [3, 2]
    assert view.answered() == {2, 3}

    view = resolve([answer(1, "ok", "a", "a"), result(2, "a"), result(3, "a")])

    assert [entry.id for entry in view.results[1]] == [2, 3]

    view = resolve([answer(1, "ok", "a"), result(2, "a"), edit(3, 1, "drop")])

    assert view.state(2) is EntryState.DROPPED


def test_what_a_compaction_carries_of_pins_ends_with_the_pin():
    pins = (PinnedText(id=1, text="first"), PinnedText(id=2, text="second"))
    path = [user(1), user(2), user(3), compaction(4, 3, pinned=pins)]

    assert resolve(path).pinned == pins
    assert resolve([*path, edit(5, 1, "restore")]).pinned == pins[1:]
    assert resolve([*path, edit(5, 2, "drop")]).pinned == pins[:1]

    path = [user(1), compaction(2, 1, pinned=(PinnedText(id=1, text="first"),))]

    assert resolve(path).pinned == ()

    pins = (PinnedText(id=3, text="from the file of another program"),)

    assert resolve([user(1), compaction(2, None, pinned=pins), user(3)]).pinned == pins


@given(paths(), st.data())
def test_a_path_that_grew_has_the_standings_of_the_whole(path: list[Entry], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(path)))
    grown, whole = standings(path[:cut]).grown(path), standings(path)
    for entry in path:
        assert grown.of(entry.id, entry.kind) is whole.of(entry.id, entry.kind)


@given(paths())
def test_what_is_in_context_is_in_the_request_and_nothing_else_is(path: list[Entry]) -> None:
    found = standings(path)
    carried = {pin.id for entry in path if entry.kind == "compaction" for pin in entry.details.pinned}
    request = project(path, ModelTraits("openai/gpt-4o"))
    heads = {entry.id for entry in path if entry.kind == "system"}
    sent = {origin for message in request.messages for origin in message.origin} - heads
    whole = {Standing.SENT, Standing.PINNED, Standing.CLEARED}
    told = {e.id for e in path if e.kind != "system" and found.of(e.id, e.kind) in whole}
    assert sent - {found.compaction} - carried <= told


def test_what_is_shown_as_one_stands_as_that_of_which_the_model_has_least() -> None:
    assert together([Standing.SENT, Standing.CLEARED, Standing.PINNED]) is Standing.CLEARED
    assert together([Standing.SENT, Standing.SUMMARISED]) is Standing.SUMMARISED
    assert together([]) is Standing.UNSENT
