import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tests.support.request_validator import validate
from tests.support.session_paths import PathBuilder
from tests.support.thoroughness import EXAMPLES, examples
from tui_agent.context.anchors import find_anchors
from tui_agent.context.budget import ContextSize, ViewWeights, stored_tokens
from tui_agent.context.cutting import Cutter, outputs
from tui_agent.context.kept_lines import write_notes
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.pruning import (
    Moment,
    Occasion,
    PrunePlan,
    PruneRules,
    Superseded,
    occasion,
    plan_image_prune,
    plan_prune,
    superseded_results,
)
from tui_agent.context.request import ImageRef, request_bytes
from tui_agent.context.settings import ImageSettings, PruneSettings
from tui_agent.context.view import EntryState, resolve
from tui_agent.session.entries import ImagePart, TextPart, ToolMetadata, ToolStatus, UserEntry
from tui_agent.tools.registry import tool_traits

H = 400_000
"""A history budget so large that the settings' numbers of tokens count, not their shares."""


def rules(**fields):
    fields.setdefault("settings", PruneSettings())
    fields.setdefault("budget", H)
    return PruneRules(tools=tool_traits(), **fields)


def turns_of_results(*turns: list[int], tool="grep") -> PathBuilder:
    """Return a path of turns, each with results of that many tokens."""
    build = PathBuilder()
    for number, sizes in enumerate(turns):
        build.user(f"turn {number}")
        for index, tokens in enumerate(sizes):
            build.run(
                tool,
                {"pattern": f"{number}.{index}"},
                f"out {number}.{index} " + "x" * 3_000,
                tokens=tokens,
            )
        build.say("done")
    return build


def results(build: PathBuilder) -> list[int]:
    return [entry.id for entry in build.path if entry.kind == "tool_result"]


def size(total: int, threshold: int | None = 100_000) -> ContextSize:
    return ContextSize(0, total, total, 120_000, 20_000, threshold, None, estimated=True)


def test_output_older_than_the_users_last_turns_and_the_newest_tokens_is_pruned():
    build = turns_of_results([15_000, 15_000, 15_000], [15_000], [15_000], [15_000, 15_000])
    plan = plan_prune(resolve(build.path), rules())
    # From the newest back: 15k + 15k + 15k (two turns) + 15k are over 40k, so what is older than the last turns goes.
    assert plan.targets == tuple(results(build)[:4])
    assert plan.tokens_freed == 4 * (15_000 - 40)

    build = turns_of_results([15_000] * 6)
    for _ in range(3):
        build.user("go on", synthetic="continue")
        build.say("done")
    assert plan_prune(resolve(build.path), rules()) is None


def test_under_pressure_turns_protect_nothing_but_the_last_steps_and_newest_tokens_do():
    build = turns_of_results([50], [10_000] * 12)
    assert plan_prune(resolve(build.path), rules()) is None
    plan = plan_prune(resolve(build.path), rules(pressure=True))
    assert plan.targets == tuple(
        results(build)[1:9]
    )  # the first is too small, the newest four make 40k


