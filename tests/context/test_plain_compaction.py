"""What a compaction without a model keeps, carries and says."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tests.support.request_validator import validate
from tests.support.session_paths import PathBuilder
from tui_agent.context.plain_compaction import PlainOrder, plain_compactions
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.templates import Templates
from tui_agent.context.view import resolve
from tui_agent.session.rows import sound


def words(text: str) -> int:
    return len(text.split())


def compactions(path, keep=0, summary=1_000, boundary=None):
    order = PlainOrder("overflow", keep=keep, summary=summary, boundary=boundary)
    return plain_compactions(resolve(path), order, words, Templates())


@given(path=paths(max_size=25), keep=st.integers(0, 400), summary=st.integers(0, 300))
def test_each_keeps_less_than_the_one_before_and_the_last_nothing(path, keep, summary):
    path = [sound(entry) for entry in path]
    found = compactions(path, keep, summary)
    entries = resolve(path).entries
    assert bool(found) is bool(entries)
    places = [entry.first_kept_id for entry in found]
    kept = [0 if place is None else sum(one.id >= place for one in entries) for place in places]
    assert kept == sorted(set(kept), reverse=True)
    assert kept[-1:] == ([0] if entries else [])
    for entry in found:
        assert entry.summary
        assert len(entry.details.user_messages) <= 3
        with_it = [*path, entry.model_copy(update={"id": path[-1].id + 1})]
        validate(project(with_it, ModelTraits("test/model")))


def talk() -> PathBuilder:
    build = PathBuilder()
    for number in range(5):
        build.user(f"message {number}")
        build.say(f"answer {number}")
    return build


def test_the_first_and_the_newest_messages_rules_and_earlier_summaries_are_carried():
    build = talk()
    build.user("Never touch the main branch.")
    rule = build.path[-1]
    build.user("word " * 1_000)
    [*_, whole] = compactions(build.path)
    first, before, newest = whole.details.user_messages
    assert (first, before) == ("#1 message 0", f"#{rule.id} Never touch the main branch.")
    assert newest.startswith("#12 word word")
    assert 200 < words(newest) <= 250, "a quarter of the summary"
    assert any("Never touch the main branch" in line for line in whole.details.rules)
    assert "#6 answer 2" in whole.summary

    build.add(whole)
    build.user("go on")
    build.say("gone on")
    [*_, again] = compactions(build.path)
    assert again.details.user_messages == ("#1 message 0", newest, "#14 go on")
    assert any("Never touch the main branch" in line for line in again.details.rules)
    assert again.summary.startswith(whole.summary)
    assert again.summary.endswith("gone on")


def test_the_newest_entries_that_fit_or_those_from_the_users_boundary_on_are_kept():
    build = talk()
    sizes = {entry.id: words(entry.model_dump_json()) for entry in build.path}
    assert [entry.first_kept_id for entry in compactions(build.path, keep=sizes[10])] == [10, None]
    two = sizes[10] + sizes[9]
    assert [entry.first_kept_id for entry in compactions(build.path, keep=two)] == [9, 10, None]
    assert [entry.first_kept_id for entry in compactions(build.path, keep=two - 1)] == [10, None]
    assert [entry.first_kept_id for entry in compactions(build.path, boundary=5)] == [5, None]


def test_a_result_is_never_kept_without_its_call():
    build = PathBuilder()
    build.user("go")
    build.run("read", {"path": "a"}, "data")
    call = next(entry for entry in build.path if entry.kind == "assistant")
    assert [entry.first_kept_id for entry in compactions(build.path, boundary=call.id + 1)] == [
        call.id,
        None,
    ]
