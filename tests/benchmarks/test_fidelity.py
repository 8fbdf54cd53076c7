"""The product's rules keep more of what is used again than its models do, and the measure itself can be trusted."""

import pytest

from benchmarks.fidelity.gauge import errors
from benchmarks.fidelity.loops import loop_table
from benchmarks.fidelity.product import Ours
from benchmarks.fidelity.references import References, identifiers, rules_of
from benchmarks.fidelity.replay import replay
from benchmarks.fidelity.report import differences, interval, results
from benchmarks.fidelity.rivals import RIVALS, AppendOnly, OpenCodeLike, PiLike
from benchmarks.fidelity.traces import Trace, _numbered, _Story
from tests.support.session_paths import PathBuilder
from tui_agent.session.entries import TextPart, UserEntry

WINDOW = 16_384


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return [
        Trace("features", _numbered(_Story(11, files=40).features(tasks=10))),
        Trace("one run", _numbered(_Story(12, files=40).one_run(steps=80))),
    ]


@pytest.fixture(scope="module")
def found(traces):
    return list(results((WINDOW,), traces=traces, jobs=1))


def of(found, policy):
    return [result for result in found if result.policy == policy.name]


def test_more_is_there_at_no_more_tokens_than_any_rival_keeps(found):
    compared = {(one.rival, one.share): one for one in differences(found)}
    for rival in RIVALS:
        view, recalled = compared[rival.name, "in_view"], compared[rival.name, "recalled"]
        assert (view.traces, view.left_out) == (2, 0)
        assert view.ours > view.theirs
        assert recalled.ours > recalled.theirs + 0.05


def test_no_compaction_misses_its_goal_or_follows_another_at_once(found):
    assert any(ours.health.compactions for ours in of(found, Ours))
    for ours in of(found, Ours):
        assert (ours.health.violations, ours.health.no_progress, ours.health.over_window) == (0, 0, 0)
    ours, pi = (sum(r.health.costs[0] + r.health.summarised for r in of(found, policy)) for policy in (Ours, PiLike))
    assert ours < pi * 1.1


def test_append_only_is_the_ceiling_overflows_and_has_nothing_to_read_again(found):
    for ceiling in of(found, AppendOnly):
        assert ceiling.share("in_view") == ceiling.share("rules") == ceiling.stability == 1
        assert ceiling.health.over_window > 0
        assert ceiling.read_again == 0
    assert all(result.read_again > 0 for result in of(found, OpenCodeLike))


def test_what_another_session_uses_is_not_found_by_chance(found):
    assert all(result.share("by_chance") < 0.05 for result in found)


def test_a_replay_gives_the_same_every_time(traces):
    trace, other = traces
    references = References(trace.entries), References(other.entries)
    assert replay(trace, Ours(WINDOW), *references) == replay(trace, Ours(WINDOW), *references)


def test_a_reference_is_what_the_agent_brings_up_by_itself():
    build = PathBuilder()
    build.user("fix load_config and save_config in src/app.py")
    build.say("look")
    build.run("read", {"path": "src/app.py"}, "def save_config(): pass")
    build.say("save_config calls load_config")
    references = References(build.path)
    # save_config comes up first in an output, so the agent had it in front of it; src/app.py is in the call.
    assert references.used_after(2) == {"src/app.py", "load_config"}
    assert references.known(4) == {"save_config", "load_config"}
    assert [references.source(word, 4) for word in ("save_config", "load_config")] == [3, 0]


def test_identifiers_are_not_plain_words():
    found = identifiers(
        "Fix the load_config of src/app.py no-cache at 1f2e3d4c, see Error TS2304 and getTheme. well-known"
    )
    assert found == {"load_config", "src/app.py", "1f2e3d4c", "TS2304", "getTheme"}


def test_rules_are_sentences_of_the_user():
    said = UserEntry(parts=(TextPart(text="Fix it. Never touch a.py! 不要修改接口。Thanks."),))
    assert rules_of(said) == ["Never touch a.py!", "不要修改接口。"]


def test_the_interval_holds_the_mean_and_is_narrow_where_all_agree():
    low, high = interval([0.1, 0.2, 0.3])
    assert low < 0.2 < high
    assert interval([0.2, 0.2]) == (0.2, 0.2)


def test_the_gauge_is_within_three_percent_and_two_once_it_has_learnt(traces):
    for error in errors(traces):
        assert error.known <= 0.03, error
        assert error.learnt <= 0.02, error
        assert error.learnt < error.by_characters


def test_loops_are_found_and_honest_work_is_left_alone(traces):
    assert loop_table(traces).startswith("Loops: precision 100.0%, recall 100.0%")
