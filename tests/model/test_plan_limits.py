"""The limits of a plan in the headers of an answer: read, shown where they matter, and never a fault."""

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.model.plan_limits import WARN_FROM, PlanUse, read_plan
from tui_agent.model.protocol import LimitWindow

NOW = 1_790_000_000.0
MODEL = "anthropic/claude-sonnet-4-5"

CLAUDE = {
    "anthropic-ratelimit-unified-status": "allowed_warning",
    "anthropic-ratelimit-unified-5h-utilization": "0.86",
    "anthropic-ratelimit-unified-5h-reset": str(int(NOW) + 4_320),
    "Anthropic-Ratelimit-Unified-7d-Utilization": "0.31",
    "Anthropic-Ratelimit-Unified-7d-Reset": str(int(NOW) + 200_000),
    "anthropic-ratelimit-unified-7d_opus-utilization": "0.5",
    "anthropic-ratelimit-requests-remaining": "0",
}
CHATGPT = {
    "x-codex-primary-used-percent": "42",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": str(int(NOW) + 60),
    "x-codex-secondary-used-percent": "96.5",
    "x-codex-secondary-window-minutes": "10080",
    "x-codex-secondary-reset-after-seconds": "86400",
}


def test_the_windows_of_both_kinds_of_plans_are_read() -> None:
    assert read_plan(CLAUDE, now=NOW) == (
        LimitWindow("5 h", 0.86, NOW + 4_320),
        LimitWindow("7 d", 0.31, NOW + 200_000),
        LimitWindow("7 d opus", 0.5, None),
    )
    assert read_plan(CHATGPT, now=NOW) == (
        LimitWindow("5 h", 0.42, NOW + 60),
        LimitWindow("7 d", 0.965, NOW + 86_400),
    )


VALUES = st.one_of(
    st.sampled_from(["", "nan", "inf", "-1", "1e400", "soon", "0.9", "99", "9" * 400, "٣"]),
    st.text(max_size=20),
)


@given(st.dictionaries(st.sampled_from([*CLAUDE, *CHATGPT]), VALUES))
def test_headers_without_sense_are_no_limits_and_no_fault(headers: dict[str, str]) -> None:
    windows = read_plan(headers, now=NOW)
    use = PlanUse()
    use.take(MODEL, windows, now=NOW)
    assert all(0 <= window.used <= 10 for window in windows)
    assert len(use.lines(now=NOW)) <= len(windows)
    assert "\n" not in use.words(MODEL, now=NOW)


def test_each_step_is_said_once_until_the_window_begins_again() -> None:
    use = PlanUse()

    def said(used: float) -> list[str]:
        return use.take(MODEL, (LimitWindow("5 h", used, NOW + 4_320),), now=NOW)

    assert said(WARN_FROM - 0.01) == []
    assert said(0.86) == ["86% of Anthropic's 5 h limit is used; it resets in 72 min."]
    assert said(0.9) == []
    assert len(said(0.96)) == 1
    assert said(0.02) == []
    assert len(said(0.81)) == 1


def test_only_a_window_that_is_nearly_used_up_and_still_runs_is_in_the_last_line() -> None:
    use = PlanUse()
    use.take(MODEL, read_plan(CLAUDE, now=NOW), now=NOW)
    assert use.words(MODEL, now=NOW) == "5 h plan 86%"
    assert use.words("openai/gpt-5", now=NOW) == ""
    assert use.words(MODEL, now=NOW + 5_000) == ""
    assert len(use.lines(now=NOW + 5_000)) == 2


def test_a_share_is_rounded_down_and_a_length_to_its_unit() -> None:
    use = PlanUse()
    use.take(MODEL, (LimitWindow("5 h", 0.997, None),), now=NOW)
    assert use.words(MODEL, now=NOW) == "5 h plan 99%"
    odd = {
        **CHATGPT,
        "x-codex-primary-window-minutes": "299",
        "x-codex-secondary-window-minutes": "0.2",
    }
    assert [window.name for window in read_plan(odd, now=NOW)] == ["5 h"]


def test_a_window_that_has_ended_is_no_notice() -> None:
    assert PlanUse().take(MODEL, (LimitWindow("5 h", 0.9, NOW - 1),), now=NOW) == []
