from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tests.support.request_validator import validate
from tests.support.session_paths import PathBuilder
from tests.support.thoroughness import EXAMPLES
from tui_agent.context.anchors import find_anchors
from tui_agent.context.kept_lines import write_notes
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.pruning import PrunePlan, PruneRules, plan_prune
from tui_agent.context.request import request_bytes
from tui_agent.context.settings import PruneSettings
from tui_agent.context.view import EntryState, resolve
from tui_agent.tools.registry import tool_traits

TRAITS = ModelTraits("test/model")


def words(text: str) -> int:
    return len(text.split())


def notes_of(path, targets, budget):
    return write_notes(resolve(path), targets, budget, words, find_anchors(path, tool_traits()))


def read_and_used() -> tuple[PathBuilder, int]:
    """Return a path on which an output names two things that come up again and one that does not."""
    build = PathBuilder()
    build.user("go")
    output = "def load_config(): ...\ndef never_mentioned_again(): ...\nMAX_RETRIES = 3\n" + "filler\n" * 400
    read = build.run("read", {"path": "src/app.py"}, output, title="src/app.py")
    for _ in range(5):
        build.say("load_config needs care")
    return build, read.id


def test_a_note_names_what_matters_elsewhere_unless_it_stays_in_view_anyway():
    build, target = read_and_used()
    (note,) = notes_of(build.path, [target], 100)
    assert "never_mentioned_again" in note
    assert "MAX_RETRIES" in note
    assert "load_config" not in note  # the answers that stay say it


def test_notes_share_one_budget_and_name_each_thing_once():
    build = PathBuilder()
    build.user("go")
    ids = [
        build.run("grep", {"pattern": str(n)}, f"shared_name_here only_name_{n} also_name_{n}").id for n in range(10)
    ]
    notes = notes_of(build.path, ids, 30)
    assert len(notes) == 10
    assert sum(words(note) for note in notes) <= 30
    assert sum("shared_name_here" in note for note in notes) <= 1 + sum("only_name" in note for note in notes)
    assert "shared_name_here" in notes[-1]
    assert notes_of(build.path, ids, 0) == ("",) * 10


def test_a_placeholder_tells_gist_and_address_on_one_line_and_the_lines_beneath():
    build, target = read_and_used()
    build.prune(target, notes=("MAX_RETRIES = 3\ndef load_config(): ...",))
    (text,) = [message.text for message in project(build.path, TRAITS).messages if message.role == "tool"]
    line, *kept = text.split("\n")
    assert "read src/app.py, 403 lines" in line
    assert kept == ["MAX_RETRIES = 3", "def load_config(): ..."]
    assert f"#{target}" in line


def test_a_plan_brings_its_notes_and_counts_them():
    build, target = read_and_used()
    rules = PruneRules(PruneSettings(protect_turns=0, protect_share=0), 10_000, tool_traits(), minimum=1, text=words)
    plan = plan_prune(resolve(build.path), rules)
    assert plan is not None
    assert plan.targets == (target,)
    assert "MAX_RETRIES" in plan.notes[0]
    full = next(entry.tokens for entry in build.path if entry.id == target)
    assert plan.tokens_freed == full - 40 - words(plan.notes[0])
    assert plan.entry().notes == plan.notes


def test_a_plan_for_some_of_its_targets_keeps_their_notes():
    plan = PrunePlan((1, 2, 3, 4), 400, "why", notes=("a", "b", "c", "d"))
    assert plan.only({2, 4, 9}) == PrunePlan((2, 4), 200, "why", notes=("b", "d"))
    assert plan.only({9}) is None


@given(paths(max_size=25), st.lists(st.integers(1, 25), max_size=5), st.sampled_from([0, 300]))
@settings(max_examples=EXAMPLES, deadline=None)
def test_applying_a_plan_to_a_view_is_the_same_as_appending_its_entry(path, targets, keep_chars):
    view = resolve(path)
    live = [
        t for t in dict.fromkeys(targets) if view.state(t) is EntryState.LIVE and any(e.id == t for e in view.entries)
    ]
    if not live:
        return
    plan = PrunePlan(tuple(live), 1, "test", keep_chars, notes_of(path, live, 50))
    entry = plan.entry().model_copy(update={"id": path[-1].id + 1})
    applied, appended = plan.applied(view), resolve([*path, entry])
    assert dict(applied.states) == dict(appended.states)
    assert dict(applied.kept_chars) == dict(appended.kept_chars)
    assert dict(applied.notes) == dict(appended.notes)
    request = project([*path, entry], TRAITS)
    validate(request)
    assert request_bytes(request) == request_bytes(project([*path, entry], TRAITS))
