"""How hard tests look: enough to notice a mistake before each commit, at length and at random every night.

``make nightly`` sets ``TUI_AGENT_NIGHTLY``. What is marked ``nightly`` is left out without it: cases of a matrix that
others stand for.
"""

import os
from collections.abc import Sequence

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import HealthCheck, settings

Picture = tuple[str, tuple[int, int], str]
"""What is shown, columns and rows of the terminal, the theme."""

NIGHTLY = bool(os.environ.get("TUI_AGENT_NIGHTLY"))


def examples(count: int) -> int:
    """Return the examples of a property: a third of ``count``, at least ten; every night five times ``count``."""
    return 5 * count if NIGHTLY else max(10, count // 3)


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
