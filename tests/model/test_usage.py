"""Reported tokens become numbers that can be relied on, or none."""

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.model.wires.wire import MAX_TOKENS, usage_of
from tui_agent.session.entries import Usage


def test_cached_tokens_are_taken_out_of_the_prompt() -> None:
    reported = {"prompt": 1000, "completion": 50, "cache_read": 600, "cache_write": 300, "reasoning": 20}

    assert usage_of(reported) == Usage(input=100, output=50, cache_read=600, cache_write=300, reasoning=20)


def test_a_prompt_smaller_than_the_cached_part_counts_the_rest() -> None:
    assert usage_of({"prompt": 10, "completion": 1, "cache_read": 600}) == Usage(input=10, output=1, cache_read=600)


_ODD = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=3), st.booleans(), st.lists(st.integers()))


@given(st.dictionaries(st.sampled_from(["prompt", "completion", "cache_read", "cache_write", "reasoning"]), _ODD))
def test_whatever_is_reported_nothing_odd_comes_out(reported: dict[str, object]) -> None:
    usage = usage_of(reported)

    if usage is not None:
        numbers = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
        assert all(0 <= number <= MAX_TOKENS for number in numbers)
        assert usage.prompt > 0
        assert usage.reasoning <= usage.output
