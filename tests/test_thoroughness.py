"""What is left out by day has others that stand for it."""

from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.thoroughness import for_the_night


class Item(SimpleNamespace):
    """Stands for a case; is in a set as itself."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def matrix(sizes: list[int], daily: pytest.Mark) -> list[Any]:
    """Return the cases of a test with parameters of so many values."""
    values = [[object() for _ in range(size)] for size in sizes]
    return [
        Item(
            nodeid=f"test.py::test[{number}]",
            callspec=SimpleNamespace(params={f"p{at}": value for at, value in enumerate(case)}),
            get_closest_marker=lambda name: daily if name == "daily" else None,
        )
        for number, case in enumerate(product(*values))
    ]


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    strength=st.integers(0, 3),
    any_of=st.sampled_from([(), ("p0",)]),
)
def test_each_so_many_values_come_together_by_day(
    sizes: list[int], strength: int, any_of: tuple[str, ...]
) -> None:
    mark = pytest.mark.daily(strength, any_of=any_of).mark
    items = matrix(sizes, mark)
    left_out = for_the_night(items)

    def together(cases: list[Any]) -> set[Any]:
        given = [
            [(name, value) for name, value in case.callspec.params.items() if name not in any_of]
            for case in cases
        ]
        return {found for row in given for found in combinations(row, min(strength, len(row)))}

    kept = [item for item in items if item not in left_out]
    assert kept
    assert together(kept) == together(items)
    assert for_the_night(kept[:1]) == set(), "a case that is chosen alone runs"
