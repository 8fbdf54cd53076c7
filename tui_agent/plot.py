"""Values over steps as columns of characters: which steps share a column, and its cells. Pure."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from tui_agent.lazy import frozen

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_BASE = "▓"
"""A cell of the lowest of several parts: they differ without colour too."""
_WIDEST = 6
"""Most cells of one step."""
FREE = -1
"""Stands for the part of a cell that nothing fills."""


@frozen
class Series:
    """Values to plot: one height per step for each of the parts that are stacked, the lowest part first.

    ``levels`` are how high each part ends, so the last are the whole heights; ``top`` is the value
    of the plot's height. ``marks`` are characters under steps, ``weights`` which of two under one
    column is shown: the greater.
    """

    levels: Sequence[Sequence[float]]
    top: float
    marks: Mapping[int, str] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.levels[-1])


class Column(NamedTuple):
    """Neighbouring cells for the steps ``first`` to before ``end``, as high as the step ``peak``."""

    first: int
    end: int
    peak: int
    cells: int
    mark: str


def columns(series: Series, width: int) -> list[Column]:
    """Return the columns of a plot of at most ``width`` cells, for any number of steps."""
    count = series.count
    heights = series.levels[-1]
    if not count or width < 1:
        return []
    if count <= width:
        taken = min(width, count * _WIDEST)
        whole: list[Column] = []
        for at in range(count):
            cells = taken * (at + 1) // count - taken * at // count
            whole.append(Column(at, at + 1, at, cells, series.marks.get(at, "")))
        return whole
    edges = [count * at // width for at in range(width + 1)]
    places = sorted(series.marks)
    found: list[Column] = []
    marked = 0
    for first, end in itertools.pairwise(edges):
        marks: list[str] = []
        while marked < len(places) and places[marked] < end:
            marks.append(series.marks[places[marked]])
            marked += 1
        mark = max(marks, key=lambda glyph: series.weights.get(glyph, 0), default="")
        found.append(Column(first, end, max(range(first, end), key=heights.__getitem__), 1, mark))
    return found


class Cell(NamedTuple):
    """One cell of a column. ``part`` is the part that fills it, `FREE` for none."""

    glyph: str
    part: int


def stacked(levels: Sequence[float], top: float, height: int) -> list[Cell]:
    """Return the cells of a column from the top down. ``levels`` are how high each part ends.

    A value above 0 always shows.
    """
    eighths = [0] * len(levels)
    if top > 0:
        eighths = [min(height * 8, round(level / top * height * 8)) for level in levels]
    whole = max(eighths[-1], 1 if levels[-1] > 0 else 0)
    base = 0
    if len(levels) > 1:
        base = eighths[0]
    cells: list[Cell] = []
    for low in range(0, height * 8, 8):
        if whole <= low:
            cells.append(Cell(" ", FREE))
        # Half of a cell decides.
        elif base >= low + 4 and whole >= low + 8:
            cells.append(Cell(_BASE, 0))
        else:
            part = len(levels) - 1
            for at, level in enumerate(eighths):
                if at and level >= low + 4:
                    part = at
                    break
            cells.append(Cell(_EIGHTHS[min(8, whole - low)], part))
    return cells[::-1]
