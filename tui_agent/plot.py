"""Lays out a bar chart drawn with characters, in which each step's column is a stack of parts.

All functions are pure.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from tui_agent.lazy import frozen

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_BASE = "▓"
"""Glyph with which the lowest of several parts is drawn, so that it stands out even without
colour."""
_WIDEST = 6
"""Maximum width of the column for one step, in cells."""
FREE = -1
"""Value of `Cell.part` for a cell that belongs to no part of the stack."""


@frozen
class Series:
    """The values to plot. Each step is drawn as a stack of one or more parts.

    ``levels`` contains one row for each part, the lowest part first, with the cumulative value at
    the upper end of the part for each step; so the last row contains the totals. ``top`` is the
    value at the top of the plot. ``marks`` are characters to show under steps, by the step's index.
    If a column has several marks, only the mark with the greatest weight is shown; ``weights``
    contains the weights by character.
    """

    levels: Sequence[Sequence[float]]
    top: float
    marks: Mapping[int, str] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.levels[-1])


class Column(NamedTuple):
    """A column that is ``cells`` wide and stands for the steps from ``first`` to before ``end``.

    It is drawn from the values of the step ``peak``. ``mark`` is the character under it, ""
    if there is none.
    """

    first: int
    end: int
    peak: int
    cells: int
    mark: str


def columns(series: Series, width: int) -> list[Column]:
    """Return the columns of a plot that is at most ``width`` cells wide, from left to right.

    If there are more steps than cells, each column is one cell wide and stands for one or more
    steps; its peak is the highest of them. Without steps or cells, the list is empty.
    """
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
    """One cell of a column in the chart.

    ``part`` is the index of the part that is drawn in the cell; it is `FREE` if the cell is empty.
    """

    glyph: str
    part: int


def stacked(levels: Sequence[float], top: float, height: int) -> list[Cell]:
    """Return the cells of a column of a bar chart, from the top down.

    The column has ``height`` cells, on a scale from 0 to ``top``. ``levels`` are the cumulative
    values at the upper ends of the column's parts, the lowest first. A total above 0 fills at least
    an eighth of a cell.
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
        # A cell that is full belongs to the lowest part if this part fills at least half of it.
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
