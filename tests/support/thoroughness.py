"""How hard tests look: enough to notice a mistake before each commit, at length and at random every night.

``make nightly`` sets ``TUI_AGENT_NIGHTLY``. What is marked ``nightly`` is left out without it: cases of a matrix that
others stand for.

Of a test marked ``daily(1)`` as many cases are left as bring each value of each of its parameters, of ``daily(2)`` as
many as bring each two values of different parameters together. Of parameters named in ``any_of`` any value will do.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from zlib import crc32

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import HealthCheck, settings

Picture = tuple[str, tuple[int, int], str]
"""What is shown, columns and rows of the terminal, the theme."""

NIGHTLY = bool(os.environ.get("TUI_AGENT_NIGHTLY"))


def examples(count: int) -> int:
    """Return the examples of a property: a third of ``count``, at least ten; every night five times ``count``."""
    return 5 * count if NIGHTLY else max(10, count // 3)


def for_the_night(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return the cases that others stand for by day."""
    marked = {item for item in items if item.get_closest_marker("nightly")}
    matrices = defaultdict[str, dict[pytest.Item, set[object]]](dict)
    for item in items:
        daily = item.get_closest_marker("daily")
        if daily is not None and item not in marked and hasattr(item, "callspec"):
            matrix = item.nodeid.partition("[")[0]
            matrices[matrix][item] = _brought_together(item, *daily.args, **daily.kwargs)
    for matrix, cases in matrices.items():
        marked |= cases.keys() - _standing_for_all(matrix, cases)
    return marked


def _brought_together(item: pytest.Item, values: int, any_of: Sequence[str] = ()) -> set[object]:
    """Return the combinations of so many values that a case has."""
    params = item.callspec.params.items()  # type: ignore[attr-defined]
    given = [(name, id(value)) for name, value in params if name not in any_of]
    return {*combinations(given, min(values, len(given)))}


def _standing_for_all(matrix: str, cases: dict[pytest.Item, set[object]]) -> set[pytest.Item]:
    """Return few cases that have everything which any of them has; the name decides which of those that have as much.

    So each value that needs no case of its own in any matrix is in some of many.
    """
    order = [*cases]
    first = crc32(matrix.encode()) % len(order)
    order = order[first:] + order[:first]
    chosen = set[pytest.Item]()
    missing = set[object]().union(*cases.values())
    while missing:
        best = max(order, key=lambda case: len(cases[case] & missing))
        chosen.add(best)
        missing -= cases[best]
    return chosen


def pictures(*always: Picture, nightly: Sequence[Picture] = ()) -> list[ParameterSet]:
    """Return what to take pictures of: those that stand for all of them, and the others, every night."""
    marked = [
        *((picture, ()) for picture in always),
        *((picture, pytest.mark.nightly) for picture in nightly),
    ]
    return [
        pytest.param(
            name, (width, height), theme, marks=marks, id=f"{name}-{width}x{height}-{theme}"
        )
        for (name, (width, height), theme), marks in marked
    ]


EXAMPLES = 1_000 if NIGHTLY else 40
"""Examples per property of the context rules, which are many."""

thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
"""Of a property of those rules over whole paths."""
