"""The model: heights, lazy loading, and where things are."""

from hypothesis import given
from hypothesis import strategies as st

from tests.ui.transcript.samples import GeneratedSource
from tui_agent.ui.widgets.transcript.model import HeightIndex, TranscriptModel

HEIGHTS = st.lists(st.integers(0, 9), max_size=1_500)


@given(HEIGHTS, st.lists(st.tuples(st.integers(0, 1_499), st.integers(0, 9)), max_size=10), st.integers(-5, 9_000))
def test_offsets_and_places_agree_with_a_plain_sum(
    heights: list[int], changes: list[tuple[int, int]], line: int
) -> None:
    index = HeightIndex(heights[: len(heights) // 2])
    for height in heights[len(heights) // 2 :]:
        index.append(height)
    for place, height in changes:
        if place < len(heights):
            heights[place] = index[place] = height
    assert index.total == sum(heights)
    assert len(index) == len(heights)
    place, within = index.find(line)
    if sum(heights):
        assert index.offset(place) == sum(heights[:place])
        assert 0 <= within < heights[place]
        assert index.offset(place) + within == min(max(line, 0), sum(heights) - 1)
    while len(index):
        index.pop()
    assert index.total == 0


def test_estimates_are_near_the_truth_and_a_walk_through_a_long_session_keeps_few_items() -> None:
    model = TranscriptModel(100)
    model.open(GeneratedSource(4_000))
    estimated = model.heights.total
    for index in range(len(model)):
        model.ensure(index)
    assert 0.5 < estimated / model.heights.total < 2
    assert len(model.loaded()) <= 410