@pytest.mark.parametrize(
    ("budget", "steps"), [(4_000, 1), (5_000, 2), (9_000, 3), (10_000, 4), (200_000, 4)]
)
def test_a_small_window_protects_fewer_steps_but_always_what_was_not_answered_yet(budget, steps):
    build = turns_of_results([budget // 5] * 6)
    plan = plan_prune(resolve(build.path), rules(budget=budget, pressure=True, minimum=1))
    assert plan.targets == tuple(results(build)[:-steps])


def test_pinned_masked_dropped_and_protected_results_stay_as_they_are():
    build = turns_of_results([30_000] * 4, [50_000], [50_000])
    for target, action in zip(results(build), ("pin", "mask", "drop"), strict=False):
        build.edit(target, action)
    assert plan_prune(resolve(build.path), rules()).targets == (results(build)[3],)
    protected = turns_of_results([90_000], [50_000], [50_000], tool="todo")
    assert plan_prune(resolve(protected.path), rules()) is None


def test_a_result_that_was_only_cut_can_still_be_pruned():
    build = turns_of_results([15_000] * 2, [25_000], [25_000])
    cut = results(build)[0]
    build.prune(cut, keep_chars=2_000)
    plan = plan_prune(resolve(build.path), rules(minimum=1))
    assert cut in plan.targets


def test_superseded_results_come_first_repeated_reads_even_within_the_last_turns():
    build = PathBuilder()
    build.user("go")
    build.run("grep", {"pattern": "a"}, "z" * 3_000, tokens=20_000)
    stale = build.run("read", {"path": "src/a.py"}, "old", tokens=20_000)
    build.run(
        "edit",
        {"path": "src/a.py", "old": "x", "new": "y"},
        "ok",
        metadata=ToolMetadata(path="src/a.py"),
    )
    for number in range(3):
        build.user(str(number))
        build.run("bash", {"command": str(number)}, "w", tokens=30_000)
    plan = plan_prune(resolve(build.path), rules())
    assert plan.targets[0] == stale.id
    assert len(plan.targets) > 1

    build = PathBuilder()
    build.user("go")
    first = build.run("read", {"path": "a.py"}, "text", tokens=30_000)
    for number in range(4):
        build.run("bash", {"command": str(number)}, "ok")
    build.run("read", {"path": "a.py"}, "text", tokens=30_000)
    plan = plan_prune(resolve(build.path), rules())
    assert plan.targets == (first.id,)


def test_what_makes_a_result_stale():
    build = PathBuilder()
    build.user("go")
    part = build.run("read", {"path": "a.py", "offset": 5}, "part")
    whole = build.run("read", {"path": "a.py"}, "whole")
    again = build.run("read", {"path": "a.py"}, "whole")
    tested = build.run("bash", {"command": "pytest"}, "failed", status=ToolStatus.ERROR)
    build.run("edit", {"path": "a.py", "old": "1", "new": "2"}, "ok")
    build.run("bash", {"command": "pytest"}, "passed")
    other = build.run("read", {"path": "b.py"}, "other")
    build.run("read", {"path": "b.py", "offset": 100}, "part of it")
    stale = superseded_results(resolve(build.path), tool_traits())
    assert stale == {
        part.id: Superseded.REPEATED,
        whole.id: Superseded.REPEATED,
        again.id: Superseded.CHANGED,
        tested.id: Superseded.REPEATED,
    }
    assert other.id not in stale

    build = PathBuilder()
    build.user("go")
    whole = build.run("read", {"path": "a.py"}, "whole")
    build.run(
        "read",
        {"path": "a.py"},
        "[Unchanged]",
        metadata=ToolMetadata(path="a.py", known_from=whole.id),
    )

    assert superseded_results(resolve(build.path), tool_traits()) == {}


@pytest.mark.parametrize(
    ("when", "moment", "total", "expected"),
    [
        ("auto", Moment(), 94_000, None),
        ("auto", Moment(), 96_000, Occasion.PRESSURE),
        ("auto", Moment(cache_cold=True), 10_000, Occasion.COLD_CACHE),
        ("auto", Moment(run_ended=True), 10_000, None),
        ("auto", Moment(model_switched=True), 10_000, Occasion.MODEL_SWITCH),
        ("run_end", Moment(run_ended=True), 10_000, Occasion.RUN_END),
        ("run_end", Moment(cache_cold=True), 99_000, None),
        ("off", Moment(run_ended=True, cache_cold=True, model_switched=True), 99_000, None),
        ("off", Moment(asked=True), 10, Occasion.MANUAL),
    ],
)
def test_when_pruning_may_happen(when, moment, total, expected):
    assert occasion(PruneSettings(when=when), size(total), moment) is expected
    unbounded = [
        occasion(PruneSettings(), size(total, threshold=None), Moment())
        for total in (94_000, 96_000)
    ]
    assert unbounded == [None, Occasion.PRESSURE]


def image(number: int) -> ImagePart:
    return ImagePart(
        blob=f"{number:064x}", mime="image/png", width=100, height=100, path=f"{number}.png"
    )


def test_too_many_images_lose_their_oldest_half_and_too_heavy_ones_all_but_the_newest():
    build = PathBuilder()
    ids = []
    for number in range(6):
        ids.append(build.add(UserEntry(parts=(TextPart(text="look"), image(number)))).id)
        build.say("seen")
    limits = ImageSettings(max_count=5)
    plan = plan_image_prune(resolve(build.path), limits, H, lambda _image: 10)
    assert plan.targets == tuple(ids[:4])
    build.add(plan.entry())
    assert plan_image_prune(resolve(build.path), limits, H, lambda _image: 10) is None

    build = PathBuilder()
    build.user("go")
    old = build.run("read", {"path": "a.png"}, "image", attachments=(image(1),))
    build.run("read", {"path": "b.png"}, "image", attachments=(image(2),))
    plan = plan_image_prune(resolve(build.path), ImageSettings(), 4_000, lambda _image: 1_500)
    assert plan.targets == (old.id,)


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), max_size=14),
    st.integers(0, 8),
    st.integers(1, 3_000),
)
def test_a_request_never_holds_more_images_than_the_setting(holders, most, weight):
    build, pinned = PathBuilder(), 0
    limits = ImageSettings(max_count=most)
    for count, answered, pin in holders:
        entry = build.add(UserEntry(parts=(TextPart(text="look"), *map(image, range(count)))))
        if pin:
            build.edit(entry.id, "pin")
            pinned += count
        plan = plan_image_prune(resolve(build.path), limits, H, lambda _image: weight)
        if plan is not None:
            build.add(plan.entry())
        sent = [
            part
            for message in project(build.path, ModelTraits("m")).messages
            for part in message.content
        ]
        assert sum(isinstance(part, ImageRef) for part in sent) <= max(most, pinned)
        assert plan_image_prune(resolve(build.path), limits, H, lambda _image: weight) is None
        if answered:
            build.say("seen")


