import pytest

from tests.support.session_paths import PathBuilder
from tui_agent.agent.context_inspector import room_made
from tui_agent.context.budget import ContextSize
from tui_agent.context.compaction_policy import NO_FAILURES, HoldReason, hold, is_due
from tui_agent.context.settings import CompactionSettings

SETTINGS = CompactionSettings()


def started() -> PathBuilder:
    build = PathBuilder()
    build.user("go")
    return build


def test_no_second_compaction_by_a_model_without_a_completed_step():
    build = started()
    build.say("yes")
    build.compaction("summary", None)
    assert hold(build.path, SETTINGS, NO_FAILURES, "threshold") is HoldReason.NO_STEP
    build.say("", error="network", finish="error")
    build.say("half an answ", interrupted=True, finish="interrupted")
    build.user("and now?")
    assert hold(build.path, SETTINGS, NO_FAILURES, "overflow") is HoldReason.NO_STEP
    build.call(("read", {"path": "a"}))
    assert hold(build.path, SETTINGS, NO_FAILURES, "threshold") is None

    build = started()
    build.compaction("by rule", None, model=None)
    assert hold(build.path, SETTINGS, NO_FAILURES, "threshold") is None


def test_two_failures_pause_until_the_next_user_message():
    build = started()
    record = NO_FAILURES.failed(build.path)
    assert hold(build.path, SETTINGS, record, "threshold") is None
    build.user("Continue", synthetic="compaction")
    record = record.failed(build.path)
    assert hold(build.path, SETTINGS, record, "threshold") is HoldReason.PAUSED
    build.user("try again")
    assert hold(build.path, SETTINGS, record, "threshold") is None
    assert hold(build.path, SETTINGS, record.failed(build.path), "threshold") is None


@pytest.mark.parametrize("settings", [CompactionSettings(auto=False), CompactionSettings(threshold=0)])
@pytest.mark.parametrize("trigger", ["threshold", "overflow", "model_switch"])
def test_off_means_off(settings, trigger):
    assert hold(started().path, settings, NO_FAILURES, trigger) is HoldReason.OFF


def test_a_person_may_always_compact():
    build = started()
    build.compaction("summary", None)
    record = NO_FAILURES.failed(build.path).failed(build.path)
    assert hold(build.path, CompactionSettings(auto=False), record, "manual") is None


def test_compaction_is_due_above_the_threshold_only():
    def size(total, threshold):
        return ContextSize(0, total, total, 100, 10, threshold, None, estimated=True)

    assert is_due(size(91, 90))
    assert not is_due(size(90, 90))
    assert not is_due(size(1_000, None))


def test_compactions_and_prunes_are_counted_and_the_newest_is_named() -> None:
    build = PathBuilder()
    build.user("go")
    assert room_made(build.path).sentence == ""
    build.prune(1, tokens_freed=900)
    assert room_made(build.path).sentence == "So far cleared old outputs once (900 tokens)."
    build.compaction("first", 1)
    build.prune(1, tokens_freed=1_100)
    newest = build.compaction("second", None, tokens_before=12_000, tokens_after=3_000)
    made = room_made(build.path)
    assert (made.compactions, made.prunes, made.freed, made.newest) == (2, 2, 2_000, newest)
    assert made.sentence == (
        "So far compacted 2 times, last at #5 (12,000 → 3,000 tokens of history), "
        "cleared old outputs 2 times (2,000 tokens)."
    )
