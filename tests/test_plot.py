"""Plots: any number of steps at any width, and what each cell shows."""

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.plot import FREE, Series, columns, stacked


@given(
    heights=st.lists(st.floats(0, 1e6), max_size=300),
    width=st.integers(1, 250),
    marked=st.sets(st.integers(0, 299), max_size=20),
)
def test_every_step_is_in_one_column_and_every_mark_is_under_its_step(
    heights: list[float], width: int, marked: set[int]
) -> None:
    marks = {at: "×" for at in marked if at < len(heights)}
    found = columns(Series((heights,), 100.0, marks), width)
    assert sum(column.cells for column in found) <= width
    assert [at for column in found for at in range(column.first, column.end)] == list(range(len(heights)))
    assert {at for at in marks if not any(one.mark and one.first <= at < one.end for one in found)} == set()
    assert all(heights[one.peak] == max(heights[one.first : one.end]) for one in found)


def test_a_width_is_used_up_and_few_steps_stay_narrow() -> None:
    heights = [1.0] * 30
    assert sum(column.cells for column in columns(Series((heights,), 1), 100)) == 100
    assert sum(column.cells for column in columns(Series((heights[:2],), 1), 100)) == 12


@given(st.lists(st.floats(0, 100), min_size=1, max_size=3), st.integers(1, 12))
def test_what_is_not_nothing_shows_and_nothing_is_higher_than_the_plot(levels: list[float], height: int) -> None:
    levels = sorted(levels)
    cells = stacked(levels, 100.0, height)
    assert len(cells) == height
    filled = [cell.glyph for cell in cells if cell.part != FREE]
    assert bool(filled) is (levels[-1] > 0)
    assert " " not in filled


def test_parts_differ_without_colour() -> None:
    drawn = [stacked(levels, 100, 4) for levels in ([25, 50], [25, 100])]
    assert ["".join(cell.glyph for cell in cells) for cells in drawn] == ["  █▓", "███▓"]


def test_of_two_marks_in_a_column_the_weightier_is_shown() -> None:
    series = Series(([1.0] * 10,), 1, {2: "×", 3: "◆"}, {"◆": 2, "×": 1})
    assert [one.mark for one in columns(series, 2)] == ["◆", ""]