def test_the_text_beside_an_image_stays_and_the_image_has_an_address():
    build = PathBuilder()
    build.user("go")
    old = build.run(
        "browser_look",
        {},
        "Heading: 42 orders are late. " * 20,
        tokens=900,
        attachments=(image(1),),
    )
    told = build.add(
        UserEntry(parts=(TextPart(text="compare with this " * 60), image(2)), tokens=1_200)
    )
    build.run("browser_look", {}, "Heading: none is late", attachments=(image(3),))
    plan = plan_image_prune(resolve(build.path), ImageSettings(max_count=1), H, lambda _image: 800)
    assert plan.targets == (old.id, told.id)
    build.add(plan.entry())
    view = resolve(build.path)
    texts = [message.text for message in project(build.path, ModelTraits("m")).messages]
    assert any("42 orders are late" in text and f'recall("#{old.id}")' in text for text in texts)
    assert any("compare with this" in text and f'recall("#{told.id}")' in text for text in texts)
    weights = ViewWeights(view)
    assert weights.of(old) < 250, "the image weighs nothing any more"
    assert 300 < weights.of(told) < 500, "but its text does"
    again = plan_prune(
        view, rules(settings=PruneSettings(protect_tokens=0, protect_turns=0, minimum_tokens=1))
    )
    assert again is not None, "the text can still be pruned"
    assert not Cutter(view, view.entries, stored_tokens).to(250, outputs), "nothing of it is long"


def test_long_arguments_are_cleared_only_under_pressure_and_not_those_of_the_newest_steps():
    build = PathBuilder()
    build.user("go")
    for number in range(4):
        build.run("write", {"path": f"{number}", "content": "long " * 2_000}, "ok", tokens=300)
    answers = [entry.id for entry in build.path if entry.kind == "assistant"]
    view = resolve(build.path)
    eager = PruneSettings(protect_tokens=0, protect_turns=0, protect_steps=2, minimum_tokens=1)

    def cleared(**fields):
        plan = plan_prune(view, rules(settings=eager, **fields))
        return [target for target in plan.targets if target in answers]

    assert cleared() == []
    assert cleared(pressure=True) == answers[:2]


