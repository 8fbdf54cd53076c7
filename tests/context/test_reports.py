"""What a server reports of a request is believed where it can be true."""

import pytest

from tests.context.test_budget import COUNTER, LIMITS, MODEL, SETTINGS, answer, head, user
from tui_agent.context.budget import Report, complaint, is_silent_overflow, judge, measure, newest_report
from tui_agent.session.entries import CompactionEntry, TextPart, Usage


@pytest.mark.parametrize(
    ("usage", "estimate", "verdict"),
    [
        pytest.param(Usage(input=120), 1_700, Report.TOO_FEW, id="a made-up number"),
        pytest.param(Usage(input=4_096), 15_000, Report.CUT, id="a small window"),
        pytest.param(Usage(input=20, cache_read=1_500, cache_write=100), 1_700, Report.USABLE, id="mostly cached"),
        pytest.param(Usage(input=30), 250, Report.USABLE, id="too small to tell"),
        pytest.param(Usage(input=90_000_000), 1_700, Report.TOO_MANY, id="nonsense"),
        pytest.param(Usage(input=120), 0, Report.USABLE, id="no estimate to compare with"),
        pytest.param(Usage(), 1_700, Report.MISSING, id="zero"),
        pytest.param(None, 1_700, Report.MISSING, id="nothing"),
    ],
)
def test_what_a_report_is_worth(usage: Usage | None, estimate: int, verdict: Report) -> None:
    assert judge(usage, estimate) is verdict


def test_a_report_that_is_not_used_is_explained() -> None:
    cut = complaint(answer(3, Usage(input=4_096), model=MODEL, estimate=15_000), 32_768)
    few = complaint(answer(3, Usage(input=120), model=MODEL, estimate=1_700), 32_768)
    assert few == "The server reports 120 tokens for a request of about 1,700; its count is not used."
    assert cut is not None
    assert "4,096" in cut
    assert "smaller than the 32,768" in cut
    assert complaint(answer(3, Usage(input=1_500), estimate=1_700), 32_768) is None


def test_input_over_the_window_is_an_overflow_although_nobody_said_so() -> None:
    over = answer(3, Usage(input=30_000, cache_read=3_000), estimate=30_000)
    assert is_silent_overflow(over, 32_768)
    assert not is_silent_overflow(over, 128_000)
    assert not is_silent_overflow(answer(3), 10)
    assert "33,000 tokens for a window of 32,768" in (complaint(over, 32_768) or "")
    nonsense = answer(3, Usage(input=90_000_000), estimate=30_000)
    assert not is_silent_overflow(nonsense, 32_768), "a count that is not believed tells of nothing"


@pytest.mark.parametrize(
    ("output", "believed"),
    [
        pytest.param(40, True, id="what it looks like"),
        pytest.param(300, True, id="another tokenizer"),
        pytest.param(30_000, False, id="reasoning counted without telling"),
        pytest.param(90_000_000, False, id="nonsense"),
    ],
)
def test_an_answers_length_is_believed_where_it_can_be_that_of_what_goes_back(output: int, *, believed: bool) -> None:
    last = answer(3, Usage(input=5_000, output=output), estimate=5_000)
    size = measure([head(), user(2), last], LIMITS, SETTINGS, COUNTER)
    assert size.total == 5_000 + (output if believed else last.tokens)
    assert size.estimated is not believed
    assert size.exact_until == 3


def test_an_answer_that_a_server_did_not_count_is_not_nothing() -> None:
    long = TextPart(text="The quick brown fox jumps over the lazy dog. " * 200)
    last = answer(3, Usage(input=5_000, output=0), estimate=5_000)
    last = last.model_copy(update={"parts": (long,), "tokens": 0})
    size = measure([head(), user(2), last], LIMITS, SETTINGS, COUNTER)
    assert size.total == 5_000 + COUNTER.estimate(last)


@pytest.mark.parametrize(
    ("reported", "believed"),
    [
        pytest.param(5_000, True, id="it fell"),
        pytest.param(9_000, True, id="a gateway adds as much as before"),
        pytest.param(12_000, False, id="the same number as ever"),
        pytest.param(14_000, False, id="all of the session"),
    ],
)
def test_a_report_that_does_not_notice_that_room_was_made_is_not_believed(reported: int, believed: bool) -> None:
    compaction = CompactionEntry(
        id=4, parent_id=3, summary="s", first_kept_id=3, tokens_before=9_000, tokens_after=900, trigger="threshold"
    )
    before = answer(3, Usage(input=12_000, output=10), estimate=8_000)
    after = answer(5, Usage(input=reported, output=10), estimate=4_000)
    path = [head(), user(2), before, compaction, after]
    assert (measure(path, LIMITS, SETTINGS, COUNTER).exact_until == 5) is believed
    assert (newest_report(path) is after) is believed
