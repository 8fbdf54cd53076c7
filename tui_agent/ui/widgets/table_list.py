"""A table under a cursor, drawn by the line."""

from collections.abc import Sequence
from typing import Final

from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.line_list import LineList
from tui_agent.ui.widgets.transcript.lines import StyledSpan, cells, crop_runs, runs_width

_GAP: Final = 2
_MIN_GROWING: Final = 10
"""Least width of the column that takes the remaining cells."""

Cells = Sequence[StyledSpan]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    ``wanted`` says how much: the column with the least leaves first. One column ``grows``.
    """

    title: str
    wanted: int = 0
    right: bool = False
    grows: bool = False


def widths(columns: Sequence[Column], rows: Sequence[Cells], room: int) -> dict[int, int]:
    natural = {
        place: max([cells(column.title), *(cells(row[place][0]) for row in rows)])
        for place, column in enumerate(columns)
    }
    natural = {
        place: width for place, width in natural.items() if any(row[place][0] for row in rows)
    }
    least = {
        place: min(width, _MIN_GROWING) if columns[place].grows else width
        for place, width in natural.items()
    }
    while len(least) > 1 and sum(least.values()) + _GAP * (len(least) - 1) > room:
        del least[min(least, key=lambda place: columns[place].wanted)]
    spare = room - sum(least.values()) - _GAP * (len(least) - 1)
    return {
        place: min(natural[place], width + max(spare, 0)) if columns[place].grows else width
        for place, width in least.items()
    }


def table_row(columns: Sequence[Column], wide: dict[int, int], row: Cells) -> list[StyledSpan]:
    runs: list[StyledSpan] = []
    for place, width in wide.items():
        cell = list(crop_runs([row[place]], width))
        pad = (" " * (width - runs_width(cell)), "text")
        if runs:
            runs.append((" " * _GAP, "text"))
        if columns[place].right:
            runs += [pad, *cell]
        else:
            runs += [*cell, pad]
    return runs


class TableList(LineList):
    """Rows of cells below a heading that stays; ``show`` gives it others."""

    HEADED = True

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._columns = columns
        self._cells: Sequence[Cells] = ()
        self._wide: tuple[int, dict[int, int]] = (-1, {})

    def show(self, rows: Sequence[Cells], *, cursor: int | None = None) -> None:
        """Show rows; the cursor stays at its place if none is named."""
        if rows == self._cells and cursor is None:
            return
        self._cells = rows
        self._wide = (-1, {})
        if len(rows) != self.count or cursor is not None:
            self.set_count(len(rows), cursor=cursor)
        else:
            self.refresh()

    def _widths(self, width: int) -> dict[int, int]:
        if self._wide[0] != width:
            self._wide = width, widths(self._columns, self._cells, width - 1)
        return self._wide[1]

    def heading(self, width: int) -> Sequence[StyledSpan]:
        titles = [(column.title, "heading") for column in self._columns]
        return table_row(self._columns, self._widths(width), titles)

    def row(self, index: int, width: int) -> Sequence[StyledSpan]:
        return table_row(self._columns, self._widths(width), self._cells[index])