@given(paths(max_size=25), st.integers(0, 20_000), st.booleans())
def test_pruning_is_deterministic_idempotent_and_only_takes_live_answers(path, budget, pressure):
    view = resolve(path)
    of = rules(budget=budget, pressure=pressure, minimum=1)
    plan = plan_prune(view, of)
    assert plan == plan_prune(resolve(list(path)), of)
    if plan is None:
        return
    by_id = {entry.id: entry for entry in view.entries}
    answered = view.answered()
    for target in plan.targets:
        if pressure and by_id[target].kind == "assistant":
            continue  # the long arguments of an old step
        assert by_id[target].kind == "tool_result"
        assert target in answered
        assert view.state(target) in {"live", "pruned"}
        assert not of.tools[by_id[target].tool].protected
    entry = plan.entry().model_copy(update={"id": path[-1].id + 1})
    assert plan_prune(resolve([*path, entry]), of) is None


TRAITS = ModelTraits("test/model")


def words(text: str) -> int:
    return len(text.split())


def notes_of(path, targets, budget):
    return write_notes(resolve(path), targets, budget, words, find_anchors(path, tool_traits()))


def read_and_used() -> tuple[PathBuilder, int]:
    """Return a path on which an output names two things that come up again and one that does not."""
    build = PathBuilder()
    build.user("go")
    output = (
        "def load_config(): ...\ndef never_mentioned_again(): ...\nMAX_RETRIES = 3\n"
        + "filler\n" * 400
    )
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
        build.run("grep", {"pattern": str(n)}, f"shared_name_here only_name_{n} also_name_{n}").id
        for n in range(10)
    ]
    notes = notes_of(build.path, ids, 30)
    assert len(notes) == 10
    assert sum(words(note) for note in notes) <= 30
    assert sum("shared_name_here" in note for note in notes) <= 1 + sum(
        "only_name" in note for note in notes
    )
    assert "shared_name_here" in notes[-1]
    assert notes_of(build.path, ids, 0) == ("",) * 10


def test_a_placeholder_tells_gist_and_address_on_one_line_and_the_lines_beneath():
    build, target = read_and_used()
    build.prune(target, notes=("MAX_RETRIES = 3\ndef load_config(): ...",))
    (text,) = [
        message.text for message in project(build.path, TRAITS).messages if message.role == "tool"
    ]
    line, *kept = text.split("\n")
    assert "read src/app.py, 403 lines" in line
    assert kept == ["MAX_RETRIES = 3", "def load_config(): ..."]
    assert f"#{target}" in line


def test_a_plan_brings_its_notes_and_counts_them():
    build, target = read_and_used()
    rules = PruneRules(
        PruneSettings(protect_turns=0, protect_share=0),
        10_000,
        tool_traits(),
        minimum=1,
        text=words,
    )
    plan = plan_prune(resolve(build.path), rules)
    assert plan.targets == (target,)
    assert "MAX_RETRIES" in plan.notes[0]
    full = next(entry.tokens for entry in build.path if entry.id == target)
    assert plan.tokens_freed == full - 40 - words(plan.notes[0])
    assert plan.entry().notes == plan.notes

    plan = PrunePlan((1, 2, 3, 4), 400, "why", notes=("a", "b", "c", "d"))
    assert plan.only({2, 4, 9}) == PrunePlan((2, 4), 200, "why", notes=("b", "d"))
    assert plan.only({9}) is None


@given(paths(max_size=25), st.lists(st.integers(1, 25), max_size=5), st.sampled_from([0, 300]))
@settings(max_examples=EXAMPLES, deadline=None)
def test_applying_a_plan_to_a_view_is_the_same_as_appending_its_entry(path, targets, keep_chars):
    view = resolve(path)
    live = [
        t
        for t in dict.fromkeys(targets)
        if view.state(t) is EntryState.LIVE and any(e.id == t for e in view.entries)
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
