"""How the model has each entry: the same whether a path is looked at whole or as it grows, and true to the request."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tui_agent.context.context_status import Standing, together
from tui_agent.context.context_status_cache import standings
from tui_agent.context.projection import ModelTraits, project
from tui_agent.session.entries import Entry


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
